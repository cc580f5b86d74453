package process

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// patience is how many scans in a row may find new members, after KILL, before
// the job is taken to fork faster than it can be scanned.
const patience = 3

// outrun is for jobs in which every process has forked its successor before a
// scan comes to it. It looks where such a successor must be: among the
// children of the subreaper that inherits it, or in the owner's group, which
// the kernel signals as one, forks included.
func (k Killer) outrun(h *hunt, deadline time.Time) error {
	if h.growing == 0 {
		return nil
	}
	if h.keeper.pid != 0 {
		tried := make(map[int]bool)
		for found := true; found && time.Now().Before(deadline); {
			var err error
			if found, err = k.chase(h, tried); err != nil {
				return err
			}
		}
	}
	if h.growing > patience {
		k.killGroup(h)
	}
	return nil
}

// killGroup signals the owner's group as one, where all in it are members, and
// tells whether it did. Of a dead owner's group each member is first asked whose
// it is; in the group that this process leads, the signal would reach this process.
func (k Killer) killGroup(h *hunt) bool {
	if !h.whole || h.orphans || h.kin.leader.pid == os.Getpid() || unix.Kill(-h.kin.leader.pid, unix.SIGKILL) != nil {
		return false
	}
	k.observe(-h.kin.leader.pid, unix.SIGKILL, "")
	return true
}

// chase kills the keeper's new children, whose list takes microseconds to
// read. It is true where there were any that had not been tried: also those
// that were gone when looked at, as they may have left a successor.
func (k Killer) chase(h *hunt, tried map[int]bool) (found bool, err error) {
	for _, pid := range children(h.keeper.pid) {
		if tried[pid] {
			continue
		}
		tried[pid], found = true, true
		e, err := look(pid)
		if err != nil || e.dead || e.ppid != h.keeper.pid || !h.adopt(e) {
			continue
		}
		if err := k.record(h); err != nil {
			return found, err
		}
		if m := h.members[e.key()]; m.err == nil {
			m.stage = len(stages)
			k.send(m, unix.SIGKILL)
		}
	}
	return found, nil
}
