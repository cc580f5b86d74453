//go:build soak

package cli

import (
	"testing"

	"golang.org/x/sys/unix"

	"adlock/test/support/helper"
	"adlock/test/support/need"
)

// The Go runtime's handler ends a process in several steps, the last of them a tgkill(2), while the
// other threads go on. Here they may go on for long.
func TestASignalWhoseHandlerIsSlowLeavesNoJob(t *testing.T) {
	need.Tools(t, "strace")
	signalsAtInstants(t, unix.SIGTERM, func(*helper.Process) bool { return true }, 80,
		"strace", "-D", "-f", "-qq", "-o", "/dev/null", "-e", "trace=tgkill", "-e", "inject=tgkill:delay_enter=100000")
}
