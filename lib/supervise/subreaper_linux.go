package supervise

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"
)

// CanKeepWhole reports whether Job.WholeJob works, as this process can adopt orphans. It changes nothing.
func CanKeepWhole() bool {
	var adopts int32
	return unix.Prctl(unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&adopts)), 0, 0, 0) == nil
}

// hasChildren reports whether this process has a child that is not reaped. While any process of the
// job lives, this process has such a child, because it adopts the job's orphans. This check is cheaper
// than reading the process table and more reliable, as the job may fork during such a reading.
func hasChildren() bool {
	return unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil) != unix.ECHILD
}

// adoptOrphans makes this process the parent of its descendants whose own parent dies
// (PR_SET_CHILD_SUBREAPER(2const), Linux 3.4): otherwise a process that forked twice could not be
// found any more. Older kernels return EINVAL, as does qemu for programs of another architecture:
// there orphans are found only in the group that this process leads, as on systems other than Linux.
func adoptOrphans() error {
	err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	if errors.Is(err, unix.EINVAL) {
		return nil
	}
	return err
}
