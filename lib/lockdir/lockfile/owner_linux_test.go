package lockfile

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/locker"
	"adlock/lib/process"
	"adlock/lib/record"
	"adlock/test/support/helper"
	"adlock/test/support/must"
)

// locksIn puts locks of one owner in place under these names.
func locksIn(t *testing.T, d *Dir, owner process.Identity, names ...string) {
	t.Helper()
	for _, name := range names {
		r := fullRecord()
		r.Owner = owner
		must.Do(t, os.WriteFile(d.Path(name), r.Bytes(), 0o600))
	}
}

// lock opens a lock by its file name until the test ends.
func lock(t *testing.T, d *Dir, name string) *Active {
	t.Helper()
	a := must.Get(d.Lock(atom.ParseFile(name)))(t)
	t.Cleanup(func() { a.Close() })
	return a
}

func isGuarded(t *testing.T, d *Dir, name string) bool {
	t.Helper()
	a := must.Get(d.Lock(atom.ParseFile(name)))(t)
	defer a.Close()
	err := a.Guard(0)
	if err != nil && !errors.Is(err, locker.ErrGuarded) {
		t.Fatal(err)
	}
	return err != nil
}

// namesOf closes locks, and returns their file names.
func namesOf(locks []*Active) (names []string) {
	for _, a := range locks {
		names = append(names, a.File.String())
		a.Close()
	}
	return names
}

func TestAllLocksOfAnOwnerButTheOpenOneAreGuarded(t *testing.T) {
	d := newDir(t)
	owner, another := member(20), member(21)
	const reader = "read." + reads + ".20"
	locksIn(t, d, owner, "lock.p.h.o.a", "lock.p.h.o.m", "lock.p.h.o.x", "lock.p.h.o.z", reader)
	locksIn(t, d, another, "lock.p.h.o.b")
	for name, content := range map[string]string{"lock.p.h.o.c": "20\n", "lock.p.h.o.d": "", "lock.p.h.o.e": "damaged\n", "last.p.h.o.f": string(fullRecord().Bytes())} {
		must.Do(t, os.WriteFile(d.Path(name), []byte(content), 0o600))
	}
	must.Do(t, os.Mkdir(d.Path("lock.p.h.o.g"), 0o700)) // not a lock, and in no process's way
	held := must.Get(d.LocksOf([]process.Identity{owner}, atom.ParseFile("lock.p.h.o.m"), 0))(t)
	for name, want := range map[string]bool{"lock.p.h.o.a": true, "lock.p.h.o.b": false, "lock.p.h.o.c": false, "lock.p.h.o.d": false, "lock.p.h.o.m": false, "lock.p.h.o.x": true, reader: true} {
		if got := isGuarded(t, d, name); got != want {
			t.Errorf("%s: guarded is %v", name, got)
		}
	}
	if names := namesOf(held); !slices.Equal(names, []string{"lock.p.h.o.x", "lock.p.h.o.z", reader, "lock.p.h.o.a"}) {
		t.Errorf("got %q", names)
	}
}

// If two newcomers wait for each other, the holder of the lock with the later name gives up first.
func TestALockWithAnEarlierNameIsWaitedForHalfAsLong(t *testing.T) {
	d := newDir(t)
	owner := member(20)
	locksIn(t, d, owner, "lock.p.h.o.a", "lock.p.h.o.m", "lock.p.h.o.z")
	const wait = 400 * time.Millisecond
	for _, c := range []struct {
		name string
		held []string
		took time.Duration
	}{{"lock.p.h.o.a", []string{"lock.p.h.o.z"}, wait / 2}, {"lock.p.h.o.z", nil, wait}} {
		synctest.Test(t, func(t *testing.T) { // its clock stands still while any goroutine runs
			guard := lock(t, d, c.name)
			must.Do(t, guard.Guard(0))
			begun := time.Now()
			held, err := d.LocksOf([]process.Identity{owner}, atom.ParseFile("lock.p.h.o.m"), wait)
			took := time.Since(begun)
			var guarded *GuardedError
			if !errors.As(err, &guarded) || guarded.Path != d.Path(c.name) || fault.KindOf(err) != fault.Denied {
				t.Errorf("%s: got %v", c.name, err)
			}
			if took != c.took {
				t.Errorf("%s: waited for %v", c.name, took)
			}
			if names := namesOf(held); !slices.Equal(names, c.held) {
				t.Errorf("%s: held are %q", c.name, names)
			}
			must.Do(t, guard.Close())
		})
	}
}

func TestALockThatIsGoneOrReplacedIsNotTheOwners(t *testing.T) {
	for claim, change := range map[string]func(d *Dir) error{
		"gone":     func(d *Dir) error { return os.Remove(d.Path("lock.p.h.o.x")) },
		"replaced": func(d *Dir) error { return os.Rename(d.Path("other"), d.Path("lock.p.h.o.x")) },
	} {
		d := newDir(t)
		owner := member(20)
		locksIn(t, d, owner, "lock.p.h.o.x")
		locksIn(t, d, member(21), "other")
		guard := lock(t, d, "lock.p.h.o.x")
		must.Do(t, guard.Guard(0))
		failed := make(chan error)
		go func() {
			got, err := d.LockOf(owner, atom.ParseFile("lock.p.h.o.x"), helper.Patience)
			if got != nil {
				err = errors.New("it is the owner's")
			}
			failed <- err
		}()
		time.Sleep(20 * time.Millisecond) // if it has not opened the lock by now, it finds it changed
		must.Do(t, change(d))
		must.Do(t, guard.Close())
		if err := <-failed; err != nil {
			t.Errorf("%s: %v", claim, err)
		}
	}
}

func TestAnUnreadableLockIsAnErrorUnlessItMayNotBeRead(t *testing.T) {
	d := newDir(t)
	must.Do(t, os.Mkdir(d.Path("lock.p.h.o.x"), 0o700))
	for _, name := range []string{"lock.p.h.o.x", "lock.p.h.o.y"} {
		if a, err := d.LockOf(member(20), atom.ParseFile(name), 0); a != nil || err != nil {
			t.Errorf("%s: %v, %v", name, a, err)
		}
	}
	bad := closed(d)
	if _, err := bad.LockOf(member(20), atom.ParseFile("lock.p.h.o.x"), 0); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if _, err := bad.LocksOf([]process.Identity{member(20)}, atom.ParseFile("lock.p.h.o.x"), 0); err == nil {
		t.Error("no error")
	}
}

func TestAnOwnerIsASupervisorIfTheRecordSaysSo(t *testing.T) {
	d := newDir(t)
	r := fullRecord()
	for _, supervised := range []bool{false, true} {
		r.Supervised = supervised
		must.Do(t, os.WriteFile(d.Path("lock.x"), r.Bytes(), 0o600))
		a := active(t, d)
		if a.SupervisedBy(r.Owner) != supervised || a.SupervisedBy(member(20)) {
			t.Errorf("supervised is %v", supervised)
		}
		a.Content = record.Damaged
		if a.SupervisedBy(r.Owner) {
			t.Error("a damaged one is believed")
		}
	}
}

// While the owner lives, no other process keeps its lock, not even one of its group.
func TestALockIsHeldByItsOwnerAndThenByItsKnownJob(t *testing.T) {
	command, survivor, stranger := member(21), member(22), member(23)
	ofGroup, ofSession := member(24), member(25)
	for _, alive := range []bool{true, false} {
		d, r := newDir(t), fullRecord()
		id := must.Get(process.Of(os.Getpid()))(t)
		if r.Owner = id; !alive {
			r.Owner.Start++
			r.Owner.Inode = 0
		}
		must.Do(t, os.WriteFile(d.Path("lock.x"), r.Bytes(), 0o600))
		a := active(t, d)
		must.Do(t, a.Guard(0))
		must.Do(t, a.AppendCommand(command))
		must.Do(t, a.AppendSurvivors([]process.Identity{survivor}))
		ofGroup.PGID, ofSession.SID = r.Owner.PID, r.Owner.PID
		for claim, c := range map[string]struct {
			id   process.Identity
			want bool
		}{"the owner": {r.Owner, true}, "the command": {command, !alive}, "a survivor": {survivor, !alive}, "of its group": {ofGroup, !alive}, "of its session": {ofSession, !alive}, "a stranger": {stranger, false}} {
			if got, err := a.heldBy([]process.Identity{stranger, c.id}); got != c.want || err != nil {
				t.Errorf("the owner lives: %v; held by %s: %v, %v", alive, claim, got, err)
			}
		}
		if held, err := a.heldBy(nil); held || err != nil {
			t.Error("held, though no process holds it:", err)
		}
	}
}
