package supervise

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"
)

// CanKeepWhole reports whether Job.WholeJob works here: whether this process can adopt orphans.
// It changes nothing.
func CanKeepWhole() bool {
	var adopts int32
	return unix.Prctl(unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&adopts)), 0, 0, 0) == nil
}

// hasChildren reports whether a child is not reaped yet. While a process of the command's lives
// there is such a child, as this process adopts its orphans: that is surer than a look at the
// process table, during which a job may fork, and costs less.
func hasChildren() bool {
	return unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil) != unix.ECHILD
}

// adoptOrphans makes this process the parent of its descendants whose own parent dies
// (PR_SET_CHILD_SUBREAPER(2const), Linux 3.4): else a process that forked twice would be lost
// from sight. A kernel without it answers EINVAL, as does qemu for programs of another
// architecture: there an orphan is known by its group and its session, as on systems other than
// Linux.
func adoptOrphans() error {
	err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	if errors.Is(err, unix.EINVAL) {
		return nil
	}
	return err
}
