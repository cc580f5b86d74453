package runlog

import (
	"cmp"
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/sysfile"
)

// How a runlog is rotated without losing a line.
//
// A writer opens the file, takes a shared flock(2) on it, and checks that the name still leads to
// that file; only then it writes, and unlocks by closing. A process that rotates opens the file
// again, takes an exclusive flock, checks that the name still leads to that file and that it is
// still too long, and renames it to .1 before unlocking. (It opens it again because a failed
// conversion of a shared lock loses the lock.) Then:
//
//   - A file that a writer has locked and found under the name keeps the name until the writer
//     is done: the rename needs the exclusive lock. So a line never goes into a file that has been
//     rotated once or twice.
//   - A writer that opened the file before the rename and locks it after finds another file
//     under the name, or none, and starts again.
//   - If two processes find the file too long, the second gets the lock after the first has
//     renamed, finds another file under the name, and leaves it. So the content of .1 stays for
//     a whole Max of newer lines.
//   - A process that dies anywhere leaves the name on one file or the other, or on none (the
//     next writer creates it), and the kernel releases its lock.
//
// A process that holds a lock and is stopped must not delay a job. So after patience a writer
// writes without the lock. It may then be delayed itself, between its check and its write, while
// the file is rotated once or twice. So it checks again afterwards: if its file is neither under
// the name nor .1, the line is gone with it and is written again. A rotation never happens without
// the lock.
//
// On a file system without flock, lines are written the same way, and there is no rotation: above
// Max every Append reports that.

// patience is how long to wait for a lock. A process holds one for a few system calls only,
// unless it is stopped.
const patience = 200 * time.Millisecond

// rotate renames the file to .1 if it would be too long with one more line of length bytes.
func (l *Log) rotate(d folder, length int64) error {
	most := cmp.Or(max(0, l.Max), DefaultMax)
	full := func(st *unix.Stat_t) bool { return st.Size > 0 && st.Size+length > most }
	st, err := d.stat(l.name())
	if err != nil || !full(st) {
		return sysfile.IgnoreMissing(err)
	}
	f, err := d.open(l.name(), 0)
	if err != nil {
		return sysfile.IgnoreMissing(err)
	}
	defer func() { _ = f.close() }() // nothing is written
	if err := sysfile.Flock(f.fd, unix.LOCK_EX, cmp.Or(l.patience, patience)); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) && st.Size <= 2*most {
			return nil // busy writers; the next line tries again
		}
		return failed("rotate", f.path, err)
	}
	if st, err = d.stat(l.name()); err != nil || !sysfile.SameFile(&f.st, st) || !full(st) {
		return sysfile.IgnoreMissing(err)
	}
	if l.rotating != nil {
		l.rotating()
	}
	return failed("rename", f.path, sysfile.Renameat(d.fd, l.name(), oldName(l.Host)))
}
