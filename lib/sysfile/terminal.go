package sysfile

import "golang.org/x/sys/unix"

// IsTerminal says whether the descriptor is a terminal. It asks for the size of
// its window, a request of one name on every system, which only a terminal
// answers, also where the size is not known.
func IsTerminal(fd int) bool {
	_, is := Columns(fd)
	return is
}

// Columns is how many columns the terminal has, 0 where it does not say; false
// where the descriptor is no terminal.
func Columns(fd int) (columns int, is bool) {
	size, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ)
	if err != nil {
		return 0, false
	}
	return int(size.Col), true
}
