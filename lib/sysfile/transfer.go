package sysfile

import "golang.org/x/sys/unix"

// Read is read(2), retried after EINTR.
func Read(fd int, into []byte) (int, error) {
	return RetryN(func() (int, error) { return unix.Read(fd, into) })
}

// Pread is pread(2) from the offset at, retried after EINTR.
func Pread(fd int, into []byte, at int64) (int, error) {
	return RetryN(func() (int, error) { return unix.Pread(fd, into, at) })
}

// Write is one write(2), retried after EINTR. It may write fewer bytes without an error, as on a full disk.
func Write(fd int, text []byte) (int, error) {
	return RetryN(func() (int, error) { return unix.Write(fd, text) })
}
