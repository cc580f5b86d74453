package process

import (
	"time"

	"golang.org/x/sys/unix"
)

// Handle holds one process, so that a signal meant for it cannot reach another process that has
// got its pid. Without a descriptor (fd < 0: no pidfd, or no descriptor to spare) the start time
// is compared right before each signal instead, which leaves a window of microseconds.
type Handle struct {
	Key
	fd int
}

const noPidfd = -1

// Hold returns a handle of k; with an error, one without a descriptor. The error is unix.ESRCH if k has exited or
// another process has its pid: the start differs, or the inode of the pidfd (not compared if either is 0, unknown).
func Hold(k Key, inode uint64) (Handle, error) {
	h := Handle{k, openPidfd(k.PID)}
	// Compare after opening: from then on the descriptor holds the process that is compared.
	err := h.verify()
	if now := inodeOfPidfd(h.fd); inode != 0 && now != 0 && now != inode {
		err = unix.ESRCH
	}
	if err != nil {
		h.Close()
		return Handle{k, noPidfd}, err
	}
	return h, nil
}

func (h Handle) verify() error {
	e, err := Find(h.PID)
	switch {
	case err != nil:
		return err
	case e.Exited:
		return unix.ESRCH
	case e.Hidden != (h.Start >= hiddenStart): // perhaps the same process, which has changed its user since
		return unix.EPERM
	case e.Key() != h.Key:
		return unix.ESRCH
	}
	return nil
}

// Signal sends sig; 0 only checks the permission. Errors are the system's: unix.ESRCH if the
// process is gone, unix.EPERM if this process may not signal it.
func (h Handle) Signal(sig unix.Signal) error {
	if h.fd >= 0 {
		return signalPidfd(h.fd, sig)
	}
	if err := h.verify(); err != nil {
		return err
	}
	return unix.Kill(h.PID, sig)
}

// Exited reports whether the process is known to have exited with all its threads, or is gone.
func (h Handle) Exited() bool {
	if h.fd >= 0 {
		return pidfdExited(h.fd)
	}
	return h.verify() == unix.ESRCH
}

// Await waits until the process has exited, d has passed or a signal interrupts it, and then returns true.
// Await returns false at once if the handle has no descriptor.
func (h Handle) Await(d time.Duration) bool {
	if h.fd < 0 {
		return false
	}
	AwaitDeath([]Handle{h}, d)
	return true
}

// Signal sends sig to the process e. The error is unix.ESRCH if e is gone, even if another process has its pid.
func (e Entry) Signal(sig unix.Signal) error {
	h, err := Hold(e.Key(), 0)
	if err != nil {
		return named(e.PID, err)
	}
	defer h.Close()
	if err := h.Signal(sig); err != nil {
		return named(e.PID, err)
	}
	return nil
}

// Inode returns the inode of the process's pidfd; 0: unknown (Identity.Inode).
func (h Handle) Inode() uint64 { return inodeOfPidfd(h.fd) }

func (h Handle) Close() {
	if h.fd >= 0 {
		unix.Close(h.fd)
	}
}
