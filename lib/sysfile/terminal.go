package sysfile

import "golang.org/x/sys/unix"

// IsTerminal reports whether fd is a terminal: on every system, only a terminal has a window size.
func IsTerminal(fd int) bool {
	_, is := Columns(fd)
	return is
}

// Columns returns the terminal's number of columns, 0 if it is unknown; false if fd is no terminal.
func Columns(fd int) (columns int, is bool) {
	size, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ)
	if err != nil {
		return 0, false
	}
	return int(size.Col), true
}
