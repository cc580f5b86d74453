package atom

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"adlock/test/support/check"
	"adlock/test/support/must"
)

const aToken = "0123456789abcdef0123456789abcdef"

// longestName has four parts of the greatest length.
var longestName = ofParts(strings.Repeat("p", longestPlain), strings.Repeat("h", longestPlain),
	strings.Repeat("o", longestPlain), strings.Repeat("x", longestPlain)).Name()

// ofParts is the atom with these parts, of any content.
func ofParts(program, host, operator, operand string) Atom {
	return Atom{Program: program, Host: host, Operator: operator, Operand: operand}
}

func anyPart() *rapid.Generator[string] {
	return rapid.OneOf(rapid.StringN(1, -1, 100), rapid.StringMatching(`[a-c/._-]{1,6}`), rapid.StringMatching(`[0-9]{1,3}`),
		rapid.SampledFrom([]string{"lock", "read", "last", "temp", "smith", "slot-1", strings.Repeat("x", longestPlain)}))
}

func anyAtom() *rapid.Generator[Atom] {
	return rapid.Custom(func(t *rapid.T) Atom {
		part := anyPart()
		return ofParts(part.Draw(t, "program"), part.Draw(t, "host"), part.Draw(t, "operator"), part.Draw(t, "operand"))
	})
}

func TestAFilesKindIsReadFromItsName(t *testing.T) {
	long := string(longestName)
	for name, want := range map[string]File{
		"lock.p.h.o.x":            {Kind: ActiveLock, Name: "p.h.o.x"},
		"lock.p.h.slot-12":        {Kind: ActiveLock, Name: "p.h.slot-12"},
		"last.p.h.o.x":            {Kind: LastLock, Name: "p.h.o.x"},
		"read.p.h.o.x":            {Kind: ReadersMark, Name: "p.h.o.x"},
		"read.p.h.o.7":            {Kind: ReadersMark, Name: "p.h.o.7"},
		"read.p.h.o.x.4711":       {Kind: ReaderLock, Name: "p.h.o.x", Number: 4711},
		"r." + long + ".4711000":  {Kind: ReaderLock, Name: longestName, Number: 4711000},
		"lock.p.h.o.x.3":          {Kind: Generation, Name: "p.h.o.x", Number: 3},
		"lock.p.h.slot-1.3":       {Kind: Generation, Name: "p.h.slot-1", Number: 3},
		"l." + long + ".1000000":  {Kind: Generation, Name: longestName, Number: 1000000},
		"tick.p.h.o.x.1o-zz9":     {Kind: Tick, Name: "p.h.o.x", Period: time.Minute, Number: 46629},
		"tick.p.h.o.x.1-0":        {Kind: Tick, Name: "p.h.o.x", Period: time.Second},
		"t." + long + ".1-t4b13q": {Kind: Tick, Name: longestName, Period: time.Second, Number: 1760752214},
		"look.p.h.o.x":            {Kind: LookLock, Name: "p.h.o.x"},
		"temp." + aToken:          {Kind: TemporaryFile, Token: aToken},
		"smith.4711":              {Kind: HolderWord, Number: 4711},
		"smith." + aToken:         {Kind: HolderSocket, Token: aToken},
	} {
		check.Equal(t, name, ParseFile(name), want)
		check.Equal(t, "the name", want.String(), name)
	}
}

func TestAFileNameThatAdlockDoesNotMakeIsNotRecognised(t *testing.T) {
	long := string(longestName)
	for _, name := range []string{
		"", ".", "..", "lock", "lock.", "p.h.o.x", "Lock.p.h.o.x", " lock.p.h.o.x", "locks.p.h.o.x", "program.h.runlog",
		"lock.x", "lock.p.h.o", "lock.p.h.o.x.y", "lock.p..o.x", "lock.p.h.o.", "lock.p.h.o.x/y", "lock.p.h.o.x.1.2", "l.p.h.o.x", "l.p.h.o.x.1",
		"lock.p.h.slot-0", "lock.p.h.slot-01", "lock.p.h.slot-", "lock.p.h.slot-x", "lock.p.h.slot--1",
		"lock.p.h.run.x.slot-1", "lock.adlock.h.o.x.slot-1", "lock.adlock.h.run.x.slot-0", "lock.adlock.h.run.slot-1.slot-1", "last.adlock.h.run.x.slot-1",
		"last.x", "last.p.h.o.x.7", "last.p.h.slot-1", "last.p.h.o.a b",
		"read.x", "read.p.h.slot-1", "read.p.h.slot-1.7", "read.p.h.o.x.0", "read.p.h.o.x.07", "read.p.h.o.x.-7", "read.p.h.o.x.+7", "read.p.h.o.x.y",
		"r.p.h.o.x.7", "r." + long, "r." + long + ".7", "read." + long + ".4711000", "read.p.h.o.x.7.7",
		"tick.x", "tick.p.h.o.x", "tick.p.h.slot-1", "tick.p.h.slot-1.1-7", "tick.p.h.o.x.1-07", "tick.p.h.o.x.1-1B", "tick.p.h.o.x.-1", "tick.p.h.o.x.1--1",
		"tick.p.h.o.x.1-_", "tick.p.h.o.x.7", "tick.p.h.o.x.0-7", "tick.p.h.o.x.01-7", "tick.p.h.o.x.1-2-3", "t.p.h.o.x.1-7",
		"temp.notes", "temp.", "temp." + aToken[1:], "temp." + aToken + "0", "temp." + strings.ToUpper(aToken), "temp." + strings.Repeat("z", 32),
		"smith.x", "smith.0", "smith.047", "smith." + aToken[1:] + "g", "smith.4711.x",
	} {
		check.Equal(t, name, ParseFile(name), File{})
	}
}

func TestEveryAtomAndSlotNameIsParsedUnchanged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		named := rapid.SampledFrom([]Atom{Named("x", "h"), ofParts(NamedProgram, "h", "o", "x"), ofParts("p", "h", RunOperator, "x")})
		a := rapid.OneOf(anyAtom(), named).Draw(t, "atom")
		for _, name := range []Name{a.Name(), a.Slot(7)} {
			if got, is := parseName(string(name)); !is || got != name {
				t.Fatalf("%s of %#v is read back as %q, %v", name, a, got, is)
			}
			if name.Host() != Canonify(a.Host) || name.Prefix() != Canonify(a.Program)+"."+Canonify(a.Host)+"." {
				t.Fatalf("%s is of the host %s and begins with %s", name, name.Host(), name.Prefix())
			}
		}
		if slot := a.Slot(7); slot.SlotPrefix() != a.Name().SlotPrefix() || !strings.HasPrefix(string(slot), slot.SlotPrefix()) || a.IsNamed() != (slot.SlotPrefix() != slot.Prefix()) {
			t.Fatalf("%s counts %s", slot, a.Name())
		}
		if a.Name().IsSlot() || !a.Slot(7).IsSlot() || a.Name().SlotNumber() != 0 || a.Slot(7).SlotNumber() != 7 {
			t.Fatalf("which is a slot: %s or %s", a.Name(), a.Slot(7))
		}
	})
}

func TestInvalidAtomNamesAreRefused(t *testing.T) {
	const good = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
	for c := range 256 {
		text := "p.h.o.a" + string([]byte{byte(c)})
		if name, is := parseName(text); is != strings.Contains(good, text[7:]) || is && string(name) != text || !is && name != "" {
			t.Errorf("%q: %q, %v", text, name, is)
		}
	}
	x47, x48 := strings.Repeat("x", keptPrefix-1), strings.Repeat("x", keptPrefix)
	for part, want := range map[string]bool{
		"": false, "-": false, "-1": false, "a_-1": true, "_-1": true, "a_-": false, "a_-01": false, "a_-0": true, "a_-x": false,
		"a_-1-1": false, "a_-4294967295": true, "a_-4294967296": false, "a_-+1": false,
		"slot-1": false, x47 + "-1": false, x48 + "-1": true, x48 + "x-1": false, x48 + "_-1": false, x47 + "_-1": true,
		strings.Repeat("x", longestPlain): true, strings.Repeat("x", longestPlain+1): false,
	} {
		for _, text := range []string{part + ".h.o.x", "p." + part + ".o.x", "p.h." + part + ".x", "p.h.o." + part} {
			if _, is := parseName(text); is != want {
				t.Errorf("%q: %v", text, is)
			}
		}
	}
}

func TestALockMayBeCalledByItsNameOrItsFileName(t *testing.T) {
	for text, want := range map[string]File{
		"p.h.o.x":         {Kind: ActiveLock, Name: "p.h.o.x"},
		"p.h.slot-1":      {Kind: ActiveLock, Name: "p.h.slot-1"},
		"lock.p.h.o.x":    {Kind: ActiveLock, Name: "p.h.o.x"},
		"lock.p.h.slot-1": {Kind: ActiveLock, Name: "p.h.slot-1"},
		"read.p.h.o.x.7":  {Kind: ReaderLock, Name: "p.h.o.x", Number: 7},
		"lock.h.o.x":      {Kind: ActiveLock, Name: "lock.h.o.x"}, // the program is called lock
		"lock.lock.h.o.x": {Kind: ActiveLock, Name: "lock.h.o.x"},
	} {
		got, is := LockCalled(text)
		if got != want || !is {
			t.Errorf("%s is %#v, %v", text, got, is)
		}
		if back, is := LockCalled(got.Called()); back != want || !is {
			t.Errorf("%s is called %s, which is %#v, %v", text, got.Called(), back, is)
		}
	}
	for _, text := range []string{"", "x", "p.h.o", "p.h.o.x.7", "last.p.h.o.x", "read.p.h.o.x", "lock.p.h.o.x.7", "temp." + aToken, "smith.7", "../p.h.o.x"} {
		// last.p.h.o.x has one part too many for a NAME.
		if got, is := LockCalled(text); is {
			t.Errorf("%q is taken for %#v", text, got)
		}
	}
}

func TestReaderLockNamesMatchTheSharedTestVectors(t *testing.T) {
	text := must.Get(os.ReadFile("../../test/support/readers.tsv"))(t)
	cases := 0
	for line := range strings.Lines(string(text)) {
		field := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if strings.HasPrefix(line, "#") {
			continue
		}
		pid := must.Get(strconv.Atoi(field[1]))(t)
		name := Name(field[0])
		if got := name.ReaderLock(pid); got != field[2] || len(got) > longestFile {
			t.Errorf("%d bytes: %s", len(got), got)
		}
		check.Equal(t, field[2], ParseFile(field[2]), File{Kind: ReaderLock, Name: name, Number: pid})
		cases++
	}
	if cases < 5 {
		t.Fatalf("only %d vectors were read", cases)
	}
}

// A pid has seven digits at most (PID_MAX_LIMIT); the generations of an atom in a store may have more.
func TestNoFileNameIsTooLongForAFileSystem(t *testing.T) {
	for n := 1; n < 1e9; n = 10*n + 9 {
		for _, want := range []File{{Kind: ActiveLock, Name: longestName}, {Kind: LastLock, Name: longestName}, {Kind: ReadersMark, Name: longestName}, {Kind: ReaderLock, Name: longestName, Number: n}, {Kind: Generation, Name: longestName, Number: n}} {
			if got := ParseFile(want.String()); len(want.String()) > longestFile || got != want {
				t.Errorf("%d bytes, read back as %#v: %s", len(want.String()), got, want)
			}
		}
	}
}
