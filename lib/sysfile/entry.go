package sysfile

import "golang.org/x/sys/unix"

// Unlinkat removes the name of a file from the open directory dir, again after a
// signal.
func Unlinkat(dir int, name string) error {
	return Retry(func() error { return unix.Unlinkat(dir, name, 0) })
}

// Renameat renames a file of the open directory dir within it, and replaces a file of the new
// name; it retries after EINTR. Two names of one file stay two (rename(2)).
func Renameat(dir int, from, to string) error {
	return Retry(func() error { return unix.Renameat(dir, from, dir, to) })
}
