package runlog

import (
	"errors"
	"io/fs"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/sysfile"
)

// How a runlog is turned over without losing a line.
//
// A writer opens the file, takes flock(2) shared on what it has opened, and
// looks whether the name still means that file; only then it writes, and lets
// go by closing. The process that turns over opens the file afresh, takes flock exclusive,
// looks whether the name still means that file and whether it is still too
// long, and renames it to .1 before letting go. (Afresh, because a failed
// conversion of a shared lock loses it.) Then:
//
//   - A file that a writer has locked and found under the name keeps the name
//     until the writer is done: the rename needs the exclusive lock. So a line
//     never goes into a file that has been turned over, let alone twice.
//   - A writer that opened the file before the rename and locks it after finds
//     another file under the name, or none, and begins again.
//   - Two that both find the file too long: the second has the lock when the
//     first has renamed, finds another file under the name, and leaves it be.
//     So what is in .1 has been there for a whole Max of newer lines.
//   - One that dies anywhere leaves the name on one file or the other, or on
//     none (the next writer creates it), and the kernel lets go of its lock.
//
// A process that holds a lock and is stopped must not stop a job. So after
// patience a writer writes without the lock. It may then be the one that is
// held up, between its look and its write, while the file is turned over once
// or twice. So it looks again afterwards: if its file is neither under the name
// nor .1, the line has gone with it and is written again. A turn-over never
// goes on without the lock.
//
// A file system without flock gets its lines the same way, and is turned over
// by no process: past Max every Append says so.

// patience is how long a lock is waited for. No process holds one for longer than
// a few system calls, unless it is stopped.
const patience = 200 * time.Millisecond

// turnOver renames the file to .1 if it would be too long with one more line of
// length bytes.
func (l *Log) turnOver(d folder, length int64) error {
	full := func(st *unix.Stat_t) bool { return st.Size > 0 && st.Size+length > l.max() }
	st, err := d.stat(l.name())
	if errors.Is(err, fs.ErrNotExist) || err == nil && !full(st) {
		return nil
	}
	if err != nil {
		return err
	}
	f, err := d.open(l.name())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.close() }() // nothing is written
	if err := sysfile.Flock(f.fd, unix.LOCK_EX, l.wait()); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) && st.Size <= 2*l.max() {
			return nil // busy writers; the next line tries again
		}
		return &fs.PathError{Op: "turn over", Path: f.path, Err: err}
	}
	if st, err = d.stat(l.name()); err != nil || !f.is(st) || !full(st) {
		return ignoreNotExist(err)
	}
	if l.turning != nil {
		l.turning()
	}
	return d.rename(l.name(), oldName(l.Host))
}

func ignoreNotExist(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
