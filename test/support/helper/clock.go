package helper

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// Go reads the clock without a system call and without the C library, so no call can be
// intercepted; and a time namespace has a monotonic clock of its own, but no wall clock. So a
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

// Skewed gives programs another wall clock.
func Skewed() (Changes, error) {
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(strings.TrimSpace(string(goroot)), "src/time/time.go")
	source, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if strings.Count(string(source), readsClock) != 1 || strings.Count(string(source), importsFirst) != 1 {
		return nil, fmt.Errorf("%s of %s reads the clock in another way", file, runtime.Version())
	}
	beneath, err := filepath.Rel(Root(), file)
	changes := strings.NewReplacer(readsClock, shiftsClock, importsFirst, importsFirst+"	\"syscall\"\n")
	return Changes{beneath: changes.Replace(string(source)) + readsNumber}, err
}
