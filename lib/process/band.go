package process

import (
	"slices"

	"golang.org/x/sys/unix"
)

// band is a process group or a session, numbered by the pid of its leader. A process in it belongs to the leader's job
// if it started no earlier than the leader. The kernel does not reuse the number as a pid while the band has members.
type band struct {
	Key          // the leader
	session bool // true: a session; false: a process group
	within  int  // the session of a group; 0: a session outside the pid namespace; Unrecorded: unknown
}

// has reports whether e is in the band and no older than its leader. A group never changes its session
// (setpgid(2)): a group with this number in another session is another group.
func (b band) has(e Entry) bool {
	switch {
	case e.Start < b.Start:
		return false
	case b.session:
		return e.SID == b.PID
	}
	return e.PGID == b.PID && (b.within == Unrecorded || e.SID == 0 || b.within == e.SID)
}

// bands returns the group and the session that the process led when id was read or, as a command, may have made since.
// Pid 1 has no band: kill(-1) signals all processes. A pid that is known to be reused has none either.
func (id Identity) bands(command bool) (list []band) {
	if id.PID <= 1 || id.replaced() {
		return nil
	}
	if command || id.PGID == id.PID {
		list = append(list, band{Key: id.Key(), within: id.SID})
	}
	if command || id.SID == id.PID {
		list = append(list, band{Key: id.Key(), session: true})
	}
	return list
}

func (job Job) bands() []band { return append(job.Owner.bands(false), job.Command.bands(true)...) }

// replaced reports whether another process has the pid now, even if both started in one clock tick. A group
// or session of that number has then ended. replaced is false if an inode is unknown.
func (id Identity) replaced() bool {
	now, _ := inodeOf(id.PID) // inode 0, also after an error, proves nothing
	return id.Inode != 0 && now != 0 && now != id.Inode
}

// gone reports whether a group has no members, by one kill(2). gone is false for a session.
func (b band) gone() bool { return !b.session && unix.Kill(-b.PID, 0) == unix.ESRCH }

// ended reports whether list shows another process with the leader's pid. The kernel reuses that pid only once
// the band is empty, so processes with the band's number are then strangers; false if either start is unknown.
func (b band) ended(list []Entry) bool {
	return b.Start != 0 && slices.ContainsFunc(list, func(e Entry) bool {
		return e.PID == b.PID && e.Start != b.Start && !e.Hidden
	})
}

// over reports whether a group is gone for good: it has no members, and the table does not show the process with its
// number, which alone could create the group again. over is false for a session.
func (b band) over(list []Entry) bool {
	return !slices.ContainsFunc(list, func(e Entry) bool { return e.PID == b.PID }) && b.gone()
}

// lives reports whether the band has living members. If the table shows none, lives asks the kernel whether
// the group has members that the table does not show.
func (b band) lives(list []Entry) bool {
	return !b.ended(list) && (slices.ContainsFunc(list, func(e Entry) bool { return b.has(e) && !e.Exited }) || b.unseen(list))
}

// unseen reports whether a group has members of which the table shows none: /proc hides them (hidepid), or they are
// younger than the table. unseen is false for a session. If /proc may hide processes, an exited member counts as not
// shown: kill(-group, 0) succeeds for a zombie as for a hidden member.
func (b band) unseen(list []Entry) bool {
	if b.session || b.gone() {
		return false
	}
	shown := slices.ContainsFunc(list, func(e Entry) bool { return e.PGID == b.PID && !(e.Exited && hidesProcesses()) })
	return !shown && !b.gone() // asked again: the last member may have been reaped since
}
