package sysfile

import "golang.org/x/sys/unix"

// IsTerminal requests the window size: only a terminal answers that, on every system.
func IsTerminal(fd int) bool {
	_, is := Columns(fd)
	return is
}

// Columns is the terminal's number of columns, 0 if it is unknown; false if there is no terminal.
func Columns(fd int) (columns int, is bool) {
	size, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ)
	if err != nil {
		return 0, false
	}
	return int(size.Col), true
}
