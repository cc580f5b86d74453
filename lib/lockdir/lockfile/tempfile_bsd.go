//go:build darwin || freebsd || netbsd || openbsd

package lockfile

import "golang.org/x/sys/unix"

// nameless returns nil: these systems have no files without a name.
func (d *Dir) nameless() (*TempFile, error) { return nil, nil }

func (t *TempFile) linkNameless(string) error { return unix.EOPNOTSUPP }
