package sysfile

import "golang.org/x/sys/unix"

// Read is read(2), retried after EINTR (a signal before the first byte). It may return fewer bytes
// than there is room for; 0 without an error is the end of the file.
func Read(fd int, into []byte) (int, error) {
	return RetryN(func() (int, error) { return unix.Read(fd, into) })
}

// Pread is pread(2), retried like Read, from the offset at.
func Pread(fd int, into []byte, at int64) (int, error) {
	return RetryN(func() (int, error) { return unix.Pread(fd, into, at) })
}

// Write is one write(2), retried after EINTR (a signal before the first byte). It may write fewer
// bytes without an error, as on a full disk: the caller checks the count.
func Write(fd int, text []byte) (int, error) {
	return RetryN(func() (int, error) { return unix.Write(fd, text) })
}
