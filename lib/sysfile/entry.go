package sysfile

import "golang.org/x/sys/unix"

// Unlinkat is unlinkat(2) of a file, retried after EINTR.
func Unlinkat(dir int, name string) error {
	return Retry(func() error { return unix.Unlinkat(dir, name, 0) })
}

// Renameat is renameat(2) within a directory, retried after EINTR. If both names are of one file, both stay.
func Renameat(dir int, from, to string) error {
	return Retry(func() error { return unix.Renameat(dir, from, dir, to) })
}
