package sysfile

import (
	"os"
	"os/signal"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// action holds the kernel's struct sigaction, which is no larger; the zero action is SIG_DFL.
type action [64]byte

// swap gives the signal the action *a, and stores the earlier action in *a. It calls the kernel directly,
// because the runtime restores the default action of only three signals.
func (a *action) swap(sig unix.Signal) {
	const maskSize = 8 // the kernel's; it is 16 only on MIPS, where the call fails
	to := *a
	_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&to)), uintptr(unsafe.Pointer(a)), maskSize, 0, 0)
}

// LeaveToKernel gives the signals, unless they are ignored, the default action, so that the kernel ends this
// process at once. (The runtime's handler would need several steps in the thread that got the signal, while
// the others go on.) Call giveBack after signal.Notify: it restores the earlier actions.
//
// A signal that came before LeaveToKernel may still be ending this process in another thread. The runtime
// first marks such a signal (dieFromSignal), and signal.Notify installs a handler again only for a marked one
// (sigenable). So if giveBack finds a handler in place of the default action, it ends this process by that signal.
func LeaveToKernel(signals []os.Signal) (giveBack func()) {
	actions := make([]action, len(signals))
	exchange(signals, actions)
	return func() {
		exchange(signals, actions)
		for i, sig := range signals {
			if actions[i] != (action{}) {
				DieOf(sig.(syscall.Signal))
			}
		}
	}
}

func exchange(signals []os.Signal, actions []action) {
	for i, sig := range signals {
		if !signal.Ignored(sig) {
			actions[i].swap(sig.(syscall.Signal))
		}
	}
}
