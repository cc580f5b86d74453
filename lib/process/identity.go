// Package process tells who the owner of a lock is, whether it is dead, and
// ends its whole job carefully.
//
// A pid alone is no identity: it is handed out again. Here a process is its
// pid together with its start time, read in one pid namespace of one boot of
// one machine. What cannot be read is never taken for dead.
//
// On Linux /proc must be mounted, for the pid namespace the caller is in.
package process

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Identity names one process for good.
type Identity struct {
	PID   int
	Start uint64 // Linux: clock ticks since boot, /proc/PID/stat field 22; elsewhere microseconds since the epoch
	PGID  int    // its process group when it was read
	SID   int    // its session when it was read; 0: one beyond its pid namespace
	UID   int    // its effective user when it was read

	// Inode is that of its pidfd, which no other process has until the next boot
	// (pidfs, Linux 6.9); 0: not known. It tells apart two processes with one pid
	// and one start, and names one that /proc hides.
	Inode uint64

	// Where PID and Start were read: by whom, not in whom. "" and 0 are for
	// what the system does not have.
	Boot    string // id of this boot of the kernel
	Machine string // id of the machine, which outlives a boot
	PIDNS   uint64 // inode of the reader's pid namespace
	TimeNS  uint64 // inode of the reader's time namespace: it shifts Start
}

// Unrecorded is the SID of an identity that was written down without its session.
const Unrecorded = -1

// Same tells whether both are one process, which may have changed its group,
// session and user between the two readings.
func (id Identity) Same(other Identity) bool {
	other.PGID, other.SID, other.UID = id.PGID, id.SID, id.UID
	return id == other
}

// Of reads the identity of a process that this process can see. The error is
// unix.ESRCH (by errors.Is) where there is none with that pid, unix.EPERM where
// there is one that /proc hides (hidepid, proc(5)), and a *ThreadError.
func Of(pid int) (Identity, error) {
	where, err := here()
	if err != nil {
		return Identity{}, err
	}
	e, err := look(pid)
	if err != nil {
		return Identity{}, named(pid, err)
	}
	uid, err := userOf(pid)
	if err != nil {
		return Identity{}, named(pid, err)
	}
	where.PID, where.Start, where.PGID, where.SID, where.UID = pid, e.start, e.pgid, e.sid, uid
	where.Inode = inodeOf(pid)
	return where, nil
}

// ThreadError says that what was taken for a pid is the id of a thread: a signal
// to it comes to the process, but it does not tell whether that lives.
type ThreadError struct{ Process int }

func (e *ThreadError) Error() string { return fmt.Sprintf("is a thread of process %d", e.Process) }

// Here is an Identity of nobody that says only where this process reads: Boot,
// Machine, PIDNS and TimeNS. It is the zero Identity where that is not known.
func Here() Identity {
	where, _ := here()
	return where
}

// userOf is user, which need not be looked up for this process itself.
func userOf(pid int) (int, error) {
	if pid == os.Getpid() {
		return os.Geteuid(), nil
	}
	return user(pid)
}

// entry is one process as the process table shows it.
type entry struct {
	pid, ppid, pgid int
	sid             int    // session; 0: not known
	start           uint64 // unit as in Identity.Start
	stopped         bool   // by a signal, not by a debugger
	dead            bool   // only its status is left; false for a leader that exited before its threads
	hidden          bool   // the process table does not show it: start stands for its pidfd's inode
	command         string
}

// key is what makes an entry one process within one boot and namespace.
type key struct {
	pid   int
	start uint64
}

func (e entry) key() key { return key{e.pid, e.start} }

// mayHave tells whether child can be a child of e, which is not so for one that
// is older: its real parent had the same pid. Of a hidden process no start is
// known, so it may have any.
func (e entry) mayHave(child entry) bool { return e.hidden || child.start >= e.start }

// IsAncestor tells whether pid is this process or one of its ancestors. It is
// false also where the line of ancestors cannot be followed (hidepid on Linux
// before 6.13); Killer.End refuses then.
func IsAncestor(pid int) bool {
	if pid == os.Getpid() || pid == os.Getppid() {
		return true
	}
	line, _ := ancestors()
	return line[pid]
}

// Ancestors returns the pids of this process and of all its ancestors, as far as
// they can be followed.
func Ancestors() []int {
	line, _ := ancestors()
	var pids []int
	for pid := range line {
		pids = append(pids, pid)
	}
	return pids
}

// ancestors returns this process and all its ancestors. With an error it returns
// those that could be found.
func ancestors() (map[int]bool, error) {
	for tries := 0; ; tries++ {
		line, err := climb()
		// An ancestor that exits while we climb hands us to another parent.
		if !errors.Is(err, unix.ESRCH) || tries == 3 {
			return line, err
		}
	}
}

func climb() (map[int]bool, error) {
	line := map[int]bool{os.Getpid(): true}
	// 0 is the parent outside of this pid namespace; BSD's 0 is its own parent.
	for pid := os.Getppid(); pid > 0; {
		line[pid] = true
		if pid == 1 {
			break
		}
		above, err := parent(pid)
		if err != nil {
			return line, named(pid, err)
		}
		pid = above
	}
	return line, nil
}

// find is look that also finds who is hidden.
func find(pid int) (entry, error) {
	e, err := look(pid)
	if err != unix.EPERM {
		return e, err
	}
	if e, there := hidden(pid); there {
		return e, nil
	}
	return entry{}, unix.ESRCH
}

func named(pid int, err error) error { return fmt.Errorf("process %d: %w", pid, err) }
