//go:build !linux

package supervise

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// awaitChildren sends to c.children when a child of this process has ended, also before this call.
func (c catcher) awaitChildren() {
	ended := make(chan os.Signal, 1)
	for signal.Notify(ended, unix.SIGCHLD); ; <-ended {
		c.children <- struct{}{}
	}
}
