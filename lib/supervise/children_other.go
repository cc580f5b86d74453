//go:build !linux

package supervise

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// awaitChildren sends to c.children at once, as a child may have ended before this call, and at each SIGCHLD.
func (c catcher) awaitChildren() {
	ended := make(chan os.Signal, 1)
	for signal.Notify(ended, unix.SIGCHLD); ; <-ended {
		c.children <- struct{}{}
	}
}
