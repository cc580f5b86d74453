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

func TestEmptyPartsAndNullBytesAreRefused(t *testing.T) {
	for _, part := range []string{"", "\x00", "\x00x", "x\x00", "x\x00y"} {
		for _, atom := range []Atom{ofParts(part, "h", "o", "x"), ofParts("p", part, "o", "x"), ofParts("p", "h", part, "x"), ofParts("p", "h", "o", part)} {
			if code := fault.KindOf(atom.Check()); code != fault.Usage {
				t.Errorf("%#v: status %d", atom, code)
			}
		}
	}
	must.Do(t, (ofParts("p", "h", "o", "x")).Check())
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
