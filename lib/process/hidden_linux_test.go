package process

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"adlock/test/support/actor"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

func init() {
	// It runs as an unprivileged user, so /proc hides root's processes. Its arguments are the pids of a shown
	// process, of a hidden child of that process and of another hidden process, the inode of the latter's pidfd and
	// its start, the pid of a hidden zombie, and the id of a hidden thread.
	actor.Roles["seeker"] = func(args []string) int {
		var n []int
		for _, arg := range args {
			number, _ := strconv.Atoi(arg)
			n = append(n, number)
		}
		seek(n[0], n[1], n[2], uint64(n[3]), uint64(n[4]), n[5], n[6])
		return 0
	}
}

// claim prints what does not hold.
func claim(what string, holds bool, values ...any) {
	if !holds {
		fmt.Println("not so:", what, fmt.Sprint(values...))
	}
}

func seek(shown, child, other int, inode, start uint64, zombie, thread int) {
	list, err := Table(nil)
	n := 0
	for _, e := range list {
		if e.PID == child {
			n++
			claim("a hidden child has its parent", e.Hidden && e.Parent == shown, e)
		}
	}
	claim("a hidden child is in the table once", n == 1 && err == nil, n, err)
	claim("no hidden child is added again", len(hiddenChildren(slices.Clone(list))) == len(list))
	claim("a hidden process is unshown", unshown(child) && !unshown(shown))
	claim("the living live", PIDLives(child) && PIDLives(other))
	claim("a hidden zombie is dead", !PIDLives(zombie))

	e, err := Find(other)
	claim("a hidden process is found", err == nil && e.Hidden && e.PID == other && e.Start == hiddenStart|inode, e, err)
	_, err = Find(thread)
	claim("a hidden thread is no process", err == unix.ESRCH, err)
	_, err = User(other)
	claim("the user of a hidden process is not known", err == unix.EPERM, err)
	read, err := scan{}.readOne(nil, other)
	claim("a hidden process is read", err == nil && len(read) == 1 && read[0] == e, read, err)
	err = Entry{PID: other, Start: e.Start}.Signal(unix.SIGTERM)
	claim("a process that may not be signalled is an error", errors.Is(err, unix.EPERM), err)

	id := Here()
	id.PID, id.PGID, id.Start = other, other, start
	_, err = Of(other)
	claim("a hidden process has no identity", errors.Is(err, unix.EPERM), err)
	own, err := OfChild(other)
	claim("a hidden child has one, without a start", err == nil && own.Inode == inode && own.PGID == other && own.Key() == Key{PID: other}, own, err)
	claim("a hidden process is not dead", id.Life() == Unknown && remains(id), id.Life())

	claim("its handle without a descriptor has not exited", !Handle{Key{other, start}, noPidfd}.Exited())

	k := Membership{bands: []band{{Key: Key{other, 1}, within: Unrecorded}}}
	k.Drop(list)
	group, is := k.Unseen(list)
	claim("a hidden group is not over", is && group == other, group)
	fmt.Println("sought")
}

func TestProcessesThatProcHidesAreFound(t *testing.T) {
	need.Root(t)
	need.Tools(t, "setpriv")
	if !pidfs() {
		need.Skip(t, "before Linux 6.9 nothing names a hidden process for good")
	}
	path := actor.File(t, "child")
	shown := actor.Shell(t, actor.Leads, `as="setpriv --reuid 65534 --regid 65534 --clear-groups"; $as sleep 100 & sleep 100 & echo $! >"$1"; exec $as sleep 100`, path)
	child, other, zombie := actor.PIDIn(t, path), actor.Sleeper(t, actor.Leads), actor.Sleeper(t, actor.Leads)
	unix.Kill(zombie.PID(), unix.SIGKILL)
	actor.Eventually(t, "a zombie", func() bool { return actor.State(zombie.PID()) == "Z" })
	// A process that has become another user is visible to that user only after an exec.
	actor.Eventually(t, "the owner is nobody", func() bool {
		uid, err := User(shown.PID())
		return err == nil && uid == actor.Nobody && entryOf(shown).Command == "sleep"
	})
	args := []string{"seeker"}
	inode, start := inodeNow(other.PID()), entryOf(other).Start
	for _, n := range []int{shown.PID(), child, other.PID(), int(inode), int(start), zombie.PID(), thread(t)} {
		args = append(args, strconv.Itoa(n))
	}
	b := actor.Play(t, syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}, "lookout", args...)
	b.Await()
	if b.ProcessState.ExitCode() == 2 {
		need.Skip(t, "may not mount")
	}
	if got := b.Out.String(); got != "sought\n" {
		t.Error(got)
	}
}

// thread is the id of one of this process's threads, which is not its pid.
func thread(t *testing.T) int {
	t.Helper()
	tasks := must.Get(os.ReadDir("/proc/self/task"))(t)
	for _, task := range tasks {
		if id := actor.Atoi(t, task.Name()); id != os.Getpid() {
			return id
		}
	}
	t.Fatal("this process has one thread only")
	return 0
}

// If /proc hides no process, a child that is not in a table came after it.
func TestAChildStartedAfterTheTableIsNotTakenForHidden(t *testing.T) {
	actor.Set(t, &hidesProcesses, func() bool { return true })
	actor.Sleeper(t, actor.Leads)
	self := must.Get(look(os.Getpid()))(t)
	if list := hiddenChildren([]Entry{self}); len(list) != 1 {
		t.Errorf("%+v", list[1:])
	}
}

// A group of which /proc shows only a zombie may also have a member that /proc hides: kill(2)
// succeeds with and without such a member.
func TestAZombiesGroupCountsAsAliveOnlyIfProcMayHideAMember(t *testing.T) {
	pid := actor.Sleeper(t, actor.Leads).PID()
	zombie := Entry{PID: pid, PGID: pid, Exited: true}
	for _, hides := range []bool{false, true} {
		actor.Set(t, &hidesProcesses, func() bool { return hides })
		if got := (band{Key: Key{PID: pid}}).lives([]Entry{zombie}); got != hides {
			t.Errorf("/proc may hide a process: %v; the group lives: %v", hides, got)
		}
	}
}
