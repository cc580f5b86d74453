package main

import (
	"errors"
	"net"

	"golang.org/x/sys/unix"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/lockdir/lockfile"
)

// dial connects to the holder of the acquisition; fault.Denied if it is certain that the holder is gone. dial changes
// the working directory to the lock directory: a socket's path may have little more than 100 bytes (unix(7)).
func dial(dir, token, lock string) (net.Conn, error) {
	d, err := lockfile.Open(dir) // Open has checked that only this user's holders can be there
	if err != nil {
		return nil, err
	}
	defer d.Close()
	if err := unix.Fchdir(d.Fd()); err != nil {
		return nil, fault.Wrap(dir, err)
	}
	line, err := net.Dial("unix", atom.HolderSocketName(token))
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ECONNREFUSED) {
		err = fault.New(fault.Denied, lock, "lost: its holder is gone")
	}
	return line, fault.Wrap(lock, err)
}

// listen makes the holder's socket. It changes the working directory to the lock directory.
func listen(d *lockfile.Dir, token string) (net.Listener, error) {
	if err := unix.Fchdir(d.Fd()); err != nil {
		return nil, err
	}
	defer unix.Umask(unix.Umask(0o077)) // restored at once: hooks must get the script's umask
	return net.Listen("unix", atom.HolderSocketName(token))
}
