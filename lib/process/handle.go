package process

import (
	"golang.org/x/sys/unix"
)

// handle holds on to one process, so that a signal meant for it cannot reach
// another that was given its pid since. Without a descriptor (fd < 0: no
// pidfd, or no descriptor to spare) the start time is compared right before
// each signal instead, which leaves a window of microseconds.
type handle struct {
	key
	fd int
}

// hold returns a handle, or unix.ESRCH where that very process is gone: another
// start, or another inode where one is asked for. With an error the handle has
// no descriptor.
func hold(k key, inode uint64) (handle, error) {
	h := handle{k, openPidfd(k.pid)}
	// Compared after opening: now the descriptor pins what was compared.
	err := h.verify()
	if now := inodeOfPidfd(h.fd); inode != 0 && now != 0 && now != inode {
		err = unix.ESRCH
	}
	if err != nil {
		h.close()
		return handle{k, -1}, err
	}
	return h, nil
}

func (h handle) verify() error {
	e, err := find(h.pid)
	if err != nil {
		return err
	}
	if e.key() != h.key || e.dead {
		return unix.ESRCH
	}
	return nil
}

// signal sends sig; 0 only asks for permission. Errors are the system's:
// unix.ESRCH where the process is gone, unix.EPERM where we may not.
func (h handle) signal(sig unix.Signal) error {
	if h.fd >= 0 {
		return signalPidfd(h.fd, sig)
	}
	if err := h.verify(); err != nil {
		return err
	}
	return unix.Kill(h.pid, sig)
}

// dead is true only for a confirmed death.
func (h handle) dead() bool {
	if h.fd >= 0 {
		return pidfdDead(h.fd)
	}
	return h.verify() == unix.ESRCH
}

func (h handle) close() {
	if h.fd >= 0 {
		unix.Close(h.fd)
	}
}
