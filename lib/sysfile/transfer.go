package sysfile

import "golang.org/x/sys/unix"

// Read is read(2), again after a signal that came before the first byte. It may
// bring less than there is room for; 0 without an error is the end.
func Read(fd int, into []byte) (int, error) {
	return RetryN(func() (int, error) { return unix.Read(fd, into) })
}

// Pread is pread(2), as Read, from a place in the file.
func Pread(fd int, into []byte, at int64) (int, error) {
	return RetryN(func() (int, error) { return unix.Pread(fd, into, at) })
}

// Write is one write(2), again after a signal that came before the first byte.
// It may write less than all without an error (a full disk): the caller looks.
func Write(fd int, text []byte) (int, error) {
	return RetryN(func() (int, error) { return unix.Write(fd, text) })
}
