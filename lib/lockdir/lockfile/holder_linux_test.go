package lockfile

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/locker"
	"adlock/lib/process"
	"adlock/test/support/helper"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

// The kernel's table is read in pieces: if a line goes meanwhile, the lines behind it move up.
func TestTheGuardsHolderIsFoundWhileOtherLocksChange(t *testing.T) {
	d := lockedDir(t)
	a := active(t, d)
	must.Do(t, a.Guard(0))
	done, gone := make(chan bool), make(chan bool)
	go func() {
		defer close(gone)
		comeAndGo(t, d, done)
	}()
	defer func() { close(done); <-gone }()
	for range 500 {
		if holder := a.GuardHolder(); holder != os.Getpid() {
			t.Fatalf("%d holds it", holder)
		}
	}
}

func TestTheGuardsHolderIsFoundAmongManyLocks(t *testing.T) {
	d := lockedDir(t)
	a, other := active(t, d), active(t, d)
	for range 200 {
		f := must.Get(os.CreateTemp(d.path, ""))(t)
		defer f.Close()
		must.Do(t, unix.Flock(int(f.Fd()), unix.LOCK_EX))
	}
	wantHolder(t, other, 0)
	must.Do(t, a.Guard(0))
	wantHolder(t, other, os.Getpid())
	if w := d.Watcher("y"); w != (locker.Watcher{}) {
		t.Errorf("none watches, but %+v", w)
	}
	must.Do(t, os.Link(a.Path(), d.Path(atom.Name("x").LookLock())))
	if w := d.Watcher("x"); w.PID != os.Getpid() || w.Since != a.Modified() {
		t.Errorf("%+v watches", w)
	}
}

// comeAndGo takes and releases locks of other files, a few at a time.
func comeAndGo(t *testing.T, d *Dir, done <-chan bool) {
	var held [10]*os.File
	defer func() { // otherwise they are closed later, while other tests count open files
		for _, f := range held {
			f.Close()
		}
	}()
	for i := 0; ; i = (i + 1) % len(held) {
		held[i].Close() // an error if there is none yet
		select {
		case <-done:
			return
		default:
		}
		var err error
		if held[i], err = os.CreateTemp(d.path, ""); err != nil || unix.Flock(int(held[i].Fd()), unix.LOCK_EX) != nil {
			t.Error("no lock: ", err)
			return
		}
		os.Remove(held[i].Name())
	}
}

// graceOf sets the grace of an ending until the test ends.
func graceOf(t *testing.T, grace time.Duration) {
	before := GuardGrace
	GuardGrace = grace
	t.Cleanup(func() { GuardGrace = before })
}

// run starts a process that ends with the test.
func run(t *testing.T, command ...string) (pid int) {
	t.Helper()
	c := exec.Command(command[0], command[1:]...)
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	must.Do(t, c.Start())
	t.Cleanup(func() { syscall.Kill(-c.Process.Pid, syscall.SIGKILL); c.Wait() })
	return c.Process.Pid
}

func stop(t *testing.T, pid int) {
	t.Helper()
	must.Do(t, syscall.Kill(pid, syscall.SIGSTOP))
	helper.Eventually(t, "it stands still", func() bool { still, _ := process.Still(pid); return still })
}

func TestAStoppedHolderIsReportedAfterThreePausesAndTheGrace(t *testing.T) {
	pid := run(t, "sleep", "60")
	graceOf(t, 0)
	must.Do(t, StandsStill(pid, 0)) // it runs
	stop(t, pid)
	for _, c := range []struct {
		pause, grace time.Duration
		still        bool
	}{
		{0, 0, true}, {0, time.Hour, false}, {time.Hour, 0, false},
		{time.Hour, -3 * time.Hour, true}, {time.Hour, time.Minute - 3*time.Hour, false},
	} {
		graceOf(t, c.grace)
		err := StandsStill(pid, c.pause)
		if (err != nil) != c.still || err != nil && err.Error() != "process "+strconv.Itoa(pid)+", which is changing the lock, is stopped" {
			t.Errorf("with pauses of %v and a grace of %v: %v", c.pause, c.grace, err)
		}
	}
	graceOf(t, 0)
	must.Do(t, StandsStill(0, 0)) // no process
}

func TestTheErrorOfAHeldGuardNamesItsHolder(t *testing.T) {
	need.Tools(t, "flock")
	d := lockedDir(t)
	a := active(t, d)
	pid := run(t, "flock", "-o", a.Path(), "sleep", "60")
	helper.Eventually(t, "the guard is held", func() bool { return a.GuardHolder() == pid })
	stop(t, pid)
	for _, c := range []struct {
		grace  time.Duration
		kind   fault.Kind
		reason string
	}{
		{time.Hour, fault.Denied, locker.ErrGuarded.Error()},
		{0, fault.NotPermitted, "process " + strconv.Itoa(pid) + ", which is changing the lock, is stopped; to let it go on: kill -CONT " + strconv.Itoa(pid)},
	} {
		graceOf(t, c.grace)
		err := a.GuardReporting(0)
		var guarded *GuardedError
		if !errors.As(err, &guarded) || guarded.Path != a.Path() || guarded.Holder != pid || !errors.Is(err, locker.ErrGuarded) {
			t.Fatalf("got %#v", err)
		}
		if fault.KindOf(err) != c.kind || err.Error() != a.Path()+": "+c.reason {
			t.Errorf("kind %v: %v", fault.KindOf(err), err)
		}
	}
	must.Do(t, syscall.Kill(-pid, syscall.SIGKILL))
	helper.Eventually(t, "the guard is free", func() bool { return a.GuardHolder() == 0 })
	must.Do(t, a.GuardReporting(0))
}

// A child that another thread has just forked has a copy of every descriptor.
func TestCloseReleasesTheGuardThoughTheDescriptorWasCopied(t *testing.T) {
	d := lockedDir(t)
	a, other := active(t, d), active(t, d)
	must.Do(t, a.Guard(0))
	copied := must.Get(unix.Dup(a.fd))(t)
	defer unix.Close(copied)
	must.Do(t, a.Close())
	must.Do(t, other.Guard(0))
}
