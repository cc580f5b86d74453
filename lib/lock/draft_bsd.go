//go:build darwin || freebsd || netbsd || openbsd

package lock

import "golang.org/x/sys/unix"

// nameless returns nil: these systems have no files without a name.
func (d *Dir) nameless() (*Draft, error) { return nil, nil }

func (dr *Draft) linkNameless(string) error { return unix.EOPNOTSUPP }
