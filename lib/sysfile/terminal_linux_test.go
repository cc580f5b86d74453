package sysfile

import (
	"os"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"adlock/test/support/check"
	"adlock/test/support/must"
)

// terminal returns one end of a new terminal.
func terminal(t *testing.T) int {
	t.Helper()
	master := device(t, "/dev/ptmx")
	must.Do(t, unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0))
	number := must.Get(unix.IoctlGetInt(master, unix.TIOCGPTN))(t)
	return device(t, "/dev/pts/"+strconv.Itoa(number))
}

func device(t *testing.T, path string) int {
	t.Helper()
	fd := must.Get(Open(path, unix.O_RDWR|unix.O_NOCTTY))(t)
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

func TestIsTerminalIsTrueOnlyForATerminal(t *testing.T) {
	check.Equal(t, "a terminal is one", IsTerminal(terminal(t)), true)
	read, write, err := os.Pipe()
	must.Do(t, err)
	defer read.Close()
	defer write.Close()
	for name, fd := range map[string]int{"a pipe": int(write.Fd()), "a device": device(t, "/dev/null"), "nothing": -1} {
		check.Equal(t, name+" is a terminal", IsTerminal(fd), false)
	}
}

func TestATerminalReportsItsWidth(t *testing.T) {
	fd := terminal(t)
	if columns, is := Columns(fd); columns != 0 || !is {
		t.Errorf("one without a size: %d, %v", columns, is)
	}
	must.Do(t, unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 132}))
	if columns, is := Columns(fd); columns != 132 || !is {
		t.Errorf("%d columns, %v, want 132", columns, is)
	}
	if columns, is := Columns(device(t, "/dev/null")); columns != 0 || is {
		t.Errorf("of no terminal: %d, %v", columns, is)
	}
}
