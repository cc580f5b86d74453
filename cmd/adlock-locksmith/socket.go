package main

import (
	"net"

	"golang.org/x/sys/unix"

	"adlock/lib/atom"
	"adlock/lib/lockdir/lockfile"
)

// dial connects to the holder of the acquisition. It changes the working directory to the lock directory: the
// path of a socket may have little more than 100 bytes (unix(7)).
func dial(dir, token string) (net.Conn, error) {
	d, err := lockfile.Open(dir) // Open has checked that only this user's holders can be there
	if err != nil {
		return nil, err
	}
	defer d.Close()
	if err := unix.Fchdir(d.Fd()); err != nil {
		return nil, err
	}
	return net.Dial("unix", atom.HolderSocketName(token))
}

// listen makes the holder's socket. It changes the working directory to the lock directory.
func listen(d *lockfile.Dir, token string) (net.Listener, error) {
	if err := unix.Fchdir(d.Fd()); err != nil {
		return nil, err
	}
	defer unix.Umask(unix.Umask(0o077)) // restored at once: hooks must get the script's umask
	return net.Listen("unix", atom.HolderSocketName(token))
}
