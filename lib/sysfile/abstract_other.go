//go:build !linux

package sysfile

import "golang.org/x/sys/unix"

// HasAbstract tells that this system has no abstract socket names.
const HasAbstract = false

// TakeAbstract is for Linux.
func TakeAbstract(string) (fd, holder int, err error) { return -1, 0, unix.EOPNOTSUPP }

// AbstractHolder is for Linux.
func AbstractHolder(string) (pid int, err error) { return 0, unix.EOPNOTSUPP }
