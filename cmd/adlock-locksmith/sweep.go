package main

import (
	"errors"
	"net"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/atom"
	"adlock/lib/lockdir/lockfile"
	"adlock/lib/sysfile"
)

// sweepAfter is how old a holder's file must be to be removed: a new holder may not listen yet.
const sweepAfter = time.Minute

// sweep removes what killed holders have left in the directory, if it is older than sweepAfter: sockets without a
// listener, and files whose token no listening holder has. The working directory of this process must be that
// directory. Files that cannot be removed are left to the next sweep.
func sweep(d *lockfile.Dir) {
	files, _ := d.Files(atom.HolderSocket, atom.HolderWord)
	listening := ""
	for _, f := range files {
		if f.Kind != atom.HolderSocket {
			continue
		}
		if listens(f.String()) {
			listening += " " + f.Token
		} else {
			removeOld(d, f.String())
		}
	}
	for _, f := range files {
		if f.Kind == atom.HolderWord && !strings.Contains(listening, tokenIn(d.Path(f.String()))) {
			removeOld(d, f.String())
		}
	}
}

func tokenIn(file string) string {
	text, _ := os.ReadFile(file)
	_, rest, _ := strings.Cut(string(text), "token=")
	token, _, _ := strings.Cut(rest, "\n")
	return " " + token
}

// listens reports whether a process may listen at a socket. A holder ignores a connection without a message.
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
