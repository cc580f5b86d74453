package lockfile

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"adlock/lib/fault"
	"adlock/lib/locker"
	"adlock/lib/process"
	"adlock/lib/record"
	"adlock/test/support/must"
)

func TestALockReadBackHasTheRecordThatWasWritten(t *testing.T) {
	d := newDir(t)
	want := fullRecord()
	put(t, d, want)
	a := active(t, d)
	if a.Content != record.Full || a.Record != want || a.File.Called() != "x" || a.Path() != d.Path("lock.x") || a.Job().FileUID != os.Geteuid() || !a.Named() || a.SupervisedBy(want.Owner) {
		t.Errorf("%+v, %q, %q, %d", a.Record, a.File.Called(), a.Path(), a.Job().FileUID)
	}
	if must.Do(t, a.Remove()); a.Named() {
		t.Error("a removed lock has its name")
	}
}

func TestOneGuardExcludesAnother(t *testing.T) {
	d := lockedDir(t)
	first, second := active(t, d), active(t, d)
	must.Do(t, first.Guard(0))
	if err := second.Guard(20 * time.Millisecond); !errors.Is(err, locker.ErrGuarded) {
		t.Fatalf("two guards: %v", err)
	}
	released := make(chan error, 1)
	go func() { released <- first.Close() }()
	must.Do(t, second.Guard(90*time.Second))
	must.Do(t, <-released)
}

// The guard belongs to one inode: a process that waited for it must notice that the name now leads elsewhere.
func TestGuardingARemovedOrRewrittenLockFails(t *testing.T) {
	for claim, change := range map[string]func(t *testing.T, d *Dir){
		"removed":  func(t *testing.T, d *Dir) { must.Do(t, os.Remove(d.Path("lock.x"))) },
		"replaced": func(t *testing.T, d *Dir) { must.Do(t, os.Remove(d.Path("lock.x"))); put(t, d, fullRecord()) },
		"rewritten in place": func(t *testing.T, d *Dir) {
			must.Do(t, os.WriteFile(d.Path("lock.x"), fullRecord().Bytes(), 0o600))
		},
		"emptied":         func(t *testing.T, d *Dir) { must.Do(t, os.Truncate(d.Path("lock.x"), 0)) },
		"grown too large": func(t *testing.T, d *Dir) { must.Do(t, os.Truncate(d.Path("lock.x"), 1<<40)) },
		"a link in its place": func(t *testing.T, d *Dir) {
			must.Do(t, os.Rename(d.Path("lock.x"), d.Path("elsewhere")))
			must.Do(t, os.Symlink("elsewhere", d.Path("lock.x")))
		},
	} {
		t.Run(claim, func(t *testing.T) {
			d := lockedDir(t)
			a := active(t, d)
			change(t, d)
			if err := a.Guard(0); !errors.Is(err, locker.ErrLost) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestTakingTheGuardReadsTheLockAgain(t *testing.T) {
	d := newDir(t)
	must.Do(t, os.WriteFile(d.Path("lock.x"), nil, 0o600))
	a := active(t, d)
	must.Do(t, os.WriteFile(d.Path("lock.x"), []byte("4711\n"), 0o600)) // shlock has finished
	if a.Content != record.Empty {
		t.Fatal("not empty at first")
	}
	must.Do(t, a.Guard(0))
	if a.Content != record.PIDOnly {
		t.Errorf("content is %d", a.Content)
	}
}

func TestAMissingMachineIDIsReportedOnlyIfItWouldDecide(t *testing.T) {
	for _, c := range []struct {
		owner, here process.Identity
		machine     bool // whether the reason names the machine id
	}{
		{process.Identity{Boot: "a"}, process.Identity{Boot: "b"}, true},
		{process.Identity{Boot: "a"}, process.Identity{Boot: "a"}, false},
		{process.Identity{Boot: "a", Machine: "m"}, process.Identity{Boot: "b"}, false},
		{process.Identity{}, process.Identity{}, true},
		{process.Identity{Boot: "a"}, process.Identity{}, false},
		{process.Identity{Machine: "m"}, process.Identity{Boot: "b", Machine: "m"}, false},
		{process.Identity{Boot: "a"}, process.Identity{Boot: "b", Machine: "m"}, false},
	} {
		if why := unchecked(c.owner, c.here).Error(); strings.Contains(why, "machine-id") != c.machine {
			t.Errorf("%+v from %+v: %s", c.owner, c.here, why)
		}
	}
}

func TestATooLargeLockIsDamagedAndATooLargeLastLockAnError(t *testing.T) {
	d := newDir(t)
	for _, file := range []string{"lock.x", "last.x"} {
		must.Do(t, os.WriteFile(d.Path(file), nil, 0o600))
		must.Do(t, os.Truncate(d.Path(file), 1<<40)) // sparse
	}
	if a := active(t, d); a.Content != record.Damaged {
		t.Errorf("content is %d", a.Content)
	}
	if _, err := d.Last("x"); fault.KindOf(err) != fault.IO {
		t.Errorf("got %v", err)
	}
}
