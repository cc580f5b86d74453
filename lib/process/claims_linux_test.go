package process

import (
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"adlock/test/support/actor"
	"adlock/test/support/must"
)

func TestAHiddenProcessIsReadWithoutProc(t *testing.T) {
	a := actor.Sleeper(t, syscall.SysProcAttr{Setsid: true})
	e, there := hidden(a.PID())
	if !there || !e.Hidden || e.PID != a.PID() || e.PGID != a.PID() || e.Start < 1<<63 || e.Exited {
		t.Errorf("%v, %+v", there, e)
	}
	if e.SID != a.PID() {
		t.Errorf("session %d, want %d", e.SID, a.PID())
	}
	if e.Parent != os.Getpid() && (e.Parent != 0 || isLinux(t, 6, 13)) {
		t.Errorf("its parent is %d", e.Parent)
	}
	if unix.Kill(a.PID(), unix.SIGKILL) != nil {
		t.Fatal("it is gone already")
	}
	actor.Eventually(t, "a zombie is dead", func() bool { e, there := hidden(a.PID()); return there && e.Exited })
	a.Await()
	if e, there := hidden(a.PID()); there {
		t.Errorf("there is still %+v", e)
	}
}

func TestAProcessIsGoneOnceItIsDeadOrItsPidIsReused(t *testing.T) {
	for _, pid := range []int{os.Getpid(), os.Getppid()} {
		if Gone(pid) {
			t.Errorf("%d is taken for gone", pid)
		}
	}
	a := actor.Sleeper(t, syscall.SysProcAttr{})
	own := must.Get(look(os.Getpid()))(t)
	if later, err := look(a.PID()); err != nil || Gone(a.PID()) != (later.Start > own.Start) { // in one tick neither is later
		t.Errorf("%+v, %v: a process that began after this one has no pid of before", later, err)
	}
	if unix.Kill(a.PID(), unix.SIGKILL) != nil {
		t.Fatal("it is gone already")
	}
	actor.Eventually(t, "a zombie is gone", func() bool { return Gone(a.PID()) })
	a.Await()
	if !Gone(a.PID()) {
		t.Error("a pid without a process is not gone")
	}
}

func TestProcess1LeadsNoGroupOrSession(t *testing.T) {
	for pid, want := range map[int]int{0: 0, 1: 0, 2: 2, 4711: 2} {
		id := Identity{PID: pid, PGID: pid, SID: pid, Start: 7}
		if led, made := len(id.bands(false)), len(id.bands(true)); led != want || made != want {
			t.Errorf("%d led %d bands, as a command it may have made %d, want %d", pid, led, made, want)
		}
	}
	member := Identity{PID: 4711, PGID: 4700, SID: 4600}
	if led, made := member.bands(false), member.bands(true); len(led) != 0 || len(made) != 2 {
		t.Errorf("a process that leads nothing led %+v, and as a command may have made %+v", led, made)
	}
}

func TestAProcessHasItsOwnInodeUntilItIsDead(t *testing.T) {
	a := actor.Sleeper(t, actor.Leads)
	mine, others := inodeNow(os.Getpid()), inodeNow(a.PID())
	if (mine != 0) != pidfs() || (others != 0) != pidfs() || pidfs() && mine == others {
		t.Errorf("inodes %d and %d, pidfs %v", mine, others, pidfs())
	}
	if again, none := inodeNow(os.Getpid()), inodeOfPidfd(-1); again != mine || none != 0 {
		t.Errorf("inode %d, then %d; %d of no descriptor", mine, again, none)
	}
	a.Kill()
	if inode := inodeNow(a.PID()); inode != 0 {
		t.Errorf("no process has inode %d", inode)
	}
}

func TestOnlyESRCHFromTheKernelMeansThatAProcessIsGone(t *testing.T) {
	a := actor.Sleeper(t, actor.Leads)
	means := func(err, want error) {
		t.Helper()
		if got := missing(a.PID(), err); got != want {
			t.Errorf("%v means %v, want %v", err, got, want)
		}
	}
	for err, want := range map[error]error{
		unix.EIO: unix.EIO, unix.EACCES: unix.EACCES, unix.ENOENT: unix.EPERM, unix.ESRCH: unix.ESRCH,
	} {
		means(err, want)
	}
	a.Kill()
	for err, want := range map[error]error{unix.EIO: unix.EIO, unix.ENOENT: unix.ESRCH, unix.ESRCH: unix.ESRCH} {
		means(err, want)
	}
	if got, err := inode("/proc/self/ns/none"); got != 0 || err != nil {
		t.Errorf("a namespace that there is none of has inode %d", got)
	}
}

// inodeNow is the inode of a process's pidfd, 0 if there is none.
func inodeNow(pid int) uint64 {
	inode, _ := inodeOf(pid)
	return inode
}
