package sysfile

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// raise returns where the signal has not ended this process. What fails in it leaves that to
// the caller. The runtime itself can give back three signals only: for the others it prints
// a trace, or does nothing.
func raise(sig unix.Signal) {
	// A limit of 0 would not do: a core that goes into a pipe knows no limit (core(5)).
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	runtime.LockOSThread() // whose mask it is
	var byDefault [64]byte // a struct sigaction is no larger, and SIG_DFL is 0
	const maskSize = 8     // the kernel's; 16 on MIPS alone, where this fails
	_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&byDefault)), 0, maskSize, 0, 0)
	var only unix.Sigset_t
	bit, width := int(sig)-1, int(unsafe.Sizeof(only.Val[0]))*8
	only.Val[bit/width] |= 1 << (bit % width)
	_ = unix.PthreadSigmask(unix.SIG_UNBLOCK, &only, nil)
	_ = unix.Tgkill(unix.Getpid(), unix.Gettid(), sig) // it comes before this returns
}
