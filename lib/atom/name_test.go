package atom

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"adlock/lib/fault"
	"adlock/test/support/check"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

func TestAtomNamesMatchTheSharedTestVectors(t *testing.T) {
	text := must.Get(os.ReadFile("../../test/support/names.tsv"))(t)
	unescape := strings.NewReplacer(`\\`, `\`, `\t`, "\t")
	cases := 0
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "#") {
			continue
		}
		field := strings.Split(line, "\t")
		if len(field) != 5 {
			t.Fatalf("%q has %d fields", line, len(field))
		}
		for i := range field {
			field[i] = unescape.Replace(field[i])
		}
		atom := ofParts(field[0], field[1], field[2], field[3])
		check.Equal(t, atom.String(), string(atom.Name()), field[4])
		cases++
	}
	if cases < 30 {
		t.Fatalf("only %d vectors were read", cases)
	}
}

func TestDifferentShortPartsHaveDifferentNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.StringMatching(`[a-c/._-]{1,6}`)
		a, b := part.Draw(t, "a"), part.Draw(t, "b")
		if a != b && Canonify(a) == Canonify(b) {
			t.Fatalf("%q and %q are both %q", a, b, Canonify(a))
		}
	})
}

func TestALongOperandIsShortenedWithoutChangingTheName(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		length := rapid.IntRange(longestOperand-20, longestOperand+20).Draw(t, "length")
		operand := strings.Repeat("\x01", length) + rapid.StringMatching(`-?[0-9a]{0,12}`).Draw(t, "tail")
		whole := ofParts("p", "h", "o", operand)
		a, err := New("p", "h", "o", operand)
		if err != nil || len(a.Operand) > longestOperand+len("-4294967295") {
			t.Fatalf("an operand of %d bytes (%v)", len(a.Operand), err)
		}
		if want := "p.h.o." + Canonify(operand); string(a.Name()) != want || a.Exact() {
			t.Fatalf("is named %q, want %q", a.Name(), want)
		}
		if len(operand) <= longestOperand && a != whole {
			t.Fatal("a short operand was changed")
		}
	})
}

func TestOnlyAChecksumAtItsEndMarksAnOperandAsShortened(t *testing.T) {
	for tail, isCut := range map[string]bool{"-7": true, "-4294967295": true, "-07": false, "-4294967296": false, "-x": false, "-": false, "": false} {
		operand := strings.Repeat("x", longestOperand) + tail
		a, _ := New("p", "h", "o", operand)
		if got := ofParts("p", "h", "o", operand).Name(); (got != Name("p.h.o."+Canonify(operand))) != isCut || (a.Operand == operand) != (tail == "") {
			t.Errorf("an operand that ends in x%s is named %s, and has %d bytes", tail, got, len(a.Operand))
		}
	}
}

func TestAnAtomIsReadBackOnlyFromAnUnshortenedName(t *testing.T) {
	for text, want := range map[string]Atom{
		"cfengine_conf.dax.editfile._etc_motd": ofParts("cfengine.conf", "dax", "editfile", "/etc/motd"),
		"backup.dax.run.a-12345":               {},
		"backup.dax.slot-1":                    {},
		"a.b.c":                                {},
		"a.b..d":                               {},
		"a.b.c.d/e":                            {},
		"-1.h.o.x":                             {},
		"a.b.c.d-":                             {},
	} {
		if got, ok := Name(text).Atom(); got != want && ok || ok != (want != Atom{}) {
			t.Errorf("%s: %v, %v", text, got, ok)
		}
	}
}

func TestALockOfAnotherAtomWithTheSameNameIsAnError(t *testing.T) {
	mine := Atom{Program: "p", Host: "h", Operator: "o", Operand: "x"}
	other := mine
	other.Operand = "y"
	for _, found := range []Atom{mine, {}} {
		must.Do(t, mine.CheckFound("lock.p.h.o.x", found))
	}
	const want = "lock.p.h.o.x: is the lock of another atom with the same name: p on h: o y (wanted: p on h: o x)"
	if err := mine.CheckFound("lock.p.h.o.x", other); err == nil || err.Error() != want || fault.KindOf(err) != fault.System {
		t.Errorf("got %v", err)
	}
}

func TestALockOfAnotherCommandWithTheSameNameIsAnError(t *testing.T) {
	mine := ofParts("p", "h", "run", "p-1")
	mine.Command = "p -a"
	unknown, other := mine, mine
	unknown.Command, other.Command = "", "p -b"
	for _, found := range []Atom{mine, unknown, {}} {
		must.Do(t, errors.Join(mine.CheckFound("lock", found), unknown.CheckFound("lock", found)))
	}
	// The error names no command: commands hold passwords, and errors reach mails, runlog and hooks.
	const want = "lock: is the lock of another command with the same name and sum, p-1 (to see that command: adlock status)"
	if err := mine.CheckFound("lock", other); err == nil || err.Error() != want || fault.KindOf(err) != fault.System {
		t.Errorf("got %v", err)
	}
	check.Equal(t, "the name with another command", other.Name(), mine.Name())
}

func TestAnUnnamedCommandIsNamedByItsBaseAndCksum(t *testing.T) {
	operand, kept := Unnamed("rsync", "123456789")
	if operand != "rsync-930766865" || kept != "123456789" { // printf 123456789 | cksum prints this sum
		t.Errorf("%s, %s", operand, kept)
	}
	long := strings.Repeat("x", longestOperand+1)
	if operand, kept := Unnamed(long, long); len(operand) > keptPrefix+11 || len(kept) > longestOperand+11 {
		t.Errorf("%d and %d bytes", len(operand), len(kept))
	}
	if d := Digest("x"); !IsDigest(d) || d == Digest("y") || IsDigest("/x") {
		t.Error(d)
	}
}

func TestOnlyOperandsMayBeLongAndNoPartMayBeEmptyOrHoldNUL(t *testing.T) {
	long := strings.Repeat("x", longestOther+1)
	for _, part := range []string{"", "\x00", "\x00x", "x\x00", "x\x00y", long} {
		for _, atom := range []Atom{ofParts(part, "h", "o", "x"), ofParts("p", part, "o", "x"), ofParts("p", "h", part, "x"), ofParts("p", "h", "o", part)} {
			if code := fault.KindOf(atom.Check()); code != fault.Usage && atom.Operand != long {
				t.Errorf("%#v: status %d", atom, code)
			}
		}
	}
	must.Do(t, ofParts(long[1:], long[1:], long[1:], long).Check())
}

func TestChecksumsAreThoseOfTheCksumProgram(t *testing.T) {
	need.Tools(t, "cksum")
	for _, size := range []int{0, 1, 255, 256, 257, 65535, 65536, 70000} {
		text := strings.Repeat("adlock ", size/7+1)[:size]
		command := exec.Command("cksum")
		command.Stdin = strings.NewReader(text)
		out := must.Get(command.Output())(t)
		if want, _, _ := strings.Cut(string(out), " "); strconv.FormatUint(uint64(cksumOf(text)), 10) != want {
			t.Errorf("of %d bytes it is %d, cksum says %s", size, cksumOf(text), want)
		}
	}
}
