// Package need declares what a test requires. If that is missing, the test is skipped with a
// reason, or fails if skipping is forbidden (ADLOCK_TEST_SKIP=no). The package imports nothing of
// the project, so that the tests of every package can use it.
package need

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Tools needs programs on PATH.
func Tools(t testing.TB, tools ...string) {
	t.Helper()
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			Skip(t, tool, "is not installed")
		}
	}
}

// Namespaces needs permission for unshare(1) with these options.
func Namespaces(t testing.TB, options ...string) {
	t.Helper()
	Tools(t, "unshare")
	if out, err := exec.Command("unshare", append(options, "true")...).CombinedOutput(); err != nil {
		Skip(t, "no namespaces to be had:", string(out))
	}
}

// Root needs a test run by root.
func Root(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		Skip(t, "only root can run this")
	}
}

// MachineID needs a machine with an id, which distinguishes its boots from another machine's
// (machine-id(5)): most containers have none.
func MachineID(t testing.TB) {
	t.Helper()
	for _, path := range []string{"/etc/machine-id", "/var/lib/dbus/machine-id"} {
		if text, err := os.ReadFile(path); err == nil && len(text) > 1 && !strings.HasPrefix(string(text), "uninitialized") {
			return
		}
	}
	Skip(t, "no machine id here: see systemd-machine-id-setup(1)")
}

// Skip skips the test, or fails it if skipping is forbidden.
func Skip(t testing.TB, why ...any) {
	t.Helper()
	if os.Getenv("ADLOCK_TEST_SKIP") == "no" {
		t.Fatal("may not be skipped: ", fmt.Sprintln(why...))
	}
	t.Skip(why...)
}
