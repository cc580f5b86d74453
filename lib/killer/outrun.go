package killer

import (
	"os"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/process"
)

// mostGrowing is how many scans in a row may find new members after KILL. After more such scans the
// job counts as forking faster than it can be scanned.
const mostGrowing = 3

// outrun ends jobs in which each process forks a successor and exits before a scan reaches it. If the last scan found
// new members, it kills new children of the keeper, which inherits the successors, until there are no more, or until
// deadline. After more than mostGrowing such scans it also kills the owner's group. Any error comes from Record.
func (k Killer) outrun(h *tree, deadline time.Time) error {
	if h.growing == 0 {
		return nil
	}
	tried := make(map[int]bool)
	for found := true; found && time.Now().Before(deadline); {
		var err error
		if found, err = k.chase(h, tried); err != nil {
			return err
		}
	}
	if h.growing > mostGrowing {
		k.killGroup(h)
	}
	return nil
}

// killGroup sends KILL to the owner's group if all processes in it are members, and reports whether it did. It
// spares a dead owner's group: the user of each process there must be checked first. It spares the group that
// this process leads: the signal would reach this process too.
func (k Killer) killGroup(h *tree) bool {
	if !h.whole || h.orphans || h.membership.Leader.PID == os.Getpid() || unix.Kill(-h.membership.Leader.PID, unix.SIGKILL) != nil {
		return false
	}
	k.observe(-h.membership.Leader.PID, unix.SIGKILL, "")
	return true
}

// chase kills the keeper's children that are not in tried yet, and adds them to tried. found is true if there were
// any: even a child that has exited may have left a successor.
func (k Killer) chase(h *tree, tried map[int]bool) (found bool, err error) {
	for _, pid := range process.Children(h.keeper.PID) {
		if tried[pid] {
			continue
		}
		tried[pid], found = true, true
		if err := k.strike(h, pid); err != nil {
			return found, err
		}
	}
	return found, nil
}

// strike records a child of the keeper that is no member yet, unless it is hidden, and kills it if it may be
// signalled. Any error comes from Record.
func (k Killer) strike(h *tree, pid int) error {
	e, err := process.Find(pid)
	if err != nil || e.Hidden || e.Parent != h.keeper.PID || !h.adopt(e) {
		return nil
	}
	if err := k.record(h); err != nil {
		return err
	}
	if m := h.members[e.Key()]; m.err == nil {
		m.stage = len(stages)
		k.send(m, unix.SIGKILL)
	}
	return nil
}
