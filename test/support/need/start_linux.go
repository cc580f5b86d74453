package need

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"unsafe"
)

// resetIgnored resets the signals that the Go runtime leaves ignored: the runtime never touches 32
// and 33, which a C library uses itself, nor those that stop a process.
func resetIgnored() {
	text, _ := os.ReadFile("/proc/self/status") // without it no signal is known to be ignored
	_, mask, _ := strings.Cut(string(text), "\nSigIgn:\t")
	mask, _, _ = strings.Cut(mask, "\n")
	ignored, _ := strconv.ParseUint(mask, 16, 64)
	for sig := uintptr(1); sig <= 64; sig++ {
		if ignored>>(sig-1)&1 == 1 && sig != uintptr(syscall.SIGPIPE) {
			var byDefault [64]byte // no struct sigaction is larger, and SIG_DFL is 0
			_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, sig, uintptr(unsafe.Pointer(&byDefault)), 0, 8, 0, 0)
		}
	}
}
