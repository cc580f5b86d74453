package sysfile

import "golang.org/x/sys/unix"

// Unlinkat removes the name of a file from the open directory dir; it retries after EINTR.
func Unlinkat(dir int, name string) error {
	return Retry(func() error { return unix.Unlinkat(dir, name, 0) })
}

// Renameat renames a file within the open directory dir, and replaces a file that has the new
// name; it retries after EINTR. If both names belong to one file, both stay (rename(2)).
func Renameat(dir int, from, to string) error {
	return Retry(func() error { return unix.Renameat(dir, from, dir, to) })
}
