package lock

import (
	"bytes"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"adlock/lib/limit"
	"adlock/lib/name"
	"adlock/lib/process"
)

// anyPart is a part of an atom: any bytes but none and null.
func anyPart() *rapid.Generator[string] {
	return rapid.Map(rapid.SliceOfN(rapid.ByteRange(1, 255), 1, 80), func(b []byte) string { return string(b) })
}

func anyAtom(t *rapid.T) name.Atom {
	part := anyPart()
	return name.Atom{
		Program: part.Draw(t, "program"), Host: part.Draw(t, "host"),
		Operator: part.Draw(t, "operator"), Operand: part.Draw(t, "operand"),
	}
}

func anyIdentity(t *rapid.T, who string) process.Identity {
	id := rapid.StringMatching(`[0-9a-f-]{0,36}`)
	return process.Identity{
		PID: rapid.IntRange(1, 1<<22).Draw(t, who), PGID: rapid.IntRange(0, 1<<22).Draw(t, "pgid"),
		UID: rapid.IntRange(0, 1<<32-1).Draw(t, "uid"), Start: rapid.Uint64().Draw(t, "start"),
		Boot: id.Draw(t, "boot"), Machine: id.Draw(t, "machine"),
		PIDNS: rapid.Uint64().Draw(t, "pidns"), TimeNS: rapid.Uint64().Draw(t, "timens"),
	}
}

// anyLimit is what a user can ask for: whole seconds, or never.
func anyLimit(t *rapid.T, what string) time.Duration {
	if rapid.Bool().Draw(t, what+" never") {
		return limit.Never
	}
	return time.Duration(rapid.Int64Range(0, 1<<32).Draw(t, what)) * time.Second
}

func anyRecord(t *rapid.T) Record {
	r := Record{
		Owner: anyIdentity(t, "owner"), Token: Token(), Atom: anyAtom(t),
		Boottime:  time.Duration(rapid.Int64().Draw(t, "boottime")),
		IfElapsed: anyLimit(t, "if-elapsed"), ExpireAfter: anyLimit(t, "expire-after"),
		Supervised: rapid.Bool().Draw(t, "supervised"), FromStart: rapid.Bool().Draw(t, "from-start"),
		Patience: time.Duration(rapid.Int64Range(0, 1<<62).Draw(t, "patience")),
		Slots:    rapid.IntRange(0, 1000).Draw(t, "slots"),
	}
	if rapid.Bool().Draw(t, "nameless") {
		r.Atom = name.Atom{}
	}
	if rapid.Bool().Draw(t, "gated") {
		r.Job = anyIdentity(t, "job")
	}
	return r
}

func TestEveryRecordSurvives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := anyRecord(t)
		got, content := Parse(want.Bytes())
		if content != Full || got != want {
			t.Fatalf("content %d\n got %+v\nwant %+v", content, got, want)
		}
	})
}

// However long the command line was, and whatever its bytes: each may take four.
func TestARecordIsNeverLargerThan64KiB(t *testing.T) {
	part := strings.Repeat("\x01", 1<<10)
	a, err := name.New(part, part, part, strings.Repeat("\x01", 6<<20))
	must(t, err)
	want := record()
	want.Atom = a
	text := want.Bytes()
	if len(text) > maxRecord/2 { // survivors are to find room as well
		t.Errorf("%d bytes", len(text))
	}
	if got, content := Parse(text); content != Full || got != want {
		t.Errorf("content %d\n got %+v\nwant %+v", content, got, want)
	}
}

// Records used to hold whole command lines.
func TestALargeRecordOfAnEarlierVersionIsRead(t *testing.T) {
	operand := strings.Repeat("\x01", 400<<10)
	old := record()
	old.Atom.Operand = operand
	want := old
	var err error
	want.Atom, err = name.New(old.Atom.Program, old.Atom.Host, old.Atom.Operator, operand)
	must(t, err)
	d := newDir(t)
	put(t, d, old)
	if a := active(t, d); a.Content != Full || a.Record != want {
		t.Errorf("content %d, an operand of %d bytes", a.Content, len(a.Record.Atom.Operand))
	}
	must(t, d.MakeLast("x", Memory{Atom: old.Atom}))
	if l := last(t, d); l.Memory.Atom != want.Atom {
		t.Errorf("an operand of %d bytes is remembered", len(l.Memory.Atom.Operand))
	}
}

func TestTheFirstLineIsThePidAndTheSecondTheToken(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := anyRecord(t)
		lines := strings.SplitN(string(r.Bytes()), "\n", 3)
		if lines[0] != strconv.Itoa(r.Owner.PID) || lines[1] != "token="+r.Token {
			t.Fatalf("%q", lines[:2])
		}
	})
}

func TestAPidAloneIsShlocks(t *testing.T) {
	for _, content := range []string{"4711\n", " 4711\n", "      4711 \n"} {
		if r, kind := Parse([]byte(content)); kind != PIDOnly || r.Owner.PID != 4711 {
			t.Errorf("%q: content %d, %+v", content, kind, r)
		}
	}
}

// A cut record must never pass for a shorter one: after the pid's line it would
// be shlock's, and within the pid it would be somebody else's pid.
func TestARecordThatIsCutShortIsDamagedSaveForAWholePid(t *testing.T) {
	r := record()
	r.Job = process.Identity{PID: 5}
	r.Patience, r.Slots, r.Supervised, r.FromStart = time.Second, 3, true, true
	whole := r.Bytes()
	for n := range len(whole) {
		_, content := Parse(whole[:n])
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

func TestARecordWithAForeignLineIsDamaged(t *testing.T) {
	whole := record().Bytes()
	for claim, content := range map[string]string{
		"binary":           "\x7fELF",
		"no pid":           "nobody\n",
		"pid 0":            "0\n",
		"negative pid":     "-1\n",
		"pid too large":    "4294967297\n",
		"a key twice":      string(whole) + "token=abc\n",
		"another version":  strings.Replace(string(whole), "format=1", "format=2", 1),
		"no version":       strings.Replace(string(whole), "format=1\n", "", 1),
		"a null byte":      strings.Replace(string(whole), "/etc/motd", `a\x00b`, 1),
		"an empty operand": strings.Replace(string(whole), `"/etc/motd"`, `""`, 1),
		"a bad quote":      strings.Replace(string(whole), `"/etc/motd"`, `"/etc`, 1),
	} {
		if r, got := Parse([]byte(content)); got != Damaged || r != (Record{}) {
			t.Errorf("%s: content %d, %+v", claim, got, r)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(nil))
	f.Add([]byte("4711\n"))
	f.Add(record().Bytes())
	gated := record()
	gated.Job, gated.Patience, gated.Slots = process.Identity{PID: 7, Start: 8}, time.Second, 2
	f.Add(gated.Bytes())
	f.Fuzz(func(t *testing.T, content []byte) {
		r, kind := Parse(content)
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
			again, kind := Parse(r.Bytes())
			if kind != Full || again != r || r.Owner.PID <= 0 {
				t.Fatalf("%q: %+v came back as %+v", content, r, again)
			}
		}
	})
}

func FuzzMemory(f *testing.F) {
	f.Add([]byte("started=2026-11-21T03:00:00.123456789Z\n"))
	f.Add([]byte("runs=5\nmean=3.5\n"))
	f.Add(Memory{Atom: motd, Started: time.Unix(1, 2), other: []string{"k=v"}}.bytes())
	f.Fuzz(func(t *testing.T, content []byte) {
		m, err := parseMemory(content)
		if err != nil {
			return
		}
		text := m.bytes()
		again, err := parseMemory(text)
		if err != nil || again.Atom != m.Atom || !again.Started.Equal(m.Started) || !bytes.Equal(again.bytes(), text) {
			t.Fatalf("%q: %+v came back as %+v (%v)", content, m, again, err)
		}
	})
}
