package main

import "golang.org/x/sys/unix"

// awaitDeath returns once the process has died, or after a second; false where it
// cannot be watched. Whose pid it is the caller checks.
func awaitDeath(pid int) bool {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	_, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 1000)
	return err == nil
}
