package sysfile

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// raise ends this process by the signal. It returns if this process survives.
func raise(sig unix.Signal) {
	// RLIMIT_CORE does not apply to a core that is piped to a program (core(5)).
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	runtime.LockOSThread() // the mask belongs to the thread
	new(action).swap(sig)
	var only unix.Sigset_t
	bit, width := int(sig)-1, int(unsafe.Sizeof(only.Val[0]))*8
	only.Val[bit/width] |= 1 << (bit % width)
	_ = unix.PthreadSigmask(unix.SIG_UNBLOCK, &only, nil)
	_ = unix.Tgkill(unix.Getpid(), unix.Gettid(), sig) // delivered before the call returns
}
