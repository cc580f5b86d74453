package command

import (
	"os"
	"strings"
	"syscall"

	"adlock/lib/atom"
	"adlock/lib/exit"
	"adlock/lib/lock"
	"adlock/lib/process"
)

// IsRemote says whether a store is an address; else it is a lock directory, or
// empty for the usual one.
func IsRemote(store string) bool { return strings.Contains(store, "://") }

// directory is the lock directory: --store, or the usual one.
func (r *runArgs) directory() (string, error) {
	if r.store != "" {
		return r.store, nil
	}
	return lock.DefaultDir()
}

// foreteller is a Locker that says what it would do, and does nothing.
type foreteller interface {
	Foretell(*atom.Request) (granted bool, reason string, err error)
}

func (r *runArgs) foretell() (granted bool, reason string, err error) {
	if !IsRemote(r.store) {
		path, err := r.directory()
		if err != nil {
			return false, "", err
		}
		return atom.Foretell(path, &r.Request)
	}
	k, err := r.locker()
	if err != nil {
		return false, "", err
	}
	seer, can := k.(foreteller)
	if !can {
		return false, "", exit.New(exit.Usage, r.store, "cannot say what it would do")
	}
	return seer.Foretell(&r.Request)
}

// lingerer is a Locker whose lock goes with this process, not with the job.
type lingerer interface {
	Linger(why error, alive func() bool)
}

// linger keeps such a lock while what is left of the job lives; it returns true
// once nothing does.
func linger(k Locker, why error) bool {
	l, needed := k.(lingerer)
	if !needed {
		return false
	}
	l.Linger(why, func() bool {
		left, err := process.Descendants(syscall.Getpgrp() == os.Getpid())
		return err != nil || len(left) > 0
	})
	return true
}
