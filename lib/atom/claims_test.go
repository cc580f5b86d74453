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

func TestOnlyAnOperandMayBeLongAndNoPartEmptyOrWithNUL(t *testing.T) {
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
