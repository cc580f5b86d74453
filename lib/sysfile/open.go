package sysfile

import "golang.org/x/sys/unix"

// Openat is openat(2), retried after EINTR, for a descriptor that no child inherits.
func Openat(dir int, name string, flags int, mode uint32) (fd int, err error) {
	return RetryN(func() (int, error) { return unix.Openat(dir, name, flags|unix.O_CLOEXEC, mode) })
}

// Open is Openat from the working directory, for a file that exists.
func Open(path string, flags int) (fd int, err error) {
	return Openat(unix.AT_FDCWD, path, flags, 0)
}

// ReadStart reads into buf as much of a file as one read(2) gives. Unlike os.ReadFile it does not set up the
// runtime's poller, which costs a short-lived program a dozen system calls.
func ReadStart(path string, buf []byte) ([]byte, error) {
	fd, err := Open(path, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	n, err := Read(fd, buf)
	return buf[:max(n, 0)], err
}

// OpenDir opens a directory, but no link to one, and returns its status (fstat(2)).
func OpenDir(path string) (fd int, st unix.Stat_t, err error) {
	fd, err = Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW)
	if err != nil {
		return -1, st, err
	}
	if err = Fstat(fd, &st); err != nil {
		unix.Close(fd)
	}
	return fd, st, err
}
