package run

import (
	"os"
	"path/filepath"
	"syscall"

	"adlock/lib/config"
	"adlock/lib/killer"
	"adlock/lib/lockdir"
	"adlock/lib/lockdir/unlocked"
	"adlock/lib/locker"
)

// verdict says what taking the atom would do, and why, and where its lock is; it
// takes nothing.
func (r *runArgs) verdict() (granted bool, reason, where string, err error) {
	name := r.Request.Atom.Name()
	if !config.IsRemote(r.store) {
		path, err := config.DirOf(r.store)
		if err != nil {
			return false, "", "", err
		}
		granted, reason, err = lockdir.DryRun(path, &r.Request)
		if r.unlocked && locker.IsTrouble(locker.Outcome{}, err) {
			granted, reason, err = unlocked.DryRun(path, &r.Request, err)
		}
		return granted, reason, filepath.Join(path, name.ActiveLock()), err
	}
	k, err := r.open(r.store, r.Request.Atom.Host, nil)
	if err != nil {
		return false, "", "", err
	}
	granted, reason, err = k.DryRun(&r.Request)
	return granted, reason, string(name) + " in " + r.store, err
}

// linger keeps a lock that goes with this process while what is left of the job
// lives; it returns true once nothing does.
func linger(k locker.Locker, why error) bool {
	return k.Linger(why, func() bool {
		left, err := killer.Descendants(syscall.Getpgrp() == os.Getpid())
		return err != nil || len(left) > 0
	})
}
