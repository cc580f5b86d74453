package lockfile

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/process"
	"adlock/lib/record"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

func TestSurvivorsAreNumberedAndNoneTwice(t *testing.T) {
	d, a := guardedLock(t)
	owner := a.Record.Owner
	must.Do(t, a.AppendSurvivors(nil))
	must.Do(t, a.AppendSurvivors([]process.Identity{owner, member(20), member(20), member(21)}))
	must.Do(t, a.AppendSurvivors([]process.Identity{member(21), member(22)}))
	content := must.Get(os.ReadFile(d.Path("lock.x")))(t)
	want := "survivor.1=20 100 7 5 1 2\nsurvivor.2=21 100 7 5 1 2\nsurvivor.3=22 100 7 5 1 2\n"
	if got, _ := strings.CutPrefix(string(content), string(a.Record.Bytes())); got != want {
		t.Errorf("appended is %q, want %q", got, want)
	}
}

func TestTheJobHasWhatTheLockRecords(t *testing.T) {
	d, r := newDir(t), fullRecord()
	r.Job, r.Supervised = member(30), true
	put(t, d, r)
	a := active(t, d)
	must.Do(t, a.Guard(0))
	if job := a.Job(); job.Owner != r.Owner || job.Command != r.Job || !job.Supervised || job.FileUID != os.Geteuid() || job.Uncounted {
		t.Errorf("%+v", job)
	}
	must.Do(t, a.AppendCommand(member(31)))
	must.Do(t, a.AppendSurvivors([]process.Identity{r.Job, member(31), member(32)}))
	if job := a.Job(); job.Command != member(31) || !slices.Equal(job.Survivors, []process.Identity{member(32)}) {
		t.Errorf("%+v", job)
	}
}

func TestACommandWithAnotherPidStartOrInodeIsRecorded(t *testing.T) {
	d, a := guardedLock(t)
	other, again, reused := member(31), member(30), member(30)
	again.Start++
	reused.Inode++
	for _, id := range []process.Identity{member(30), other, member(30), again, member(30), reused} {
		must.Do(t, a.AppendCommand(id))
		if got := active(t, d).Appended.Command; got != id {
			t.Errorf("recorded is %+v, want %+v", got, id)
		}
	}
}

// A lock that is not in use may be cleared by hand, so a process that cannot be proved alive does
// not count.
func TestALockIsInUseWhereAProcessIsProvedAlive(t *testing.T) {
	alive := must.Get(process.Of(os.Getpid()))(t)
	dead := alive
	dead.Start, dead.Inode = dead.Start+1, 0
	holding := func(owner process.Identity) string { r := fullRecord(); r.Owner = owner; return string(r.Bytes()) }
	pid := strconv.Itoa(os.Getpid())
	const lock, reader = "lock." + reads, "read." + reads + ".20"
	for _, c := range []struct{ claim, file, content, want string }{
		{"an owner", lock, holding(alive), "its owner lives (process " + pid + "); to end it: adlock stop " + reads},
		{"a reader", reader, holding(alive), "its owner lives (process " + pid + "); to end it: adlock stop " + reader},
		{"a pid", lock, pid + "\n", "its owner lives (process " + pid + ")"},
		{"a pid of no process", lock, "4194305\n", ""},
		{"a dead owner", lock, holding(dead), ""},
		{"a survivor", lock, holding(dead) + record.SurvivorLine(1, alive), "its owner is dead, but processes of its job are left; to end it: adlock stop " + reads},
		{"one elsewhere", lock, holding(member(20)), ""},
		{"an empty one", lock, "", ""},
		{"a damaged one", lock, pid + "\nx\n", ""},
	} {
		d := newDir(t)
		must.Do(t, os.WriteFile(d.Path(c.file), []byte(c.content), 0o600))
		a := must.Get(d.Lock(atom.ParseFile(c.file)))(t)
		if got := a.InUse(); got != c.want {
			t.Errorf("%s: %q, want %q", c.claim, got, c.want)
		}
		must.Do(t, a.Close())
	}
}

func TestTheLastSurvivorThatFitsIsRecorded(t *testing.T) {
	line := len("survivor.1=20 100 7 5 1 2\n") + len(record.ManySurvivors)
	for room, want := range map[int]bool{line - 1: false, line: true} {
		d := newDir(t)
		r := fullRecord()
		r.Atom.Operand = ""
		r.Atom.Operand = strings.Repeat("x", record.Longest-room-len(r.Bytes()))
		put(t, d, r)
		a := active(t, d)
		must.Do(t, a.Guard(0))
		must.Do(t, a.AppendSurvivors([]process.Identity{member(20)}))
		again := active(t, d)
		if recorded := len(again.Appended.Survivors) == 1; recorded != want || again.Appended.Uncounted == want || a.Appended.Uncounted == want {
			t.Errorf("room for %d bytes: %+v", room, again.Appended)
		}
		if again.st.Size > 65536 {
			t.Errorf("the lock has %d bytes", again.st.Size)
		}
		must.Do(t, a.AppendSurvivors([]process.Identity{member(21)}))
		if again := active(t, d); again.st.Size > 65536 || !again.Appended.Uncounted {
			t.Errorf("one more: %d bytes, %+v", again.st.Size, again.Appended)
		}
	}
}

func TestAnOrdinaryUserHasRootsDirectoriesAndItsOwn(t *testing.T) {
	need.Root(t)
	for owner, allowed := range map[int]bool{0: true, 1: false, 4711: true, 4712: false} {
		path := openDir(t)
		must.Do(t, os.Chown(path, owner, owner))
		if err := openedBy(t, 4711, path); (err == nil) != allowed {
			t.Errorf("a directory of %d: %v", owner, err)
		}
	}
}

// openDir makes a directory that other users can enter.
func openDir(t *testing.T) string {
	t.Helper()
	path := must.Get(os.MkdirTemp("/tmp", "adlock"))(t)
	t.Cleanup(func() { os.RemoveAll(path) })
	must.Do(t, os.Chmod(path, 0o755))
	return path
}

// openedBy opens a directory with the rights of another user and group.
func openedBy(t *testing.T, user int, path string) error {
	t.Helper()
	must.Do(t, syscall.Setresgid(-1, user, -1))
	must.Do(t, syscall.Setresuid(-1, user, -1))
	defer func() { must.Do(t, errors.Join(syscall.Setresuid(-1, 0, -1), syscall.Setresgid(-1, 0, -1))) }()
	d, err := Open(path)
	if err == nil {
		d.Close()
	}
	return err
}

// With umask 002 a user's directories are writable by the user's private group.
func TestADirectoryOfTheUsersOwnGroupMayBeOnTheWay(t *testing.T) {
	need.Root(t)
	const user, other = 4711, 4712
	for owner, allowed := range map[[2]int]bool{
		{user, user}: true, {user, other}: false, {0, user}: false, {0, 0}: true, {user, 0}: true,
	} {
		above := openDir(t)
		must.Do(t, os.Mkdir(above+"/locks", 0o755))
		must.Do(t, os.Chmod(above+"/locks", 0o755)) // whatever the umask
		must.Do(t, os.Chown(above, owner[0], owner[1]))
		must.Do(t, os.Chmod(above, 0o775))
		if err := openedBy(t, user, above+"/locks"); (err == nil) != allowed {
			t.Errorf("below a directory of %v: %v", owner, err)
		}
	}
}

func TestOnlyPrivateFilesAreBelievedInAnOpenDirectory(t *testing.T) {
	for dir, entered := range map[fs.FileMode]bool{0o700: false, 0o710: true, 0o701: true, 0o744: false} {
		path := t.TempDir()
		must.Do(t, os.Chmod(path, dir))
		d := must.Get(Open(path))(t)
		for mode, lax := range map[fs.FileMode]bool{0o600: false, 0o601: false, 0o644: false, 0o755: false, 0o620: true, 0o602: true} {
			must.Do(t, os.WriteFile(d.Path("lock.x"), nil, 0o600))
			must.Do(t, os.Chmod(d.Path("lock.x"), mode))
			a, err := d.Active("x")
			if refuse := lax && entered; (err != nil) != refuse {
				t.Errorf("directory %v, file %v: %v", dir, mode, err)
			}
			if err == nil {
				a.Close()
			}
		}
		d.Close()
	}
}

func TestARecordThatOthersMayWriteIsBelievedNowhere(t *testing.T) {
	d := newDir(t)
	for content, want := range map[string]fault.Kind{string(fullRecord().Bytes()): fault.NotPermitted, "1\n": 0, "": 0} {
		must.Do(t, os.WriteFile(d.Path("lock.x"), []byte(content), 0o600))
		must.Do(t, os.Chmod(d.Path("lock.x"), 0o660))
		a, err := d.Active("x")
		if fault.KindOf(err) != want {
			t.Errorf("%q: %v", content, err)
		}
		if err == nil {
			a.Close()
		}
	}
}

func TestALinkWhoseReplyWasLostCounts(t *testing.T) {
	d := newDir(t)
	temp := must.Get(d.temporary())(t)
	must.Do(t, temp.fill(func(uint64) []byte { return fullRecord().Bytes() }))
	must.Do(t, os.Link(d.Path(temp.temporary), d.Path("lock.x")))
	must.Do(t, temp.Link("lock.x"))
	mustHold(t, d, "lock.x")
	must.Do(t, temp.Close())
}

func TestNamedReportsWhetherThereIsATemporaryName(t *testing.T) {
	eachWay(t, func(t *testing.T, d *Dir, temp func() *TempFile) {
		one := temp()
		if one.Named() != (one.temporary != "") {
			t.Error("Named is wrong")
		}
		must.Do(t, one.Link("lock.x"))
		if one.Named() {
			t.Error("it still has a temporary name")
		}
		must.Do(t, one.Withdraw())
		mustHold(t, d)
		must.Do(t, one.Close())
	})
	d := newDir(t)
	if named, err := d.temporary(); err != nil || !named.Named() {
		t.Errorf("a temporary file has no name of its own (%v)", err)
	}
}

func TestDebrisIsAMinuteOldOrHasTwoNames(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	for age, swept := range map[time.Duration]bool{time.Minute - time.Second: false, time.Minute: true} {
		d := newDir(t)
		name := "temp." + record.NewToken()
		must.Do(t, os.WriteFile(d.Path(name), nil, 0o600))
		must.Do(t, os.Chtimes(d.Path(name), now.Add(-age), now.Add(-age)))
		must.Do(t, d.Sweep(now))
		if exists(d, name) == swept {
			t.Errorf("%v old: swept is %v", age, !swept)
		}
	}
	d := newDir(t)
	name := "temp." + record.NewToken()
	must.Do(t, os.WriteFile(d.Path("last.x"), nil, 0o600))
	must.Do(t, os.Link(d.Path("last.x"), d.Path(name)))
	must.Do(t, d.Sweep(time.Now()))
	mustHold(t, d, "last.x")
}

func TestALockIsReadUpToALimitEvenIfItGrows(t *testing.T) {
	d := newDir(t)
	for size, fits := range map[int]bool{1: true, 511: true, 512: true, 513: true, 100_000: true, maxContent: true, maxContent + 1: false, 2 * maxContent: false} {
		must.Do(t, os.WriteFile(d.Path("lock.x"), []byte(strings.Repeat("x", size)), 0o600))
		a := onlyToStat(t, d)
		for _, seen := range []int64{0, int64(size)} { // its size when it was looked at
			a.st.Size = seen
			content, err := a.read()
			if (err == nil) != fits || fits && len(content) != size {
				t.Errorf("%d bytes, %d at first: %d were read (%v)", size, seen, len(content), err)
			}
			if !fits && fault.KindOf(err) != fault.IO {
				t.Errorf("%d bytes: %v", size, err)
			}
		}
	}
}

func TestALockThatShrinksIsReadAsFarAsItGoes(t *testing.T) {
	d := newDir(t)
	must.Do(t, os.WriteFile(d.Path("lock.x"), []byte("1234\n"), 0o600))
	a := onlyToStat(t, d)
	must.Do(t, os.Truncate(d.Path("lock.x"), 2))
	if content, err := a.read(); string(content) != "12" || err != nil {
		t.Errorf("%q, %v", content, err)
	}
}

func onlyToStat(t *testing.T, d *Dir) *file {
	t.Helper()
	f := must.Get(d.openFile("lock.x", os.O_RDONLY))(t)
	t.Cleanup(func() { f.Close() })
	return f
}

func TestALastLockThatCannotBePlacedIsAnError(t *testing.T) {
	d := newDir(t)
	long := atom.Name(strings.Repeat("x", 300))
	for claim, err := range map[string]error{
		"made": d.MakeLast(long, record.Memory{}), "stamped anew": d.Stamp(long, record.Memory{}), "remembered": d.Remember(long, time.Now(), record.Memory{}),
	} {
		if err == nil {
			t.Errorf("%s: no error", claim)
		}
	}
	mustHold(t, d)
	must.Do(t, d.MakeLast("x", record.Memory{Atom: motd}))
	must.Do(t, d.placeLast("x", record.Memory{}, nil, (*TempFile).Link)) // another process has made it meanwhile
	if l := last(t, d); l.Memory.Atom != motd {
		t.Errorf("%+v", l.Memory)
	}
}
