package supervise

import "golang.org/x/sys/unix"

// adoptOrphans makes this process the parent of its descendants whose own
// parent dies (PR_SET_CHILD_SUBREAPER(2const), Linux 3.4): else a process that
// forked twice would be lost from sight.
func adoptOrphans() error {
	return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
}
