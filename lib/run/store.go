package run

import (
	"cmp"
	"os"
	"path/filepath"
	"syscall"

	"adlock/lib/config"
	"adlock/lib/fault"
	"adlock/lib/killer"
	"adlock/lib/lockdir"
	"adlock/lib/lockdir/lockfile"
	"adlock/lib/lockdir/unlocked"
	"adlock/lib/locker"
	"adlock/lib/policy"
	"adlock/lib/sysfile"
)

// verdict returns what taking the atom would do, and why, and where its lock is; it takes
// nothing.
func (r *runArgs) verdict() (granted bool, reason, where string, err error) {
	name := r.Request.Atom.Name()
	if !config.IsRemote(r.store) {
		path, err := config.DirOf(r.store)
		if err != nil {
			return false, "", "", err
		}
		granted, reason, err = lockdir.DryRun(path, &r.Request)
		if granted {
			err = fault.Wrap(path, sysfile.NoRoom(path))
		}
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

// overdue is this newcomer's warning about the atom's owner; "" if there is none. A store is not
// asked again.
func (r *runArgs) overdue() string {
	path, err := config.DirOf(r.store)
	if err != nil || config.IsRemote(r.store) {
		return ""
	}
	dir, err := lockfile.Open(path)
	if err != nil {
		return "" // there is no owner
	}
	defer dir.Close()
	name := r.Request.Atom.Name()
	log, err := config.RunlogOf(path, name.Host())
	entries, unread := (&lockdir.Locker{Dir: dir}).List()
	if err != nil || unread != nil {
		return ""
	}
	for i := range entries {
		e := &entries[i]
		if e.Name != name || e.Err != nil || e.Decide(r.Request.Terms()).Step != policy.Busy {
			continue
		}
		owner := e.Holder()
		if found := (locker.Recorder{Log: log}).Overdue(r.Request.Limits, owner, cmp.Or(r.Request.Notice, owner.Record.Notice)); found != nil {
			return found.Text() + "; " + found.Remedy(true)
		}
	}
	return ""
}

// linger keeps a lock that would go with this process while processes of the job live; it returns
// true when none does.
func linger(k locker.Locker, why error) bool {
	return k.Linger(why, func() bool {
		left, err := killer.Descendants(syscall.Getpgrp() == os.Getpid())
		return err != nil || len(left) > 0
	})
}
