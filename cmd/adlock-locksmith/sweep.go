package main

import (
	"errors"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/atom"
	"adlock/lib/lockdir/lockfile"
	"adlock/lib/sysfile"
)

// sweepAfter is the age from which a holder's file may be removed: a new holder may not be listening yet.
const sweepAfter = time.Minute

// sweep removes files that killed holders left in the directory at least sweepAfter ago: sockets without a listener,
// and files whose token no listening holder has. The working directory of this process must be that directory. If a
// file cannot be removed, the next sweep tries again.
func sweep(d *lockfile.Dir) {
	files, _ := d.Files(atom.HolderSocket, atom.HolderWord)
	var listening []string
	for _, f := range files {
		if f.Kind != atom.HolderSocket {
			continue
		}
		if listens(f.String()) {
			listening = append(listening, f.Token)
		} else {
			removeOld(d, f.String())
		}
	}
	for _, f := range files {
		text, _ := os.ReadFile(d.Path(f.String()))
		if f.Kind == atom.HolderWord && !slices.ContainsFunc(listening, func(token string) bool { return strings.Contains(string(text), token) }) {
			removeOld(d, f.String())
		}
	}
}

// listens reports whether a process may be listening at a socket. A holder ignores a connection without a message.
func listens(socket string) bool {
	line, err := net.Dial("unix", socket)
	if err == nil {
		line.Close()
	}
	return !errors.Is(err, unix.ECONNREFUSED)
}

func removeOld(d *lockfile.Dir, file string) {
	info, err := os.Lstat(d.Path(file))
	if err == nil && time.Since(info.ModTime()) > sweepAfter {
		_ = sysfile.Unlinkat(d.Fd(), file)
	}
}
