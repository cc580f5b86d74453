package run

import (
	"cmp"

	"adlock/lib/config"
	"adlock/lib/fault"
	"adlock/lib/lockdir"
	"adlock/lib/lockdir/lockfile"
	"adlock/lib/policy"
	"adlock/lib/sysfile"
)

// verdict returns what a newcomer would do now, and where the lock is. It acquires nothing.
func (r *runArgs) verdict() (d policy.Decision, where string, err error) {
	name := r.Request.Atom.Name()
	if config.IsRemote(r.store) {
		k, err := r.open(r.store, r.Request.Atom.Host, nil)
		if err != nil {
			return d, "", err
		}
		d, err = k.DryRun(&r.Request)
		return d, string(name) + " in " + r.store, err
	}
	path, err := config.DirOf(r.store)
	if err = cmp.Or(err, r.openFile()); err != nil {
		return d, "", err
	}
	if d, err = lockdir.DryRun(path, &r.Request); err == nil && d.Step.Granted() {
		err = fault.Wrap(path, sysfile.NoRoom(path))
	}
	return d, path + "/" + name.ActiveLock(), err
}

// overdue returns a warning if the owner is overdue for this newcomer; "" for a store, which is to be asked only once.
func (r *runArgs) overdue() string {
	path, rec, err := r.recorder()
	if err != nil || config.IsRemote(r.store) {
		return ""
	}
	dir, err := lockfile.Open(path)
	if err != nil {
		return "" // there is no owner
	}
	defer dir.Close()
	name := r.Request.Atom.Name()
	entries, err := (&lockdir.Locker{Dir: dir}).List()
	if err != nil {
		return ""
	}
	for i := range entries {
		e := &entries[i]
		if e.Name != name || e.Err != nil || e.Decide(r.Request.Terms()).Step != policy.Busy {
			continue
		}
		owner := e.Holder()
		if found := rec.Overdue(r.Request.Limits, *owner, cmp.Or(r.Request.Notice, owner.Record.Notice)); found != nil {
			return found.Text() + "; " + rec.Remedy(found, true)
		}
	}
	return ""
}
