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
// A writer opens the file, takes a shared flock(2) on it, and checks that the name still leads to that
// file; only then does it write. A process that rotates opens the file again, as a failed conversion of
// a shared lock loses the lock. It takes an exclusive flock(2), checks that the name still leads to that file
// and that the file is still too long, and renames it to .1. Then:
//
//   - A file that a writer has locked and found under the name keeps the name until the writer is done. So
//     its line does not go into a file that has been rotated.
//   - A writer that locks the file after the rename finds another one under the name, or none, and
//     starts again.
//   - If two processes find the file too long, the second finds another file under the name, and
//     leaves that file alone. So the content of .1 stays for a whole Max of newer lines.
//
// A process that holds a lock and is stopped must not delay a job. So after patience a writer writes
// without the lock, and checks its file afterwards. If the file is neither under the name nor .1, the line is
// lost with the file, and is written again. A rotation never happens without the lock, so on a file system
// without flock there is none: above Max every Append reports that.

// patience is how long to wait for a lock: a process holds it only for a few system calls.
const patience = 200 * time.Millisecond

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
			return nil // writers are busy: the next Append tries again
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
