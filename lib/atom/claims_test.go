package atom

import (
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"adlock/lib/fault"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

func TestNullBytesAreRefusedWhereverTheyAre(t *testing.T) {
	for _, part := range []string{"\x00", "\x00x", "x\x00", "x\x00y"} {
		for _, atom := range []Atom{ofParts(part, "h", "o", "x"), ofParts("p", part, "o", "x"), ofParts("p", "h", part, "x"), ofParts("p", "h", "o", part)} {
			if code := fault.KindOf(atom.Check()); code != fault.Usage {
				t.Errorf("%#v: status %d", atom, code)
			}
		}
	}
	if err := (ofParts("p", "h", "o", "x")).Check(); err != nil {
		t.Error(err)
	}
}

func TestANameIsExactWhereNoPartHasAChecksum(t *testing.T) {
	long := strings.Repeat("x", longestPlain+1)
	for _, c := range []struct {
		atom Atom
		want bool
	}{
		{ofParts("p", "h", "o", "/etc/motd"), true},
		{ofParts(long, "h", "o", "x"), false},
		{ofParts("p", "h", "o", "a b"), false},
	} {
		if got := c.atom.Exact(); got != c.want {
			t.Errorf("%s: exact is %v", c.atom.Name(), got)
		}
	}
}

func TestAPartIsKeptWholeUpToSixtyBytes(t *testing.T) {
	whole := strings.Repeat("x", 60)
	if got := Canonify(whole); got != whole {
		t.Errorf("60 bytes became %q", got)
	}
	if got := Canonify(whole + "x"); !strings.HasPrefix(got, whole[:48]+"-") {
		t.Errorf("61 bytes became %q", got)
	}
}

func TestEveryLetterAndDigitIsKept(t *testing.T) {
	for c := range 256 {
		text := "a" + string([]byte{byte(c)})
		alnum := strings.Contains("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", text[1:])
		if got := Canonify(text); (got == text) != alnum {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestTheChecksumIsThatOfCksum(t *testing.T) {
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

func TestAPartWithAChecksumIsNotReadBack(t *testing.T) {
	for _, text := range []string{"-1.h.o.x", "a.b.c.d-", "a.b.c.-", "a.b.c.d.e", "a.b c.d.e", "a.b.c.d "} {
		if got, ok := Name(text).Atom(); ok {
			t.Errorf("%q was read as %#v", text, got)
		}
	}
}

func TestAnAtomInWordsNamesItsParts(t *testing.T) {
	if got := (ofParts("backup", "dax", "run", "/srv")).String(); got != "backup on dax: run /srv" {
		t.Error(got)
	}
}

func TestASlotIsNoAtomOfTheProgram(t *testing.T) {
	slot := ofParts("a.sh", "dax", "run", "x").Slot(12)
	if slot != "a_sh.dax.slot-12" {
		t.Errorf("slot is %q", slot)
	}
	if atom, ok := slot.Atom(); ok {
		t.Errorf("%q was read as %#v", slot, atom)
	}
}
