package store

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"adlock/lib/exit"
)

// StartOrphan starts this program with the arguments, its name first, as nobody's
// child and in a session of its own. The descriptor becomes its number 3; 0, 1
// and 2 lead nowhere.
func StartOrphan(args []string, fd int) error {
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(null)
	self, err := os.Executable()
	if err != nil {
		return err
	}
	pid, err := syscall.ForkExec(self, append([]string{orphanStarts}, args...), &syscall.ProcAttr{
		Dir: "/", Env: os.Environ(), Files: []uintptr{uintptr(null), uintptr(null), uintptr(null), uintptr(fd)},
		Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return err
	}
	var status unix.WaitStatus
	for {
		_, err := unix.Wait4(pid, &status, 0, nil)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return err
		case status.ExitStatus() != exit.OK:
			return exit.New(exit.System, self, "cannot start itself")
		default:
			return nil
		}
	}
}

// orphan starts the program with args and returns the status to exit with.
func orphan(args []string) int {
	self, err := os.Executable()
	if err == nil {
		_, err = syscall.ForkExec(self, args, &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2, 3}})
	}
	return exit.Code(err)
}

// Socketpair returns two connected sockets that no child inherits.
func Socketpair() (ours, theirs int, err error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return 0, 0, err
	}
	unix.CloseOnExec(pair[0])
	unix.CloseOnExec(pair[1])
	return pair[0], pair[1], nil
}
