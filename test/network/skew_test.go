//go:build soak

package network

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"adlock/test/support/helper"
)

// aheadVariable says by how many seconds the wall clock of a program built by skewed is ahead.
const aheadVariable = "TEST_CLOCK_AHEAD"

// Go reads the clock without a system call and without the C library, so no call can be
// intercepted; and a time namespace has a monotonic clock of its own, but no wall clock. So the
// test changes the standard library.
const (
	readsClock   = "	sec, nsec, mono := runtimeNow()\n"
	shiftsClock  = readsClock + "	sec += ahead()\n"
	importsFirst = "import (\n"
	readsAhead   = `
func ahead() (seconds int64) {
	text, _ := syscall.Getenv("` + aheadVariable + `")
	for _, c := range text {
		if c != '-' {
			seconds = 10*seconds + int64(c-'0')
		}
	}
	if len(text) > 0 && text[0] == '-' {
		return -seconds
	}
	return seconds
}
`
)

// skewedClock writes the standard library's time.go with a clock that may be ahead, and returns
// the overlay that builds with it (go help build).
func skewedClock(dir string) (overlay string, err error) {
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", err
	}
	file := filepath.Join(strings.TrimSpace(string(goroot)), "src/time/time.go")
	source, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	if strings.Count(string(source), readsClock) != 1 || strings.Count(string(source), importsFirst) != 1 {
		return "", fmt.Errorf("%s of %s reads the clock in another way", file, runtime.Version())
	}
	changed := strings.NewReplacer(readsClock, shiftsClock, importsFirst, importsFirst+"	\"syscall\"\n").Replace(string(source))
	if err := os.WriteFile(dir+"/time.go", []byte(changed+readsAhead), 0o600); err != nil {
		return "", err
	}
	list, err := json.Marshal(map[string]any{"Replace": map[string]string{file: dir + "/time.go"}})
	if err != nil {
		return "", err
	}
	return dir + "/overlay.json", os.WriteFile(dir+"/overlay.json", list, 0o600)
}

var buildSkewed = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(beside, "skewed")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	overlay, err := skewedClock(dir)
	if err != nil {
		return "", err
	}
	for _, program := range []string{"adlock", "adlock-locksmith"} {
		if err := helper.Compile(filepath.Join(dir, program), "./cmd/"+program, "-overlay", overlay); err != nil {
			return "", err
		}
	}
	return filepath.Join(dir, "adlock"), nil
})

// skew gives the host a wall clock ahead of the machine's by that many seconds.
func (h *host) skew(t testing.TB, ahead time.Duration) {
	t.Helper()
	bin, err := buildSkewed()
	if err != nil {
		t.Fatal(err)
	}
	h.bin = bin
	h.env = append(h.env, fmt.Sprintf("%s=%d", aheadVariable, int(ahead.Seconds())))
}
