package record

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"adlock/lib/atom"
	"adlock/lib/learn"
	"adlock/lib/limit"
	"adlock/lib/policy"
	"adlock/lib/process"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

// anyPart is a part of an atom: one byte or more, none of them null.
func anyPart() *rapid.Generator[string] {
	return rapid.Map(rapid.SliceOfN(rapid.ByteRange(1, 255), 1, 80), func(b []byte) string { return string(b) })
}

func anyAtom(t *rapid.T) atom.Atom {
	part := anyPart()
	return atom.Atom{
		Program: part.Draw(t, "program"), Host: part.Draw(t, "host"),
		Operator: part.Draw(t, "operator"), Operand: part.Draw(t, "operand"),
		Command: rapid.OneOf(rapid.Just(""), part).Draw(t, "command"),
	}
}

func anyIdentity(t *rapid.T, what string) process.Identity {
	id := rapid.StringMatching(`[0-9a-f-]{0,36}`)
	return process.Identity{
		PID: rapid.IntRange(1, 1<<22).Draw(t, what), PGID: rapid.IntRange(0, 1<<22).Draw(t, "pgid"),
		UID: rapid.IntRange(0, 1<<32-1).Draw(t, "uid"), Start: rapid.Uint64().Draw(t, "start"),
		Boot: id.Draw(t, "boot"), Machine: id.Draw(t, "machine"),
		PIDNS: rapid.Uint64().Draw(t, "pidns"), TimeNS: rapid.Uint64().Draw(t, "timens"),
	}
}

// anyLimit is a limit that a user can set: whole seconds, or never.
func anyLimit(t *rapid.T, what string) time.Duration {
	if rapid.Bool().Draw(t, what+" never") {
		return limit.Never
	}
	return time.Duration(rapid.Int64Range(0, 1<<32).Draw(t, what)) * time.Second
}

func anyRecord(t *rapid.T) Record {
	r := Record{
		Owner: anyIdentity(t, "owner"), Token: NewToken(), Atom: anyAtom(t),
		Monotonic: time.Duration(rapid.Int64().Draw(t, "monotonic")),
		Boottime:  time.Duration(rapid.Int64().Draw(t, "boottime")),
		IfElapsed: anyLimit(t, "if-elapsed"), ExpireAfter: anyLimit(t, "expire-after"),
		Replaces: rapid.Bool().Draw(t, "replaces"), Supervised: rapid.Bool().Draw(t, "supervised"), FromStart: rapid.Bool().Draw(t, "from-start"),
		Patience: time.Duration(rapid.Int64Range(0, 1<<62).Draw(t, "patience")),
		Slots:    rapid.IntRange(0, 1000).Draw(t, "slots"),
	}
	if rapid.Bool().Draw(t, "waited") {
		r.Asked = time.Duration(rapid.Int64Range(1, 1<<62).Draw(t, "asked"))
	}
	if rapid.Bool().Draw(t, "nameless") {
		r.Atom = atom.Atom{}
	}
	if rapid.Bool().Draw(t, "gated") {
		r.Job = anyIdentity(t, "job")
	}
	return r
}

func TestAWrittenRecordIsParsedUnchanged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := anyRecord(t)
		got, _, content := ParseAll(want.Bytes())
		if content != Full || got != want {
			t.Fatalf("content %d\n got %+v\nwant %+v", content, got, want)
		}
	})
}

// Records used to contain whole command lines. A byte may take four in the record.
func TestARecordOfLongCommandsIsAtMost32KiB(t *testing.T) {
	part, long := strings.Repeat("\x01", 1<<10), strings.Repeat("\x01", 6<<20)
	a := must.Get(atom.New(part, part, part, long))(t)
	unnamed := a
	unnamed.Operand, unnamed.Command = atom.Unnamed(long, long)
	for _, a := range []atom.Atom{a, unnamed} {
		want := fullRecord()
		want.Atom = a
		text := want.Bytes()
		if len(text) > Longest/2 { // leave room for survivors
			t.Errorf("%d bytes", len(text))
		}
		if got, _, content := ParseAll(text); content != Full || got != want {
			t.Errorf("content %d\n got %+v\nwant %+v", content, got, want)
		}
	}
}

// A record that was cut short must never be read as a shorter record: cut after the line of the
// pid, it would look like shlock's; cut within the pid, it would name another process.
func TestATruncatedRecordIsNeverParsedAsAFullOne(t *testing.T) {
	r := fullRecord()
	r.Job = process.Identity{PID: 5}
	r.Patience, r.Slots, r.Supervised, r.FromStart = time.Second, 3, true, true
	whole := r.Bytes()
	for n := range len(whole) {
		_, _, content := ParseAll(whole[:n])
		want := Damaged
		switch n {
		case 0:
			want = Empty
		case len("4711\n"):
			want = PIDOnly
		}
		if content != want {
			t.Errorf("the first %d bytes are content %d, want %d", n, content, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(nil))
	f.Add([]byte("4711\n"))
	f.Add(fullRecord().Bytes())
	gated := fullRecord()
	gated.Job, gated.Patience, gated.Slots = process.Identity{PID: 7, Start: 8}, time.Second, 2
	f.Add(gated.Bytes())
	f.Fuzz(func(t *testing.T, content []byte) {
		r, _, kind := ParseAll(content)
		switch kind {
		case Empty:
			if len(content) > 0 {
				t.Fatalf("%q passes for empty", content)
			}
		case Damaged:
			if r != (Record{}) {
				t.Fatalf("%q is damaged and says %+v", content, r)
			}
		case PIDOnly:
			if (r != Record{Owner: process.Identity{PID: r.Owner.PID}}) || r.Owner.PID <= 0 {
				t.Fatalf("%q says %+v", content, r)
			}
		case Full:
			again, _, kind := ParseAll(r.Bytes())
			if kind != Full || again != r || r.Owner.PID <= 0 {
				t.Fatalf("%q: %+v came back as %+v", content, r, again)
			}
		}
	})
}

func FuzzMemory(f *testing.F) {
	f.Add([]byte("started=2026-11-21T03:00:00.123456789Z\n"))
	f.Add([]byte("runs=5\nmean=3.5\n"))
	f.Add(Memory{Atom: motd, Started: time.Unix(1, 2), other: []string{"k=v\n"}}.Bytes())
	f.Fuzz(func(t *testing.T, content []byte) {
		m, err := ParseMemory(content)
		if err != nil {
			return
		}
		text := m.Bytes()
		again, err := ParseMemory(text)
		if err != nil || again.Atom != m.Atom || !again.Started.Equal(m.Started) || !bytes.Equal(again.Bytes(), text) {
			t.Fatalf("%q: %+v came back as %+v (%v)", content, m, again, err)
		}
	})
}
func TestARecordIsWrittenAsKeyValueLinesInAFixedOrder(t *testing.T) {
	r := fullRecord()
	r.Token, r.Node = "0123456789abcdef0123456789abcdef", r.Atom.Host
	const head = "4711\ntoken=0123456789abcdef0123456789abcdef\nformat=1\n" +
		"program=\"cfengine.conf\"\nhost=\"dax\"\noperator=\"editfile\"\noperand=\"/etc/motd\"\n" +
		"uid=1000\npgid=4711\nstart=99\nboot=b\nmachine=m\npidns=1\ntimens=2\nsession=0\ninode=0\n"
	if got, want := string(r.Bytes()), head+"monotonic=30m0s\nboottime=1h0m0s\nif_elapsed=0s\nexpire_after=2h\nend=\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	r.Owner.SID, r.Owner.Inode, r.Owner.Image, r.Node, r.File, r.Source, r.Notice = 4000, 77, 9, "dax.lan", 13, policy.Said, time.Minute
	r.Job = process.Identity{PID: 4712, Start: 100, PGID: 4712, UID: 1001, Boot: "b", Machine: "m", PIDNS: 1, TimeNS: 2, SID: 4000, Inode: 78}
	r.Replaces, r.Supervised, r.FromStart, r.Shared, r.Learn, r.Patience, r.Slots, r.Asked = true, true, true, true, true, time.Second, 1, 803614
	full := strings.Replace(head, "session=0\ninode=0\n", "session=4000\ninode=77\nnode=\"dax.lan\"\nimage=9\n", 1) +
		"job.pid=4712\njob.uid=1001\njob.pgid=4712\njob.start=100\njob.boot=b\njob.machine=m\njob.pidns=1\njob.timens=2\njob.session=4000\njob.inode=78\n" +
		"file=13\nmonotonic=30m0s\nboottime=1h0m0s\nasked=803.614us\nif_elapsed=0s\nexpire_after=2h\nexpire_after_from=said\nnotice=1m\nreplaces=yes\nsupervised=yes\nfrom_start=yes\nshared=yes\nlearn=yes\npatience=1s\nslots=1\nend=\n"
	if got := string(r.Bytes()); got != full {
		t.Errorf("got\n%s\nwant\n%s", got, full)
	}
	// A later version has more keys, which this one skips.
	if got, _, content := ParseAll([]byte(strings.Replace(full, "end=\n", "later=\"one\"\nend=\n", 1))); content != Full || got != r {
		t.Errorf("content %d, %+v", content, got)
	}
}

func edited(key, value string) []byte {
	r := fullRecord()
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

func TestOneBadOrMissingValueMakesARecordDamaged(t *testing.T) {
	const above31, above32, above64 = "2147483648", "4294967296", "18446744073709551616"
	for key, bad := range map[string][]string{
		"uid": {"x", "-1", above32}, "pgid": {"x", "-1", above31}, "start": {"x", above64}, "pidns": {"x", above64}, "timens": {"x", above64},
		"session": {"x", above31}, "inode": {"x", above64}, "job.pid": {"x", "0", above31}, "job.uid": {"x"}, "job.session": {"x"},
		"slots": {"x", above31}, "patience": {"x", "1"}, "monotonic": {"x", "1"}, "boottime": {"x", "1"}, "if_elapsed": {"x"}, "expire_after": {"x"},
		"program": {"x", `"`, `""`, `"\x00"`}, "operand": {"x", `""`, `"/etc`}, "format": {"2"}, "token": {"a\ntoken=a"},
	} {
		for _, value := range bad {
			if r, _, content := ParseAll(edited(key, value)); content != Damaged || r != (Record{}) {
				t.Errorf("%s=%s: content %d, %+v", key, value, content, r)
			}
		}
	}
	for _, key := range []string{"token", "format", "host", "operator", "operand", "uid", "pgid", "start", "boot", "machine", "pidns", "timens", "inode", "monotonic", "boottime", "if_elapsed", "expire_after", "end", "job.uid"} {
		if _, _, content := ParseAll(edited(key, "")); content != Damaged {
			t.Errorf("without %s: content %d", key, content)
		}
	}
	for key, value := range map[string]string{"uid": "4294967295", "pgid": "2147483647", "start": "18446744073709551615", "session": "2147483647", "job.pid": "2147483647", "slots": "2147483647"} {
		if _, _, content := ParseAll(edited(key, value)); content != Full {
			t.Errorf("%s=%s: content %d", key, value, content)
		}
	}
}

func TestOnlyAPidOfAtMost31BitsIsParsed(t *testing.T) {
	for text, want := range map[string]Content{
		"1\n": PIDOnly, "2147483647\n": PIDOnly, " 12\t\n": PIDOnly,
		"2147483648\n": Damaged, "0\n": Damaged, "-1\n": Damaged, "x\n": Damaged, "12": Damaged, "\x7fELF": Damaged, "\nend=\n": Damaged,
	} {
		r, _, content := ParseAll([]byte(text))
		if content != want || content == PIDOnly && strconv.Itoa(r.Owner.PID) != strings.TrimSpace(text) {
			t.Errorf("%q: content %d, want %d: %+v", text, content, want, r)
		}
	}
}

// getsid(2) of a hidden process may fail.
func TestAProcessOfUnknownSessionIsWrittenAndParsed(t *testing.T) {
	want := fullRecord()
	want.Owner.SID = process.Unrecorded
	child := want.Owner
	child.PID, child.PGID, child.UID = 4712, 0, 0
	text := string(want.Bytes()) + CommandLine(child) + SurvivorLine(1, child)
	got, appended, content := ParseAll([]byte(text))
	if content != Full || got != want || appended.Command != child || len(appended.Survivors) != 1 || appended.Survivors[0] != child {
		t.Errorf("content %d, %+v, %+v", content, got, appended)
	}
}

// Where an int has 32 bits, geteuid(2) of 4294967294 is -2.
func TestAUserNumberOf32BitsIsWrittenWithoutASign(t *testing.T) {
	want := fullRecord()
	want.Owner.UID = -2
	if got, _, content := ParseAll(want.Bytes()); content != Full || uint32(got.Owner.UID) != 1<<32-2 {
		t.Errorf("content %d, %+v", content, got)
	}
}

func TestBothHalvesOfATokenAreRandom(t *testing.T) {
	halves := map[string]bool{}
	for range 100 {
		token := NewToken()
		halves[token[:16]], halves[token[16:]] = true, true
	}
	if len(halves) != 200 {
		t.Errorf("%d of 200 halves differ", len(halves))
	}
}

// fullRecord is a full record with a new token each time.
func fullRecord() Record {
	return Record{
		Owner: process.Identity{PID: 4711, Start: 99, PGID: 4711, UID: 1000, Boot: "b", Machine: "m", PIDNS: 1, TimeNS: 2},
		Token: NewToken(), Atom: motd, Monotonic: time.Hour / 2, Boottime: time.Hour, ExpireAfter: 2 * time.Hour,
	}
}

func TestALastLockIsParsedAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m Memory
		if rapid.Bool().Draw(t, "identity") {
			m.Atom = anyAtom(t)
		}
		if rapid.Bool().Draw(t, "started") {
			m.Started = time.Unix(rapid.Int64Range(0, 1<<34).Draw(t, "s"), rapid.Int64Range(0, 1e9-1).Draw(t, "ns"))
		}
		if rapid.Bool().Draw(t, "replaced") {
			m.Newest = Start{Boottime: time.Duration(rapid.Int64().Draw(t, "boottime")), boot: "b", timeNS: rapid.Uint64().Draw(t, "timens")}
		}
		m.other = rapid.SliceOfNDistinct(rapid.StringMatching(`k[a-z]{1,5}=[^\n]{0,20}\n`), 0, 4, func(line string) string {
			key, _, _ := strings.Cut(line, "=")
			return key
		}).Draw(t, "other")
		got, err := ParseMemory(m.Bytes())
		if err != nil || got.Atom != m.Atom || !got.Started.Equal(m.Started) || got.Newest != m.Newest || !slices.Equal(got.other, m.other) {
			t.Fatalf("%+v came back as %+v (%v)", m, got, err)
		}
	})
}

func TestALearnedStateIsWrittenAndReadAsLines(t *testing.T) {
	for _, text := range []string{
		"", "learn.runs=1\nlearn.mean=1e-09\nlearn.ended=1ns\nlearn.ended_in_a_row=1\n",
		"learn.runs=12\nlearn.mean=0.333333\nlearn.deviation=0.25\nlearn.longest=2\nlearn.longest_before=3.5\nlearn.ended=1m30s\n" +
			"learn.doubled=2\nlearn.ended_in_a_row=1\nlearn.since_ended=5\nlearn.hangs=yes\nlearn.stretched=4\n",
	} {
		if m, err := ParseMemory([]byte(text)); err != nil || string(m.Bytes()) != text || m.other != nil {
			t.Errorf("%q came back as %q (%v)", text, m.Bytes(), err)
		}
	}
}

func TestALearnedStateWithAValueOutOfBoundsIsNotRead(t *testing.T) {
	for key, values := range map[string][2]string{
		"runs": {"0 2147483647", "-1 2147483648"}, "doubled": {"0 3", "-1 4"}, "ended_in_a_row": {"0 64", "-1 65"},
		"since_ended": {"0 1000", "-1 1001"}, "stretched": {"0 4", "-1 5"}, "hangs": {"yes", "no YES"},
		"mean": {"0 1 39.9999", "-0.001 40 40.5 NaN x"}, "deviation": {"1", "40"}, "longest": {"1", "40"}, "longest_before": {"1", "-1"},
		"ended": {"0s 1ns 1h", "-1ns x 1"},
	} {
		for i, list := range values {
			for _, value := range strings.Fields(list) {
				beside := "learn.runs=7\n"
				if key == "runs" {
					beside = "learn.doubled=1\n"
				}
				m, err := ParseMemory([]byte("k=v\nlearn." + key + "=" + value + "\n" + beside))
				if err != nil || (m.Learned != learn.State{}) != (i == 0) || !slices.Equal(m.other, []string{"k=v\n"}) {
					t.Errorf("%s=%s: %+v, %v", key, value, m, err)
				}
			}
		}
	}
}

var motd = atom.Atom{Program: "cfengine.conf", Host: "dax", Operator: "editfile", Operand: "/etc/motd"}

func TestALocksAgeIsKnownOnlyInItsOwnBootAndTimeNamespace(t *testing.T) {
	here := process.Here()
	if here.Boot == "" {
		need.Skip(t, "this system does not name its boots")
	}
	for claim, c := range map[string]struct {
		change func(*process.Identity)
		known  bool
	}{
		"here":                      {func(*process.Identity) {}, true},
		"on another boot":           {func(id *process.Identity) { id.Boot = "earlier" }, false},
		"on an unknown boot":        {func(id *process.Identity) { id.Boot = "" }, false},
		"in another time namespace": {func(id *process.Identity) { id.TimeNS++ }, false},
	} {
		r := Record{Owner: here, Monotonic: process.Monotonic() - time.Hour, Boottime: process.Boottime() - 9*time.Hour, Asked: time.Minute}
		here := Record{Owner: here, Boottime: r.Boottime - 30*time.Second}.Start()
		c.change(&r.Owner)
		start := r.Start()
		if start.IsHere() != c.known || (start.Later(here) == here) != c.known || here.Later(start) != here {
			t.Errorf("made %s: %v is comparable", claim, start)
		}
		if _, err := ParseMemory(Memory{Newest: start}.Bytes()); err != nil {
			t.Errorf("made %s: %v", claim, err)
		}
		age, known := r.Age()
		if known != c.known || known && (age < time.Hour || age > time.Hour+time.Minute) {
			t.Errorf("made %s: %v, %v", claim, age, known)
		}
		slept := r.Slept()
		if c.known && (slept < 8*time.Hour-time.Minute || slept > 8*time.Hour+time.Minute) || !c.known && slept != 0 {
			t.Errorf("made %s: the machine slept for %v", claim, slept)
		}
	}
}
