package sysfile

import "golang.org/x/sys/unix"

// IsTerminal reports whether the descriptor is a terminal. It requests the window size: this
// request has the same name on every system, and only a terminal answers it, even if the size is
// unknown.
func IsTerminal(fd int) bool {
	_, is := Columns(fd)
	return is
}

// Columns is the terminal's number of columns, 0 if it is unknown; false if the descriptor is no
// terminal.
func Columns(fd int) (columns int, is bool) {
	size, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ)
	if err != nil {
		return 0, false
	}
	return int(size.Col), true
}
