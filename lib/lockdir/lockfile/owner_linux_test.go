package lockfile

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/locker"
	"adlock/lib/process"
	"adlock/lib/record"
	"adlock/lib/sysfile"
	"adlock/test/support/intercept"
	"adlock/test/support/must"
	"adlock/test/support/need"
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

func TestAllOtherLocksOfTheOwnerAreGuarded(t *testing.T) {
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
func TestTheWaitForALockWithAnEarlierNameIsHalfAsLong(t *testing.T) {
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

func TestLockOfReturnsNoLockThatWasRemovedOrReplaced(t *testing.T) {
	for claim, change := range map[string]func(d *Dir) error{
		"gone":     func(d *Dir) error { return os.Remove(d.Path("lock.p.h.o.x")) },
		"replaced": func(d *Dir) error { return os.Rename(d.Path("other"), d.Path("lock.p.h.o.x")) },
	} {
		d := newDir(t)
		owner := member(20)
		locksIn(t, d, owner, "lock.p.h.o.x")
		locksIn(t, d, member(21), "other")
		intercept.Run(t, func() {
			if got, err := d.LockOf(owner, atom.ParseFile("lock.p.h.o.x"), 0); got != nil || err != nil {
				t.Errorf("%s: %v, %v", claim, got, err)
			}
		}, func(intercept.Call) unix.Errno { _ = change(d); return 0 }, unix.SYS_FLOCK) // it has read the lock
	}
}

func TestLockOfIgnoresAMissingLockAndADirectory(t *testing.T) {
	d := newDir(t)
	must.Do(t, os.Mkdir(d.Path("lock.p.h.o.x"), 0o700))
	for _, name := range []string{"lock.p.h.o.x", "lock.p.h.o.y"} {
		if a, err := d.LockOf(member(20), atom.ParseFile(name), 0); a != nil || err != nil {
			t.Errorf("%s: %v, %v", name, a, err)
		}
	}
}

// While the owner lives, no other process keeps its lock, not even one of its group.
func TestAJobHoldsItsLockOnlyOnceTheOwnerIsDead(t *testing.T) {
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

// loaded calls use with a lock of this age on a file system of this machine (tmpfs), or on one that machines
// may share: the kernel does not tell what it is.
func loaded(t *testing.T, text func(inode uint64) string, age time.Duration, shared bool, use func(*Active)) {
	t.Helper()
	a := &Active{file: file{dir: &Dir{}, fd: must.Get(unix.MemfdCreate("", unix.MFD_CLOEXEC))(t)}}
	defer a.Close()
	must.Do(t, a.stat())
	must.Do(t, a.write([]byte(text(a.st.Ino))))
	must.Do(t, setModified(a.fd, time.Now().Add(-age)))
	must.Do(t, a.stat())
	intercept.Run(t, func() {
		must.Do(t, a.load())
		use(a)
	}, func(intercept.Call) unix.Errno {
		if shared {
			return unix.EIO
		}
		return 0
	}, unix.SYS_FSTATFS)
}

func TestALockOfAnotherBootOrMachineOrABackupIsRecognized(t *testing.T) {
	need.MachineID(t)
	here, node := process.Here(), must.Get(sysfile.NodeName())(t)
	for _, c := range []struct {
		shared              bool
		machine, boot, node string
		moved               uint64 // from the inode in the record to that of the file
		read                string
		want                [3]bool // of another boot, of another machine, restored
	}{
		{true, here.Machine, "b", node, 0, here.Machine, [3]bool{true, false, false}},
		{true, here.Machine, "b", "clone", 0, "", [3]bool{true, false, false}},
		{true, here.Machine, here.Boot, node, 1, here.Machine, [3]bool{false, false, false}},
		{true, here.Machine, "", node, 0, here.Machine, [3]bool{false, false, false}},
		{true, "m", "b", node, 1, "m", [3]bool{false, true, true}},
		{true, "", "b", "clone", 0, "", [3]bool{false, false, false}},
		{false, here.Machine, "b", "clone", 1, here.Machine, [3]bool{false, false, false}},
		{false, "m", "b", node, 0, "m", [3]bool{false, true, false}},
	} {
		text := func(inode uint64) string {
			r := fullRecord()
			r.Owner.Machine, r.Owner.Boot, r.Node, r.File = c.machine, c.boot, c.node, inode+c.moved
			r.Job = r.Owner
			return string(r.Bytes()) + record.SurvivorLine(1, member(20))
		}
		loaded(t, text, 0, c.shared, func(a *Active) {
			got, machine := [3]bool{a.OtherBoot(), a.OtherMachine(), a.Restored()}, a.Record.Owner.Machine
			if got != c.want || machine != c.read || a.Record.Job.Machine != c.read || a.Appended.Survivors[0].Machine != c.read {
				t.Errorf("%+v: %v, machine %q", c, got, machine)
			}
		})
	}
}

func TestALockIsWreckedOnlyIfCutOrZeroedBeforeThisBoot(t *testing.T) {
	const before = 20 * 365 * 24 * time.Hour
	if !process.BeforeBoot(time.Now().Add(-before)) {
		need.Skip(t, "in a time namespace")
	}
	zeros, whole := strings.Repeat("\x00", 99), string(fullRecord().Bytes())
	for _, c := range []struct {
		text   string
		age    time.Duration
		shared bool
		want   record.Content
	}{
		{zeros, before, false, record.Empty}, {zeros, before, true, record.Damaged}, {zeros, 0, false, record.Damaged},
		{strings.Repeat("x", maxContent+1), before, false, record.Damaged},
		{whole[:99], before, false, record.Empty}, {zeros + whole, before, false, record.Empty},
		{whole + "unknown\n", before, false, record.Damaged}, {"4711\n", before, false, record.PIDOnly}, {"", before, false, record.Empty},
	} {
		loaded(t, func(uint64) string { return c.text }, c.age, c.shared, func(a *Active) {
			if a.Content != c.want || a.Wrecked != (c.want == record.Empty && c.text != "") {
				t.Errorf("%q, %v old, shared %v: content %d, wrecked %v", c.text, c.age, c.shared, a.Content, a.Wrecked)
			}
		})
	}
}

func TestALocksAgeFollowsTheMonotonicClockWithinOneBoot(t *testing.T) {
	here, real := process.Here(), time.Unix(1_000_000, 0)
	for _, c := range []struct {
		boot    string
		fixed   time.Time
		content record.Content
		held    bool
	}{
		{here.Boot, time.Time{}, record.Full, true}, {"b", time.Time{}, record.Full, false},
		{here.Boot, real, record.Full, false}, {here.Boot, time.Time{}, record.PIDOnly, false},
	} {
		a := Active{Content: c.content, Record: record.Record{Owner: here, Monotonic: -24 * time.Hour}}
		a.Record.Owner.Boot, a.st.Mtim.Sec = c.boot, real.Unix()-60
		if age := a.Age(locker.Moment{Real: real, Fixed: c.fixed}); age != time.Minute && !c.held || c.held && age < 24*time.Hour {
			t.Errorf("%+v: %v", c, age)
		}
	}
	a := Active{Content: record.Full}
	a.st.Mtim.Sec = real.Unix()
	if age := a.Age(locker.Moment{Real: real, Fixed: real.Add(-time.Minute)}); age != 0 {
		t.Errorf("by a pass clock that lies before the lock: %v", age)
	}
}
