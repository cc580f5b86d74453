package supervise

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"
)

// CanKeepWhole says whether Job.WholeJob is kept here: where this process can adopt
// orphans. It asks, and changes nothing.
func CanKeepWhole() bool {
	var adopts int32
	return unix.Prctl(unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&adopts)), 0, 0, 0) == nil
}

// hasChildren says whether a child has to be reaped yet. As long as something lives
// that the command started there is such a child, as this process adopts its orphans:
// that is surer than a look at the process table, past which a job may fork, and costs
// less.
func hasChildren() bool {
	return unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil) != unix.ECHILD
}

// adoptOrphans makes this process the parent of its descendants whose own
// parent dies (PR_SET_CHILD_SUBREAPER(2const), Linux 3.4): else a process that
// forked twice would be lost from sight. A kernel answers EINVAL where it knows nothing
// of that, as qemu does that runs programs of another architecture: there an orphan is
// known by its group and its session, as on systems other than Linux.
func adoptOrphans() error {
	err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	if errors.Is(err, unix.EINVAL) {
		return nil
	}
	return err
}
