package run

import (
	"cmp"
	"path/filepath"

	"adlock/lib/config"
	"adlock/lib/fault"
	"adlock/lib/lockdir"
	"adlock/lib/lockdir/lockfile"
	"adlock/lib/locker"
	"adlock/lib/policy"
	"adlock/lib/sysfile"
)

// verdict returns whether the atom would be granted now, the reason, and where its lock is. It
// takes nothing.
func (r *runArgs) verdict() (granted bool, reason, where string, err error) {
	name := r.Request.Atom.Name()
	if !config.IsRemote(r.store) {
		path, err := config.DirOf(r.store)
		if err != nil {
			return false, "", "", err
		}
		if err := r.openFile(); err != nil {
			return false, "", "", err
		}
		granted, reason, err = lockdir.DryRun(path, &r.Request)
		if granted {
			err = fault.Wrap(path, sysfile.NoRoom(path))
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

// overdue is a warning if the atom's owner is overdue for this newcomer; "" if it is not. For a
// store it is always "", because the store would have to be asked again.
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
		rec := locker.Recorder{Log: log}
		if found := rec.Overdue(r.Request.Limits, owner, cmp.Or(r.Request.Notice, owner.Record.Notice)); found != nil {
			return found.Text() + "; " + rec.Remedy(found, true)
		}
	}
	return ""
}
