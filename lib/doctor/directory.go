package doctor

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/limit"
	"adlock/lib/lockdir/lockfile"
	"adlock/lib/policy"
	"adlock/lib/record"
	"adlock/lib/runlog"
)

const lockDirectory = "lock directory"

func (m *Machine) directory(now time.Time) []Finding {
	dir, there, err := lockfile.OpenToTry(m.Dir)
	if err != nil {
		return []Finding{fail(lockDirectory, err.Error(), "")} // these errors contain the cure
	}
	defer dir.Close()
	found := fine(lockDirectory, m.Dir)
	if !there {
		found.Text += " (the first lock makes it)"
	}
	if why := m.fleeting(); why != "" {
		found = warn(lockDirectory, found.Text+": "+why, "let ADLOCK_DIR name a directory elsewhere")
	}
	all := append([]Finding{found}, freeSpace(dir.Path(""), m.logSize(m.Dir), "ADLOCK_DIR")...)
	if m.HomeDir != "" {
		all = append(all, warn("home", "HOME is not that of passwd(5), with which the lock directory is "+m.HomeDir+": a job under cron does not see these locks",
			"set HOME, or ADLOCK_DIR, to the same everywhere"))
	}
	all = append(all, fileSystem(dir, now)...)
	if there {
		all = append(append(append(all, host(m.Dir)...), locks(dir)...), lastLocks(dir, now)...)
	}
	return all
}

func host(dir string) []Finding {
	const what = "host"
	if _, err := lockfile.Host(dir, false); err != nil {
		return []Finding{fail(what, err.Error(), "")} // the error contains the cure
	}
	if host, node := lockfile.Renamed(dir); host != node {
		return []Finding{fine(what, host+", as this machine's node name was when it first locked here (now it is "+node+")")}
	}
	return nil
}

func (m *Machine) fleeting() string {
	real, err := filepath.EvalSymlinks(m.Dir)
	if err != nil {
		real = m.Dir
	}
	return cmp.Or(m.Fleeting(m.Dir), m.Fleeting(real))
}

// locks reports locks that are damaged or cannot be read, whose jobs are not run. It also reports locks of other
// machines, and the first lock from another boot of a machine with this id, which may be a clone.
func locks(dir *lockfile.Dir) (all []Finding) {
	files, err := dir.Files(atom.ActiveLock, atom.ReaderLock)
	if err != nil {
		return []Finding{fail("locks", err.Error(), "see what the file system says (dmesg)")}
	}
	var damaged, foreign []string
	cloned := false
	for _, f := range files {
		lock, err := dir.Lock(f)
		switch {
		case errors.Is(err, fs.ErrNotExist): // released after Files had listed it
			continue
		case err != nil:
			all = append(all, warn("locks", err.Error(), "its job is not run until this is mended"))
			continue
		case lock.Content == record.Damaged:
			damaged = append(damaged, f.String())
		case lock.OtherMachine():
			foreign = append(foreign, f.String())
		case lock.OtherBoot() && !cloned:
			cloned = true
			all = append(all, warn("machine id", f.String()+" is of another boot of a machine with this id, named "+lock.Node()+
				": this machine before it was booted, or a clone of it", "give each machine an id of its own (machine-id(5)); if no such job runs: adlock clear "+string(f.Name)))
		}
		_ = lock.Close() // it was only read
	}
	if len(foreign) > 0 {
		all = append(all, warn("machine id", named(foreign)+": of a machine with another id, so whether their owners live cannot be seen here",
			"if no machine shares this directory, as after a backup was restored: adlock clear FILE"))
	}
	if len(damaged) > 0 {
		all = append(all, warn("locks", named(damaged)+": damaged, and their jobs are not run", "if none of them runs: adlock clear FILE"))
	}
	return all
}

func named(names []string) string { return fault.Listed(slices.Sorted(slices.Values(names)), 5) }

// fileSystem tries dir with a temporary file. If this process dies, a later run removes the file from a lock directory.
// If the lock directory does not exist, dir is a directory above it, and the file stays.
func fileSystem(dir *lockfile.Dir, now time.Time) []Finding {
	temp, err := dir.TempFile(nil)
	if err != nil {
		return []Finding{fail("files", err.Error(), "mend this, or name another directory by ADLOCK_DIR")}
	}
	how := fine("files", "made without a name and linked into place (O_TMPFILE, linkat)")
	if temp.Named() {
		how = fine("files", "made as temp.* and linked into place (no O_TMPFILE here: a crash may leave one, which a later run removes)")
	}
	name := atom.TemporaryName(record.NewToken())
	if err := temp.Link(name); err != nil {
		temp.Discard()
		return []Finding{fail("files", err.Error(), "mend this, or name another directory by ADLOCK_DIR")}
	}
	unlock := sync.OnceValue(temp.Close)
	defer unlock()
	path := dir.Path(name)
	all := append([]Finding{how, exclusion(path, unlock)}, clock(path, now)...)
	if err := temp.Withdraw(); err != nil {
		all[0] = fail("files", err.Error(), "mend this, or name another directory by ADLOCK_DIR")
	}
	return all
}

func exclusion(path string, unlock func() error) Finding {
	const what, cure = "flock", "name a directory on another file system by ADLOCK_DIR"
	switch free, err := askOther(path); {
	case err != nil:
		return fail(what, err.Error(), cure)
	case free:
		return fail(what, "two processes hold one lock on "+path, cure)
	}
	err := unlock()
	free, asked := askOther(path)
	switch err := errors.Join(err, asked); {
	case err != nil:
		return fail(what, err.Error(), cure)
	case !free:
		return fail(what, "a lock on "+path+" is held by no process, and cannot be taken", cure)
	}
	return fine(what, "excludes, as tried between two processes")
}

// clock finds the resolution of file times, and compares the file system's clock with this machine's.
func clock(path string, now time.Time) []Finding {
	info, err := os.Stat(path)
	if err != nil {
		return []Finding{fail("times", err.Error(), "see what the file system says (dmesg)")}
	}
	off := info.ModTime().Sub(now)
	kept, err := resolution(path)
	if err != nil {
		return []Finding{fail("times", err.Error(), "see what the file system says (dmesg)")}
	}
	times := fine("times", "files keep them to "+kept.String())
	if kept >= time.Second {
		times = warn("times", "files keep whole seconds only", "an interval lasts up to a second longer")
	}
	if off.Abs() > policy.FutureSlack+kept {
		return []Finding{times, warn("clock", "the file system's clock is "+ahead(off)+" this machine's", "set both by NTP: until then adlock status and --dry-run may be wrong by as much")}
	}
	return []Finding{times}
}

func ahead(off time.Duration) string {
	if off < 0 {
		return limit.FormatAge(-off) + " behind"
	}
	return limit.FormatAge(off) + " ahead of"
}

// resolution returns the unit of a file's mtime. It sets a time with a 1 in every digit, and reads that back.
func resolution(path string) (time.Duration, error) {
	const odd = 111111111
	if err := os.Chtimes(path, time.Unix(1e9+1, odd), time.Unix(1e9+1, odd)); err != nil {
		return 0, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return unitOf(info.ModTime()), nil
}

func unitOf(at time.Time) time.Duration {
	for unit := time.Nanosecond; unit < time.Second; unit *= 10 {
		if at.Nanosecond()%int(10*unit) != 0 {
			return unit
		}
	}
	if at.Unix()%2 == 0 {
		return 2 * time.Second
	}
	return time.Second
}

// lastLocks compares the clock with the completion times, and reports long pauses and bad last locks.
func lastLocks(dir *lockfile.Dir, now time.Time) []Finding {
	files, err := dir.Files(atom.LastLock)
	if err != nil {
		return []Finding{fail("last locks", err.Error(), "see what the file system says (dmesg)")}
	}
	var newest, later time.Time
	var name atom.Name
	var all []Finding
	var damaged []string
	count := 0
	for _, f := range files {
		last, err := dir.Last(f.Name)
		if err == nil {
			all = append(all, longPause(string(f.Name), last.Memory.Pause.Policy(), "adlock resume "+string(f.Name))...)
		}
		switch {
		case errors.Is(err, fs.ErrNotExist): // pruned after Files had listed it
		case err != nil:
			all = append(all, warn("last locks", err.Error(), "its job is not run until this is mended"))
		case last.Damaged:
			damaged = append(damaged, f.String())
		case last.Completed.After(now.Add(policy.FutureSlack)):
			count++
			if last.Completed.After(later) {
				name, later = f.Name, last.Completed
			}
		case last.Completed.After(newest):
			newest = last.Completed
		}
	}
	if len(damaged) > 0 {
		all = append(all, warn("last locks", named(damaged)+": damaged, and count as never completed", "the next run of each mends it"))
	}
	switch {
	case count > 0:
		return append(all, warn("clock", strconv.Itoa(count)+" of "+strconv.Itoa(len(files))+" last locks lie in the future, "+
			string(name)+" by "+limit.FormatAge(later.Sub(now)), "set this machine's clock if it is behind; if not, these count as due, and their next run mends them"))
	case newest.IsZero():
		return append(all, fine("clock", "no atom has completed yet that it could be compared with"))
	}
	return append(all, fine("clock", "not before the newest last lock, of "+limit.FormatAge(now.Sub(newest))+" ago"))
}

// logSize returns how many bytes the runlog may take in dir, with its rotated file; 0 if the runlog is elsewhere.
func (m *Machine) logSize(dir string) int64 {
	if dir != m.LogDir {
		return 0
	}
	return 2 * cmp.Or(m.LogMax, runlog.DefaultMax)
}

func (m *Machine) runlog() []Finding {
	const what = "runlog"
	log := &runlog.Log{Dir: m.LogDir, Apart: m.LogDir != m.Dir, Host: m.Host}
	err := log.Check()
	switch {
	case err == nil && log.Apart:
		return append(freeSpace(m.LogDir, m.logSize(m.LogDir), "ADLOCK_LOGDIR"), fine(what, log.Path()))
	case err == nil:
		return []Finding{fine(what, log.Path())}
	case errors.Is(err, fs.ErrNotExist) && m.LogDir == m.Dir:
		return []Finding{fine(what, log.Path()+" (made with the lock directory)")}
	case errors.Is(err, fs.ErrNotExist):
		return []Finding{fail(what, m.LogDir+" does not exist, and adlock does not make it", "install -d -m 0700 '"+m.LogDir+"'")}
	}
	return []Finding{fail(what, fault.Wrap(m.LogDir, err).Error(), "directory and file must belong to root or to the user of the jobs, and no other user may write there")}
}
