package lockfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"adlock/lib/atom"
	"adlock/lib/config"
	"adlock/lib/fault"
	"adlock/lib/locker"
	"adlock/lib/process"
	"adlock/lib/record"
	"adlock/test/support/intercept"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

func TestTheJobHasTheProcessesThatTheLockRecords(t *testing.T) {
	d, r := newDir(t), fullRecord()
	r.Job, r.Supervised = member(30), true
	put(t, d, r)
	a := active(t, d)
	must.Do(t, a.Guard(0))
	if job := a.Job(); job.Owner != r.Owner || job.Command != r.Job || !job.Supervised || job.FileUID != os.Geteuid() || job.Uncounted || !a.SupervisedBy(r.Owner) || a.SupervisedBy(r.Job) {
		t.Errorf("%+v", job)
	}
	must.Do(t, a.AppendCommand(member(31)))
	must.Do(t, a.AppendSurvivors([]process.Identity{r.Job, member(31), member(32)}))
	if job := a.Job(); job.Command != member(31) || !slices.Equal(job.Survivors, []process.Identity{member(32)}) {
		t.Errorf("%+v", job)
	}
}

func TestANewPidStartOrInodeOfTheCommandIsRecorded(t *testing.T) {
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

// A lock that is not in use may be cleared by hand, so a process that cannot be proved alive does not count.
func TestALockIsInUseOnlyIfAProcessOfItsJobIsProvedAlive(t *testing.T) {
	alive := must.Get(process.Of(os.Getpid()))(t)
	dead := alive
	dead.Start, dead.Inode = dead.Start+1, 0
	holding := func(owner process.Identity) string { r := fullRecord(); r.Owner = owner; return string(r.Bytes()) }
	pid := strconv.Itoa(os.Getpid())
	const lock, reader = "lock." + reads, "read." + reads + ".20"
	bootless := member(20)
	bootless.Boot = ""
	for _, c := range []struct{ claim, file, content, want string }{
		{"an owner", lock, holding(alive), "its owner lives (process " + pid + "); to end it: adlock stop 'PATH'"},
		{"a reader", reader, holding(alive), "its owner lives (process " + pid + "); to end it: adlock stop 'PATH'"},
		{"a pid", lock, pid + "\n", "its owner lives (process " + pid + ")"},
		{"a pid of no process", lock, "4194305\n", ""},
		{"a dead owner", lock, holding(dead), ""},
		{"a survivor", lock, holding(dead) + record.SurvivorLine(1, alive), "its owner is dead, but processes of its job are left; to end it: adlock stop 'PATH'"},
		{"a command", lock, holding(dead) + record.CommandLine(alive), "its owner is dead, but processes of its job are left; to end it: adlock stop 'PATH'"},
		{"an owner elsewhere", lock, holding(member(20)), ""},
		{"an owner of no known boot", lock, holding(bootless), ""},
		{"an empty lock", lock, "", ""},
		{"a damaged lock", lock, pid + "\nx\n", ""},
	} {
		d := newDir(t)
		must.Do(t, os.WriteFile(d.Path(c.file), []byte(c.content), 0o600))
		a := must.Get(d.Lock(atom.ParseFile(c.file)))(t)
		if got := a.InUse(); got != strings.Replace(c.want, "PATH", a.Path(), 1) {
			t.Errorf("%s: %q, want %q", c.claim, got, c.want)
		}
		want := "<nil>"
		if strings.HasPrefix(c.want, "its owner is dead") {
			want = a.Path() + ": not released: process " + pid + ": belongs to its job, and lives"
		}
		if got := fmt.Sprint(a.Survived()); got != want {
			t.Errorf("%s, its job: %s, want %s", c.claim, got, want)
		}
		told := a.Untold(&locker.ReleaseRequest{Token: "t"})
		if err := a.Untold(&locker.ReleaseRequest{}); told != nil || (err != nil) != (c.claim == "an owner of no known boot") {
			t.Errorf("%s, with a token and without: %v, %v", c.claim, told, err)
		}
		must.Do(t, a.Close())
	}
}

func TestASurvivorIsRecordedIfItJustFitsIntoTheLock(t *testing.T) {
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

func TestADirectoryThatOthersCouldChangeIsRefused(t *testing.T) {
	const strange, open = "lock directory belongs to another user (run as that user", "lock directory is writable by others ("
	for _, c := range []struct {
		me, uid int
		mode    uint32
		want    string
	}{
		{0, 0, 0o755, ""}, {7, 0, 0o755, ""}, {7, 7, 0o755, ""},
		{0, 4711, 0o700, strange + ": sudo -u '#4711' adlock ..., or name one of your own: ADLOCK_DIR)"},
		{7, 4711, 0o700, strange + ", or " + config.WayOut("/d") + ")"},
		{0, 0, 0o720, open + "chmod go-w '/d')"}, {7, 7, 0o703, open + "chmod go-w '/d')"},
		{7, 0, 0o702, open + config.WayOut("/d") + ")"},
		{7, 0, 0o777 | unix.S_ISVTX, open + "set ADLOCK_DIR to a directory that only you can write)"},
	} {
		err := (&Dir{path: "/d", me: c.me}).check(&unix.Stat_t{Uid: uint32(c.uid), Mode: c.mode})
		if got := fmt.Sprint(err); got != "/d: "+c.want && (err != nil || c.want != "") || err != nil && fault.KindOf(err) != fault.NotPermitted {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestAUserMayUseOnlyItsOwnAndRootsDirectories(t *testing.T) {
	need.Root(t)
	for owner, allowed := range map[int]bool{0: true, 1: false, 4711: true, 4712: false} {
		path := openDir(t)
		must.Do(t, os.Chown(path, owner, owner))
		if err := openedBy(t, 4711, path); (err == nil) != allowed {
			t.Errorf("a directory of %d: %v", owner, err)
		}
		if err := openedBy(t, 4711, path+"/below"); (err == nil) != (owner == 4711) {
			t.Errorf("below a directory of %d: %v", owner, err)
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

// openedBy opens a directory, or the one in which it would be made, with the rights of another user and group.
func openedBy(t *testing.T, user int, path string) error {
	t.Helper()
	must.Do(t, syscall.Setresgid(-1, user, -1))
	must.Do(t, syscall.Setresuid(-1, user, -1))
	defer func() { must.Do(t, errors.Join(syscall.Setresuid(-1, 0, -1), syscall.Setresgid(-1, 0, -1))) }()
	d, _, err := OpenToTry(path)
	if err == nil {
		d.Close()
	}
	return err
}

// With umask 002 a user's directories are writable by the user's private group.
func TestAParentDirectoryMayBeWritableByItsOwnersGroupOrRoots(t *testing.T) {
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

func TestAFileWritableByOthersIsRefusedWhereTheyCanReachIt(t *testing.T) {
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

func TestALockRecordWritableByOthersIsAlwaysRefused(t *testing.T) {
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

func TestLinkAndReplaceSucceedIfOnlyTheReplyWasLost(t *testing.T) {
	d := newDir(t)
	for _, c := range []struct {
		done func(from, to string) error
		call func(*TempFile, string) error
	}{{os.Link, (*TempFile).Link}, {os.Rename, (*TempFile).Replace}} {
		temp := must.Get(d.temporary())(t)
		must.Do(t, temp.fill(func(uint64) []byte { return fullRecord().Bytes() }))
		must.Do(t, c.done(d.Path(temp.temporary), d.Path("lock.x")))
		must.Do(t, c.call(temp, "lock.x"))
		mustHold(t, d, "lock.x")
		must.Do(t, temp.Close())
	}
}

func TestALockLargerThanTheLimitIsRefusedEvenIfItHasJustGrown(t *testing.T) {
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

func TestALockIsReadToItsEndInTwoReadsAtMost(t *testing.T) {
	d := newDir(t)
	for _, c := range []struct {
		begin, more, want string
		reads             int
	}{{"1234\n", "", "1234\n", 1}, {"12", "", "12", 2}, {"12", "34\n", "1234\n", 2}} { // of five bytes; it shrinks; a short read
		must.Do(t, os.WriteFile(d.Path("lock.x"), []byte("12345"), 0o600))
		a, got, reads := onlyToStat(t, d), "", 0
		must.Do(t, os.WriteFile(d.Path("lock.x"), []byte(c.begin), 0o600))
		intercept.Run(t, func() {
			content, err := a.read()
			got = fmt.Sprintf("%s%v", content, err)
		}, func(intercept.Call) unix.Errno {
			if reads++; reads == 2 && os.WriteFile(d.Path("lock.x"), []byte(c.begin+c.more), 0o600) != nil {
				return unix.EIO
			}
			return 0
		}, unix.SYS_PREAD64)
		if got != c.want+"<nil>" || reads != c.reads {
			t.Errorf("%+v: %q in %d reads", c, got, reads)
		}
	}
}

func onlyToStat(t *testing.T, d *Dir) *file {
	t.Helper()
	f := must.Get(d.openFile("lock.x", os.O_RDONLY))(t)
	t.Cleanup(func() { f.Close() })
	return f
}
