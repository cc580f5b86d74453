package process

import (
	"golang.org/x/sys/unix"
)

// band is a process group or a session: who is in it, and started no earlier
// than the process that it is named after, belongs to that process's job. The
// number of one is not handed out as a pid while anybody is in it.
type band struct {
	key          // the process whose pid is its number
	session bool // else it is a group
	within  int  // a group's session; 0: one beyond the pid namespace; Unrecorded: not known
}

// has tells whether e is in the band. A group lies in one session for good
// (setpgid(2)): the same number in another session is another group, such as
// one that a daemon left behind whose first process had the same pid.
func (b band) has(e entry) bool {
	switch {
	case b.pid == 0 || e.start < b.start:
		return false
	case b.session:
		return e.sid == b.pid
	}
	return e.pgid == b.pid && (b.within == Unrecorded || e.sid == 0 || b.within == e.sid)
}

// bands are the group and the session that id led when it was read. Of pid 1
// there are none, as kill(-1) means everybody.
func (id Identity) bands() []band {
	var list []band
	if id.PID > 1 && id.PGID == id.PID {
		list = append(list, band{key: key{id.PID, id.Start}, within: id.SID})
	}
	if id.PID > 1 && id.SID == id.PID {
		list = append(list, band{key: key{id.PID, id.Start}, session: true})
	}
	return list
}

// bandsOfCommand are the group and the session that a command may have made
// since it was read, as timeout(1) and setsid(1) do.
func (id Identity) bandsOfCommand() []band {
	if id.PID <= 1 {
		return nil
	}
	k := key{id.PID, id.Start}
	return []band{{key: k, within: id.SID}, {key: k, session: true}}
}

// bands are those of the owner and of its command. Some may have no members: a
// command can still make its own.
func (job Job) bands() []band {
	var list []band
	if !job.Owner.replaced() {
		list = job.Owner.bands()
	}
	if !job.Command.replaced() {
		list = append(list, job.Command.bandsOfCommand()...)
	}
	return list
}

// replaced tells that the pid was handed out again, even within one tick of the
// clock: then whatever had its number has ended.
func (id Identity) replaced() bool {
	now := inodeOf(id.PID)
	return id.Inode != 0 && now != 0 && now != id.Inode
}

// gone tells cheaply that nobody is in a group: one call, no scan. Of a session
// only the process table can tell.
func (b band) gone() bool { return !b.session && unix.Kill(-b.pid, 0) == unix.ESRCH }

// ended tells that the band's number was handed out again, which happens only
// after everybody has left it: whoever is in one of that number is a stranger.
func (b band) ended(list []entry) bool {
	for _, e := range list {
		if e.pid == b.pid && b.start != 0 && e.start != b.start && !e.hidden {
			return true
		}
	}
	return false
}

// over tells that a group is gone for good: who could make it anew, the process of
// its number, was dead when the table was read. The next one of that number is a
// stranger's.
func (b band) over(list []entry) bool {
	for _, e := range list {
		if e.pid == b.pid {
			return false
		}
	}
	return b.gone()
}

// lives tells whether the band has living members: those that the table shows,
// or, where it shows none, those that the system says a group has.
func (b band) lives(list []entry) bool {
	if b.ended(list) {
		return false
	}
	for _, e := range list {
		if b.has(e) && !e.dead {
			return true
		}
	}
	return b.unseen(list)
}

// unseen tells that a group has members and the table shows none, not even dead
// ones: it hides them (hidepid), or was read before they were there. Where it may
// hide somebody the dead prove nothing: that there is a group is said of them, and
// would be said of a hidden member just so.
func (b band) unseen(list []entry) bool {
	if b.session || b.gone() {
		return false
	}
	for _, e := range list {
		if e.pgid == b.pid && !(e.dead && hidesProcesses()) {
			return false
		}
	}
	return !b.gone() // asked again: the last may have been reaped before the table was read
}
