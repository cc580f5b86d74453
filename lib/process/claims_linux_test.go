package process

import (
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adlock/test/need"
)

func openFiles(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

func TestNoDescriptorOfAnEndedJobStaysOpen(t *testing.T) {
	const jobs = 8
	var before int
	for i := range jobs + 1 {
		a := sleeper(t, leads)
		id := a.id()
		mustEnd(t, Killer{Pause: patient}, Job{Owner: id, FileUID: os.Getuid()})
		a.wait()
		for range jobs {
			id.Life()
			hidden(os.Getpid())
		}
		if i == 0 {
			before = openFiles(t) // with what the first job leaves for good
		}
	}
	if after := openFiles(t); after >= before+jobs {
		t.Errorf("%d files were open, then %d", before, after)
	}
}

func TestAHiddenProcessIsAskedOfTheKernel(t *testing.T) {
	a := sleeper(t, leads)
	e, there := hidden(a.pid())
	if !there || !e.hidden || e.pid != a.pid() || e.pgid != a.pid() || e.dead {
		t.Errorf("%v, %+v", there, e)
	}
	if sid, err := unix.Getsid(a.pid()); err != nil || e.sid != sid {
		t.Errorf("session %d, want %d (%v)", e.sid, sid, err)
	}
	if e.ppid != 0 && e.ppid != os.Getpid() { // 0 before Linux 6.13
		t.Errorf("its parent is %d", e.ppid)
	}
	if unix.Kill(a.pid(), unix.SIGKILL) != nil {
		t.Fatal("it is gone already")
	}
	eventually(t, "a zombie is dead", func() bool { e, there := hidden(a.pid()); return there && e.dead })
	a.wait()
	if e, there := hidden(a.pid()); there {
		t.Errorf("there is still %+v", e)
	}
}

func TestOneselfAndTheParentAreAncestors(t *testing.T) {
	line := Ancestors()
	for _, pid := range []int{os.Getpid(), os.Getppid(), 1} {
		if pid != 0 && (!IsAncestor(pid) || !slices.Contains(line, pid)) {
			t.Errorf("%d is none of %v", pid, line)
		}
	}
	a := sleeper(t, syscall.SysProcAttr{})
	if IsAncestor(a.pid()) || slices.Contains(line, a.pid()) {
		t.Error("a child is one")
	}
}

func TestOfPidOneThereIsNoGroup(t *testing.T) {
	for pid, want := range map[int]int{0: 0, 1: 0, 2: 2, 4711: 2} {
		id := Identity{PID: pid, PGID: pid, SID: pid, Start: 7}
		if got := len(id.bands()); got != want {
			t.Errorf("%d led %d bands, want %d", pid, got, want)
		}
		if got := len(id.bandsOfCommand()); got != want {
			t.Errorf("%d as a command may have made %d bands, want %d", pid, got, want)
		}
	}
	member := Identity{PID: 4711, PGID: 4700, SID: 4600}
	if got := member.bands(); len(got) != 0 {
		t.Errorf("who leads nothing led %+v", got)
	}
}

func TestTheLaterOfTwoTimes(t *testing.T) {
	now := time.Now()
	if then := now.Add(time.Second); later(now, then) != then || later(then, now) != then {
		t.Error("it is the earlier one")
	}
}

func TestOneProcessHasOneInodeAndNobodyHasNone(t *testing.T) {
	a := sleeper(t, leads)
	mine, others := inodeOf(os.Getpid()), inodeOf(a.pid())
	if (mine != 0) != pidfs() || (others != 0) != pidfs() || pidfs() && mine == others {
		t.Errorf("inodes %d and %d, pidfs %v", mine, others, pidfs())
	}
	if again := inodeOf(os.Getpid()); again != mine {
		t.Errorf("inode %d, then %d", mine, again)
	}
	if inode := inodeOfPidfd(-1); inode != 0 {
		t.Errorf("no descriptor has inode %d", inode)
	}
	unix.Kill(a.pid(), unix.SIGKILL)
	a.wait()
	if inode := inodeOf(a.pid()); inode != 0 {
		t.Errorf("nobody has inode %d", inode)
	}
}

func TestNoPidLivesBelowOne(t *testing.T) {
	for _, pid := range []int{0, -1, -os.Getpid(), -1 << 31} {
		if PIDLives(pid) {
			t.Errorf("%d lives", pid)
		}
	}
	if !PIDLives(1) || !PIDLives(os.Getpid()) {
		t.Error("1 or this process does not live")
	}
}

func TestADeathEndsTheWait(t *testing.T) {
	a := sleeper(t, leads)
	h, err := hold(key{a.pid(), a.id().Start}, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer h.close()
	if h.fd < 0 {
		need.Skip(t, "no pidfd wakes anybody here")
	}
	// A signal of the runtime's own may wake it too, now and then.
	wait := func(d time.Duration) (calls int) {
		for end := time.Now().Add(d); time.Now().Before(end) && !h.dead(); calls++ {
			awaitDeath([]handle{{h.key, -1}, h}, time.Until(end))
		}
		return calls
	}
	if calls := wait(brief); calls > 20 {
		t.Errorf("nobody died, and it was woken %d times", calls)
	}
	unix.Kill(a.pid(), unix.SIGKILL)
	begun := time.Now()
	if calls := wait(2 * patient); !h.dead() || time.Since(begun) > patient || calls > 20 {
		t.Errorf("woken %d times in %v, dead is %v", calls, time.Since(begun), h.dead())
	}
}

func TestOnlyESRCHFromTheKernelMeansGone(t *testing.T) {
	a := sleeper(t, leads)
	for _, c := range []struct{ err, want error }{{unix.EIO, unix.EIO}, {unix.EACCES, unix.EACCES}, {unix.ENOENT, unix.EPERM}, {unix.ESRCH, unix.ESRCH}} {
		if got := missing(a.pid(), c.err); got != c.want {
			t.Errorf("of one that lives: %v means %v, want %v", c.err, got, c.want)
		}
	}
	unix.Kill(a.pid(), unix.SIGKILL)
	a.wait()
	for _, c := range []struct{ err, want error }{{unix.EIO, unix.EIO}, {unix.ENOENT, unix.ESRCH}, {unix.ESRCH, unix.ESRCH}} {
		if got := missing(a.pid(), c.err); got != c.want {
			t.Errorf("of one that is gone: %v means %v, want %v", c.err, got, c.want)
		}
	}
	if got := inode("/proc/self/ns/none"); got != 0 {
		t.Errorf("a namespace that there is none of has inode %d", got)
	}
}
