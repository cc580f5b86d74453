package supervise

import (
	"golang.org/x/sys/unix"

	"adlock/lib/sysfile"
)

// awaitChildren sends to c.children when a child of this process has ended, until this process has no child.
// Then nothing of the job is left, as this process adopts the job's orphans. awaitChildren reaps none itself. It
// waits in a thread of its own, because SIGCHLD would come through three other threads of the runtime.
func (c catcher) awaitChildren() {
	for sysfile.Retry(childEnded) == nil {
		c.children <- struct{}{}
	}
}

// childEnded returns when a child that is not reaped has ended. The error is ECHILD if there is none.
func childEnded() error {
	return unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOWAIT, nil)
}
