package lock

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

	"adlock/lib/exit"
	"adlock/lib/learn"
	"adlock/lib/process"
	"adlock/test/need"
)

func TestTheRecordIsThesePlainLines(t *testing.T) {
	r := record()
	r.Token = "0123456789abcdef0123456789abcdef"
	const head = "4711\ntoken=0123456789abcdef0123456789abcdef\nformat=1\n" +
		"program=\"cfengine.conf\"\nhost=\"dax\"\noperator=\"editfile\"\noperand=\"/etc/motd\"\n" +
		"uid=1000\npgid=4711\nstart=99\nboot=b\nmachine=m\npidns=1\ntimens=2\nsession=0\ninode=0\n"
	if got, want := string(r.Bytes()), head+"boottime=1h0m0s\nif_elapsed=0s\nexpire_after=2h\nend=\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	r.Owner.SID, r.Owner.Inode = 4000, 77
	r.Job = process.Identity{PID: 4712, Start: 100, PGID: 4712, UID: 1001, Boot: "b", Machine: "m", PIDNS: 1, TimeNS: 2, SID: 4000, Inode: 78}
	r.Supervised, r.FromStart, r.Shared, r.Learn, r.Patience, r.Slots = true, true, true, true, time.Second, 1
	full := strings.Replace(head, "session=0\ninode=0\n", "session=4000\ninode=77\n", 1) +
		"job.pid=4712\njob.uid=1001\njob.pgid=4712\njob.start=100\njob.boot=b\njob.machine=m\njob.pidns=1\njob.timens=2\njob.session=4000\njob.inode=78\n" +
		"boottime=1h0m0s\nif_elapsed=0s\nexpire_after=2h\nsupervised=yes\nfrom_start=yes\nshared=yes\nlearn=yes\npatience=1s\nslots=1\nend=\n"
	if got := string(r.Bytes()); got != full {
		t.Errorf("got\n%s\nwant\n%s", got, full)
	}
	if got, content := Parse([]byte(full)); content != Full || got != r {
		t.Errorf("content %d, %+v", content, got)
	}
}

// edited is a full record with one line's value changed; "" takes the line out.
func edited(key, value string) []byte {
	r := record()
	r.Job, r.Patience, r.Slots = r.Owner, time.Second, 3
	var b strings.Builder
	for line := range strings.Lines(string(r.Bytes())) {
		switch has, _, _ := strings.Cut(line, "="); {
		case has != key:
			b.WriteString(line)
		case value != "":
			b.WriteString(key + "=" + value + "\n")
		}
	}
	return []byte(b.String())
}

func TestOneBadValueDamagesTheRecord(t *testing.T) {
	const above31, above32, above64 = "2147483648", "4294967296", "18446744073709551616"
	for key, bad := range map[string][]string{
		"uid": {"x", "-1", above32}, "pgid": {"x", "-1", above31}, "start": {"x", above64}, "pidns": {"x", above64}, "timens": {"x", above64},
		"session": {"x", above31}, "inode": {"x", above64}, "job.pid": {"x", above31}, "job.uid": {"x"}, "job.session": {"x"},
		"slots": {"x", above31}, "patience": {"x", "1"}, "boottime": {"x", "1"}, "if_elapsed": {"x"}, "expire_after": {"x"},
		"program": {"x", `"`, `""`}, "operand": {"x", `""`}, "format": {"2"},
	} {
		for _, value := range bad {
			if _, content := Parse(edited(key, value)); content != Damaged {
				t.Errorf("%s=%s: content %d", key, value, content)
			}
		}
	}
	for _, key := range []string{"token", "format", "host", "operator", "operand", "uid", "pgid", "start", "boot", "machine", "pidns", "timens", "boottime", "if_elapsed", "expire_after", "end", "job.uid"} {
		if _, content := Parse(edited(key, "")); content != Damaged {
			t.Errorf("without %s: content %d", key, content)
		}
	}
	for key, value := range map[string]string{"uid": "4294967295", "pgid": "2147483647", "start": "18446744073709551615", "session": "2147483647", "job.pid": "2147483647", "slots": "2147483647"} {
		if _, content := Parse(edited(key, value)); content != Full {
			t.Errorf("%s=%s: content %d", key, value, content)
		}
	}
}

func TestAPidHas31Bits(t *testing.T) {
	for text, want := range map[string]Content{
		"1\n": PIDOnly, "2147483647\n": PIDOnly, " 12\t\n": PIDOnly,
		"2147483648\n": Damaged, "0\n": Damaged, "-1\n": Damaged, "x\n": Damaged, "12": Damaged, "\nend=\n": Damaged,
	} {
		if _, content := Parse([]byte(text)); content != want {
			t.Errorf("%q: content %d, want %d", text, content, want)
		}
	}
}

func TestWhatEarlierVersionsDidNotRecordIsNotKnown(t *testing.T) {
	if r, content := Parse(edited("session", "")); content != Full || r.Owner.SID != process.Unrecorded {
		t.Errorf("without session: content %d, %+v", content, r.Owner)
	}
	if r, content := Parse(edited("inode", "")); content != Full || r.Owner.Inode != 0 {
		t.Errorf("without inode: content %d, %+v", content, r.Owner)
	}
}

func TestSurvivorsAreNumberedAndNoneTwice(t *testing.T) {
	d := newDir(t)
	a := guardedLock(t, d)
	owner := a.Record.Owner
	must(t, a.AppendSurvivors(nil))
	must(t, a.AppendSurvivors([]process.Identity{owner, member(20), member(20), member(21)}))
	must(t, a.AppendSurvivors([]process.Identity{member(21), member(22)}))
	content, err := os.ReadFile(d.Path("lock.x"))
	must(t, err)
	want := "survivor.1=20 100 7 5 1 2\nsurvivor.2=21 100 7 5 1 2\nsurvivor.3=22 100 7 5 1 2\n"
	if got, _ := strings.CutPrefix(string(content), string(a.Record.Bytes())); got != want {
		t.Errorf("appended is %q, want %q", got, want)
	}
}

func TestTheJobIsWhatTheLockKnows(t *testing.T) {
	d := newDir(t)
	r := record()
	r.Job, r.Supervised = member(30), true
	put(t, d, r)
	a := active(t, d)
	must(t, a.Guard(0))
	if job := a.Job(); job.Owner != r.Owner || job.Command != r.Job || !job.Supervised || job.FileUID != os.Geteuid() || job.Uncounted {
		t.Errorf("%+v", job)
	}
	must(t, a.AppendCommand(member(31)))
	must(t, a.AppendSurvivors([]process.Identity{r.Job, member(31), member(32)}))
	if job := a.Job(); job.Command != member(31) || !slices.Equal(job.Survivors, []process.Identity{member(32)}) {
		t.Errorf("%+v", job)
	}
}

func TestTheLastSurvivorThatFitsIsRecorded(t *testing.T) {
	line := len("survivor.1=20 100 7 5 1 2\n") + len(uncountedLine)
	for room, want := range map[int]bool{line - 1: false, line: true} {
		d := newDir(t)
		r := record()
		r.Atom.Operand = ""
		r.Atom.Operand = strings.Repeat("x", maxRecord-room-len(r.Bytes()))
		put(t, d, r)
		a := active(t, d)
		must(t, a.Guard(0))
		must(t, a.AppendSurvivors([]process.Identity{member(20)}))
		again := active(t, d)
		if recorded := len(again.Appended.Survivors) == 1; recorded != want || again.Appended.Uncounted == want || a.Appended.Uncounted == want {
			t.Errorf("room for %d bytes: %+v", room, again.Appended)
		}
		if again.st.Size > 65536 {
			t.Errorf("the lock has %d bytes", again.st.Size)
		}
		must(t, a.AppendSurvivors([]process.Identity{member(21)}))
		if again := active(t, d); again.st.Size > 65536 || !again.Appended.Uncounted {
			t.Errorf("one more: %d bytes, %+v", again.st.Size, again.Appended)
		}
	}
}

func TestWhatIsAppendedHasAPid(t *testing.T) {
	for pid, want := range map[int]Content{0: Damaged, 1: Full, 2: Full, 1 << 30: Full, 1<<30 + 1: Damaged, 1 << 31: Damaged} {
		line := "survivor.1=" + strconv.Itoa(pid) + " 1 1 1 1 1\n"
		if _, content := Parse(append(record().Bytes(), line...)); content != want {
			t.Errorf("%s: content %d, want %d", line, content, want)
		}
	}
	for _, line := range []string{"survivor.1=1 1 1 1 1\n", "survivor.1=1 1 1 1 1 1 1\n", "survivors=1 1 1 1 1 1\n"} {
		if r, content := Parse(append(record().Bytes(), line...)); content != Damaged || r != (Record{}) {
			t.Errorf("%q: content %d", line, content)
		}
	}
}

// asUser does something with the rights of another user.
func asUser(t *testing.T, uid int, do func()) {
	t.Helper()
	need.Root(t)
	must(t, syscall.Setresuid(-1, uid, -1))
	defer func() { must(t, syscall.Setresuid(-1, 0, -1)) }()
	do()
}

func TestAnOrdinaryUserHasRootsDirectoriesAndItsOwn(t *testing.T) {
	for owner, allowed := range map[int]bool{0: true, 1: false, 4711: true, 4712: false} {
		path, err := os.MkdirTemp("/tmp", "adlock") // which others can look into
		must(t, err)
		t.Cleanup(func() { os.RemoveAll(path) })
		must(t, os.Chmod(path, 0o755))
		must(t, os.Chown(path, owner, owner))
		asUser(t, 4711, func() {
			d, err := Open(path)
			if (err == nil) != allowed {
				t.Errorf("a directory of %d: %v", owner, err)
			}
			if err == nil {
				d.Close()
			}
		})
	}
}

func TestAnOrdinaryUsersDefaultIsBelowHome(t *testing.T) {
	t.Setenv("ADLOCK_DIR", "")
	asUser(t, 4711, func() {
		t.Setenv("HOME", "/home/me")
		if path, err := DefaultDir(); path != "/home/me/.local/state/adlock" || err != nil {
			t.Errorf("%q, %v", path, err)
		}
		t.Setenv("HOME", "me")
		if path, err := DefaultDir(); exit.Code(err) != exit.Unavailable {
			t.Errorf("%q, %v", path, err)
		}
	})
}

func TestWhereAnybodyGetsInOnlyThePrivateIsBelieved(t *testing.T) {
	for dir, entered := range map[fs.FileMode]bool{0o700: false, 0o710: true, 0o701: true, 0o744: false} {
		path := t.TempDir()
		must(t, os.Chmod(path, dir))
		d, err := Open(path)
		must(t, err)
		for mode, lax := range map[fs.FileMode]bool{0o600: false, 0o601: false, 0o644: false, 0o755: false, 0o620: true, 0o602: true} {
			must(t, os.WriteFile(d.Path("lock.x"), nil, 0o600))
			must(t, os.Chmod(d.Path("lock.x"), mode))
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

func TestALinkThatWasMadeAndNotAnsweredIsMade(t *testing.T) {
	d := newDir(t)
	draft, err := d.temporary()
	must(t, err)
	must(t, draft.fill(record().Bytes()))
	must(t, os.Link(d.Path(draft.temporary), d.Path("lock.x")))
	must(t, draft.Link("lock.x"))
	mustHold(t, d, "lock.x")
	must(t, draft.Close())
}

func TestADraftKnowsItsName(t *testing.T) {
	drafts(t, func(t *testing.T, d *Dir, draft func() *Draft) {
		one := draft()
		if one.Named() != (one.temporary != "") {
			t.Error("Named is wrong")
		}
		must(t, one.Link("lock.x"))
		if one.Named() {
			t.Error("it has a temporary name still")
		}
		must(t, one.Withdraw())
		mustHold(t, d)
		must(t, one.Close())
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
		name := "temp." + Token()
		must(t, os.WriteFile(d.Path(name), nil, 0o600))
		must(t, os.Chtimes(d.Path(name), now.Add(-age), now.Add(-age)))
		must(t, d.Sweep(now))
		if exists(d, name) == swept {
			t.Errorf("%v old: swept is %v", age, !swept)
		}
	}
	d := newDir(t)
	name := "temp." + Token()
	must(t, os.WriteFile(d.Path("last.x"), nil, 0o600))
	must(t, os.Link(d.Path("last.x"), d.Path(name)))
	must(t, d.Sweep(time.Now()))
	mustHold(t, d, "last.x")
}

func TestBothHalvesOfATokenAreRandom(t *testing.T) {
	halves := map[string]bool{}
	for range 100 {
		token := Token()
		halves[token[:16]], halves[token[16:]] = true, true
	}
	if len(halves) != 200 {
		t.Errorf("%d of 200 halves differ", len(halves))
	}
}

func TestALockIsReadUpToALimitEvenIfItGrows(t *testing.T) {
	d := newDir(t)
	for size, fits := range map[int]bool{1: true, 511: true, 512: true, 513: true, 100_000: true, maxContent: true, maxContent + 1: false, 2 * maxContent: false} {
		must(t, os.WriteFile(d.Path("lock.x"), []byte(strings.Repeat("x", size)), 0o600))
		a := onlyToStat(t, d)
		for _, seen := range []int64{0, int64(size)} { // as it was when it was looked at
			if size == maxContent+1 && seen == 0 {
				continue // one that grows is noticed when there is no room for more
			}
			a.st.Size = seen
			content, err := a.read()
			if (err == nil) != fits || fits && len(content) != size {
				t.Errorf("%d bytes, %d at first: %d were read (%v)", size, seen, len(content), err)
			}
			if !fits && exit.Code(err) != exit.IO {
				t.Errorf("%d bytes: %v", size, err)
			}
		}
	}
}

func onlyToStat(t *testing.T, d *Dir) *file {
	t.Helper()
	f, err := d.openFile("lock.x", os.O_RDONLY)
	must(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

// A lock of that size is damaged, and no longer the one that was seen.
func TestWhatGrewTooLargeIsAnError(t *testing.T) {
	d := newDir(t)
	put(t, d, record())
	a := active(t, d)
	must(t, os.Truncate(d.Path("lock.x"), 1<<40))
	if err := a.Guard(0); !errors.Is(err, ErrLost) {
		t.Errorf("a lock: %v", err)
	}
	must(t, d.MakeLast("x", Memory{}))
	must(t, os.Truncate(d.Path("last.x"), 1<<40))
	if _, err := d.Last("x"); exit.Code(err) != exit.IO {
		t.Errorf("a last lock: %v", err)
	}
}

func TestThatThereAreMoreIsSaidOnce(t *testing.T) {
	d := newDir(t)
	a := guardedLock(t, d)
	var many []process.Identity
	for pid := 1; pid < 5000; pid++ {
		many = append(many, member(pid))
	}
	must(t, a.AppendSurvivors(many))
	must(t, a.AppendSurvivors(many[:2]))
	content, err := os.ReadFile(d.Path("lock.x"))
	must(t, err)
	if n := strings.Count(string(content), uncountedLine); n != 1 {
		t.Errorf("said %d times", n)
	}
	if !a.Appended.Uncounted || len(a.Appended.Survivors) > 0 {
		t.Errorf("some are counted after all: %d", len(a.Appended.Survivors))
	}
}

func TestOnlyAnEmptyMemoryIsEmpty(t *testing.T) {
	for want, list := range map[bool][]Memory{
		true:  {{}},
		false: {{Atom: motd}, {Started: time.Unix(1, 0)}, {Learned: learn.State{Runs: 1}}, {other: []string{"a=b"}}},
	} {
		for _, m := range list {
			if m.Empty() != want {
				t.Errorf("%+v: empty is %v", m, !want)
			}
		}
	}
}

func TestWhatWasLearnedIsRemembered(t *testing.T) {
	d := newDir(t)
	must(t, d.MakeLast("x", Memory{Learned: learn.State{Runs: 7}}))
	if l := last(t, d); l.Memory.Learned.Runs != 7 || len(l.Memory.other) != 0 {
		t.Errorf("%+v", l.Memory)
	}
}

func TestOneByteIsNoMemory(t *testing.T) {
	d := newDir(t)
	must(t, os.WriteFile(d.Path("last.x"), []byte("x"), 0o600))
	if _, err := d.Last("x"); exit.Code(err) != exit.IO {
		t.Errorf("got %v", err)
	}
}

func TestALastLockThatCannotBePlacedIsAnError(t *testing.T) {
	d := newDir(t)
	long := strings.Repeat("x", 300)
	for claim, err := range map[string]error{
		"made": d.MakeLast(long, Memory{}), "stamped anew": d.stampAnew(long, Memory{}), "remembered": d.Remember(long, time.Now(), Memory{}),
	} {
		if err == nil {
			t.Errorf("%s: no error", claim)
		}
	}
	mustHold(t, d)
	must(t, d.MakeLast("x", Memory{Atom: motd}))
	must(t, d.stampAnew("x", Memory{})) // somebody else has made it meanwhile
	if l := last(t, d); l.Memory.Atom != motd {
		t.Errorf("%+v", l.Memory)
	}
}

func TestAFreeLockIsNoError(t *testing.T) {
	d := newDir(t)
	if _, err := d.Active("x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a lock: %v", err)
	}
	if readers, err := d.Readers("x"); err != nil || readers != nil {
		t.Errorf("readers %q, %v", readers, err)
	}
	done := false
	must(t, d.Marked("x", func() error { done = true; return nil }))
	if !done {
		t.Error("without readers nothing is done")
	}
}
