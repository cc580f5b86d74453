//go:build soak

package network

import (
	"errors"
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

// Go reads the clock without a system call and without the C library, so no call can be
// intercepted; and a time namespace has a monotonic clock of its own, but no wall clock. So the
// test changes the standard library: $TEST_CLOCK_AHEAD says by how many seconds the wall clock is
// ahead, $TEST_CLOCK_FROM since when.
const (
	readsClock   = "	sec, nsec, mono := runtimeNow()\n"
	shiftsClock  = readsClock + "	if sec >= variable(\"TEST_CLOCK_FROM\") {\n		sec += variable(\"TEST_CLOCK_AHEAD\")\n	}\n"
	importsFirst = "import (\n"
	readsNumber  = `
func variable(name string) (n int64) {
	text, _ := syscall.Getenv(name)
	for _, c := range text {
		if c != '-' {
			n = 10*n + int64(c-'0')
		}
	}
	if len(text) > 0 && text[0] == '-' {
		return -n
	}
	return n
}
`
)

// buildSkewed builds adlock and its locksmith with a changed time.go.
var buildSkewed = sync.OnceValues(func() (string, error) {
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
	beneath, err := filepath.Rel(helper.Root(), file)
	if err != nil {
		return "", err
	}
	changes := strings.NewReplacer(readsClock, shiftsClock, importsFirst, importsFirst+"	\"syscall\"\n")
	skewed := changes.Replace(string(source)) + readsNumber
	return buildBoth("skewed", helper.Changes{beneath: skewed})
})

// buildBoth builds adlock and its locksmith with these changes, in a directory of that name.
func buildBoth(name string, c helper.Changes) (string, error) {
	dir := filepath.Join(beside, name)
	err := os.Mkdir(dir, 0o700)
	for _, program := range []string{"adlock", "adlock-locksmith"} {
		err = errors.Join(err, c.Build(filepath.Join(dir, program)))
	}
	return filepath.Join(dir, "adlock"), err
}

// skew gives the host a wall clock ahead of the machine's.
func (h *host) skew(t testing.TB, ahead time.Duration) { h.step(t, time.Unix(0, 0), ahead) }

// step makes the wall clock of the host step at that time.
func (h *host) step(t testing.TB, at time.Time, by time.Duration) {
	t.Helper()
	bin, err := buildSkewed()
	if err != nil {
		t.Fatal(err)
	}
	h.bin = bin
	from, ahead := fmt.Sprint("TEST_CLOCK_FROM=", at.Unix()), fmt.Sprint("TEST_CLOCK_AHEAD=", int(by.Seconds()))
	h.env = append(h.env, from, ahead)
}
