// Package process identifies the owner of a lock, and finds out whether it is dead and which processes belong to
// its job.
//
// A pid alone does not identify a process, because pids are reused. A pid and a start time do, if both were read in
// one pid namespace of one boot of one machine. A process that cannot be read is never taken for dead.
//
// On Linux /proc must be mounted, for the pid namespace that the caller is in.
package process

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/fault"
)

// Identity identifies one process, even after its pid has been reused.
type Identity struct {
	PID   int
	Start uint64 // Linux: ticks since boot, field 22 of /proc/PID/stat; elsewhere: microseconds since the epoch; 0: unknown
	PGID  int    // its process group when it was read
	SID   int    // its session when it was read; 0: a session outside the pid namespace, or one that is not shown
	UID   int    // its effective user when it was read

	// Image identifies the program image of the process when it was read: a checksum of the start addresses of its
	// code, stack, heap, arguments and environment. A process and all that it has forked have one image. After
	// execve(2) a process has another image, as the kernel chooses these addresses at random. 0: unknown.
	Image uint64

	// Inode is the inode of the process's pidfd (pidfs, Linux 6.9); 0: unknown. No other process gets it before the
	// next boot. It distinguishes two processes with the same pid and start, and names a process that /proc hides.
	Inode uint64

	// Where PID and Start were read: the place of the reader, not of the process. "" and 0 stand
	// for what the system does not have.
	Boot    string // id of the kernel's boot; BootID returns what may be recorded
	Machine string // id of the machine, which outlives a boot
	PIDNS   uint64 // inode of the reader's pid namespace
	TimeNS  uint64 // inode of the reader's time namespace, which shifts Start
}

// Unrecorded is the SID of an identity that was recorded without its session.
const Unrecorded = -1

// thisBoot stands for the id of this boot if the system shows none. An identity that this process has read itself is
// still of this boot. As no other process can know that, thisBoot is never recorded; no line of a record can hold it.
const thisBoot = "\n"

// BootID is the id of the boot, "" if the system shows none.
func (id Identity) BootID() string {
	if id.Boot == thisBoot {
		return ""
	}
	return id.Boot
}

// Same reports whether both are one process. Group, session, user and image may differ, within one boot the machine id too.
func (id Identity) Same(other Identity) bool {
	other.PGID, other.SID, other.UID, other.Image = id.PGID, id.SID, id.UID, id.Image
	id.Boot, other.Boot = id.BootID(), other.BootID()
	if id.Boot != "" {
		other.Machine = id.Machine
	}
	return id == other
}

// SharesSession reports whether both were in one session when they were read; false if a session is
// Unrecorded or was read in another place. Two sessions recorded as 0 count as one, although they may differ.
func (id Identity) SharesSession(other Identity) bool {
	return id.seenFrom(other) == samePlace && id.SID == other.SID && id.SID != Unrecorded
}

// Key returns the pid and the start, by which the process table identifies the process.
func (id Identity) Key() Key { return Key{id.PID, id.Start} }

// Of reads the identity of a process. The error is unix.ESRCH (by errors.Is) if no process has that pid, unix.EPERM
// if /proc hides it (hidepid, proc(5)), a *ThreadError for a thread's id, an error of Readable, or the system's.
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
	where.PID, where.Start, where.PGID, where.SID, where.UID = pid, e.Start, e.PGID, e.SID, uid
	if imagesDiffer() {
		where.Image = e.image
	}
	if where.Inode, err = inodeOf(pid); err != nil {
		return Identity{}, named(pid, err)
	}
	return where, nil
}

// OfChild is Of for a child not reaped yet. If /proc hides it after setuid(2), Start, UID and Image are 0.
func OfChild(pid int) (Identity, error) {
	id, err := Of(pid)
	if !errors.Is(err, unix.EPERM) {
		return id, err
	}
	if id, err = here(); err == nil {
		id.Inode, err = inodeOf(pid)
	}
	id.PID = pid
	id.PGID, _ = unix.Getpgid(pid) // Getpgid and Getsid fail only without such a process
	id.SID, _ = unix.Getsid(pid)
	return id, err
}

// ThreadError says that the pid is the id of a thread. A signal to that id reaches the process, but
// a thread's end does not mean that the process has ended.
type ThreadError struct{ Process int }

func (e *ThreadError) Error() string { return "is a thread of process " + strconv.Itoa(e.Process) }

// Here is an Identity without a process, which says only where this process reads: Boot, Machine,
// PIDNS and TimeNS. Here returns the zero Identity if that is unknown.
func Here() Identity {
	where, _ := here()
	return where
}

// Readable returns the reason why it cannot be known whether any process lives: /proc is not mounted, is another
// pid namespace's, or what Here returns cannot be read just now. Once Readable has returned nil, it always does.
func Readable() error {
	_, err := here()
	return err
}

// Passing is Readable, but nil if /proc is missing or of another pid namespace: for callers that can go on
// without knowing which processes live.
func Passing() error {
	if err := Readable(); fault.KindOf(err) != fault.Unavailable {
		return err
	}
	return nil
}

func userOf(pid int) (int, error) {
	if pid == os.Getpid() {
		return os.Geteuid(), nil
	}
	return User(pid)
}

// Entry is one process as the process table shows it.
type Entry struct {
	PID, Parent, PGID int
	SID               int    // session; 0: as in Identity.SID
	Start             uint64 // unit as in Identity.Start
	Stopped           bool   // by a signal, not by a debugger
	Traced            bool   // stopped, and held by a debugger
	Exiting           bool   // has begun to exit, and will be dead in a moment (Linux)
	Exited            bool   // has exited with all its threads: only its status is left
	Forked            bool   // has executed no program since its fork (Linux)
	Hidden            bool   // /proc does not show it: Start holds its pidfd's inode
	ByBand            bool   // only its group, its session or a mark shows that it belongs to a job
	Command           string

	CPU    time.Duration // processor time of all its threads; CPU, Faults and Reaped are set only on Linux
	Faults uint64        // minor page faults
	Reaped uint64        // page faults of the children that it has waited for

	image     uint64 // Identity.Image
	arguments int    // length of its arguments in bytes
	environ   int    // length of its environment in bytes; -1: not shown
	kernel    bool   // a thread of the kernel
}

// Key identifies a process within one boot and pid namespace.
type Key struct {
	PID   int
	Start uint64
}

// hiddenStart marks the start of a process that /proc does not show: no real start is that late. The other bits
// hold the inode of the pidfd, so that the start still identifies one process.
const hiddenStart = 1 << 63

func (e Entry) Key() Key { return Key{e.PID, e.Start} }

// mayHave reports whether child can be a child of e. A process older than e cannot: its parent was another
// process with the same pid. The start of a hidden process is unknown, so any process can be its child.
func (e Entry) mayHave(child Entry) bool { return e.Hidden || child.Start >= e.Start }

// Ancestor returns the identity of the process pid (Of), and whether that is this process or one of its
// ancestors. The identity is read first: later, the pid of an ancestor that has died could be a stranger's.
func Ancestor(pid int) (id Identity, is bool, err error) {
	id, err = Of(pid)
	return id, selfOrParent(pid) || slices.Contains(steady(followed), pid), err
}

func selfOrParent(pid int) bool { return pid == os.Getpid() || pid == os.Getppid() }

// Gone reports whether the process that had this pid when this process began is dead or exiting: an exiting
// process loses its children before it is dead. If a younger process has the pid now, the earlier one is dead.
func Gone(pid int) bool {
	e, err := Find(pid)
	if err != nil {
		return errors.Is(err, unix.ESRCH)
	}
	if e.Exiting || e.Exited {
		return true
	}
	own, err := look(os.Getpid())
	return err == nil && !e.Hidden && e.Start > own.Start
}

// ParentOf is Of for the parent of the process pid; unix.EPERM also if the kernel does not show the parent.
func ParentOf(pid int) (Identity, error) {
	above, err := parent(pid)
	if err != nil {
		return Identity{}, named(pid, err)
	}
	return Of(above)
}

// IsAncestor reports whether pid is this process or one of its ancestors. It is also false for an ancestor above
// one whose parent is not shown (hidepid on Linux before 6.13); package killer then ends no process.
func IsAncestor(pid int) bool {
	return selfOrParent(pid) || slices.Contains(followed(), pid)
}

// IsAbove reports whether pid is the process start or one of its ancestors; false if that is not known.
func IsAbove(pid, start int) bool {
	line, _ := climbAgain(func() ([]int, error) { return climb(start, start, parent) })
	return slices.Contains(line, pid)
}

func followed() []int {
	line, _ := Ancestors()
	return line
}

// steady calls look until two successive calls return the same ancestors: during a single call one of them
// may die, and another process get its pid.
func steady(look func() []int) []int {
	for before := look(); ; {
		line := look()
		if slices.Equal(before, line) {
			return line
		}
		before = line
	}
}

// Ancestors returns the pids of this process and of all its ancestors, the nearest first. With an error it
// returns those that were found.
func Ancestors() ([]int, error) {
	return climbAgain(func() ([]int, error) { return climb(os.Getpid(), os.Getppid(), parent) })
}

// climbAgain calls climb, and again at most three times while it fails because an ancestor has exited: its
// child then has another parent.
func climbAgain(climb func() ([]int, error)) (line []int, err error) {
	for range 4 {
		if line, err = climb(); !errors.Is(err, unix.ESRCH) {
			break
		}
	}
	return line, err
}

// climb returns self, then first and its ancestors, the nearest of them first; with an error, those it found.
func climb(self, first int, parent func(pid int) (int, error)) ([]int, error) {
	line := []int{self}
	// Parent 0 is a process outside of this pid namespace. On BSD, process 0 is its own parent.
	for pid := first; pid > 0; {
		line = append(line, pid)
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

// Find reads one process, even if /proc hides it; unix.ESRCH if no process has that pid.
func Find(pid int) (Entry, error) {
	e, err := look(pid)
	if err != unix.EPERM {
		return e, err
	}
	if e, there := hidden(pid); there {
		return e, nil
	}
	return Entry{}, unix.ESRCH
}

func named(pid int, err error) error {
	return fault.Worded("process "+strconv.Itoa(pid)+": "+err.Error(), err)
}
