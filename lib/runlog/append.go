package runlog

import (
	"cmp"
	"errors"
	"io/fs"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/fault"
	"adlock/lib/sysfile"
	"adlock/lib/way"
)

// DefaultMax is the size in bytes above which a runlog is rotated.
const DefaultMax = 10 << 20

// Log is the runlog of one host. Any number of goroutines and processes may use it at once.
type Log struct {
	// Dir is the file's directory. Only root or this user may own it, and no other user may write to or redirect it.
	Dir string
	// Apart allows the path of Dir to lead through a directory of root's to which a group may write.
	Apart bool
	// Host is HOST in the file's name, already canonical.
	Host string
	// Locks is the lock directory of the runlog's atoms, if the verbs would not find it by themselves.
	Locks string
	// Store is the store of those events that do not name one.
	Store string
	// Max is the size in bytes at which the file is rotated; 0 is DefaultMax. The file exceeds Max only if one line is
	// longer, several writers add lines at once, or the file cannot be locked or renamed. Adlock keeps two such files.
	Max int64

	// Seen holds events, the oldest first, that Newest yields; nil: Newest reads the files.
	Seen []Event

	reported atomic.Bool // FirstTrouble was called
	safe     atomic.Bool // no other user can redirect the path of Dir

	// Tests set these. rotate calls rotating before it renames; appendTo calls writing before it writes; patience 0: the constant's.
	rotating, writing func()
	patience          time.Duration
}

// Append writes e as one line with one write(2). It opens the file for that and closes it again, so that no
// job inherits the descriptor. It creates the file with mode 0600. It refuses a symbolic link, a file with a
// second name, and a file that belongs to neither root nor the effective user.
//
// After an error the line may be missing or torn; the next Append that succeeds marks a torn line. An error of the
// rotation is returned after the line was written. Append waits at most twice patience, unless the file is rotated.
func (l *Log) Append(e Event) error {
	if err := checkHost(l.Host); err != nil {
		return err
	}
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	if e.Store = cmp.Or(e.Store, l.Store); e.Store != "" && e.Node == "" {
		e.Node, _ = sysfile.NodeName() // the line is valid without it
	}
	line := appendLine(make([]byte, 0, 512), &e, l.Host)
	if len(line) > maxLine {
		return failed("append to", l.Path(), fault.Worded("line of "+strconv.Itoa(len(line))+" bytes: "+unix.EFBIG.Error(), unix.EFBIG))
	}
	d, err := l.open()
	if err != nil {
		return err
	}
	defer d.close()
	rotating := l.rotate(d, int64(len(line)))
	if err := l.append(d, line); err != nil {
		return err // an error of the rotation has the same cause, or will be reported by a later call
	}
	return rotating
}

// Checked tells Append that the caller has just checked the path of Dir; with Apart it has no effect.
func (l *Log) Checked() { l.safe.Store(!l.Apart) }

// open opens the directory, and checks its path the first time.
func (l *Log) open() (folder, error) {
	check := way.Check
	if l.Apart {
		check = way.CheckOwners
	}
	if !l.safe.Load() {
		if err := check(l.Dir, "runlog", nil); err != nil {
			return folder{}, err
		}
		l.safe.Store(true)
	}
	return openFolder(l.Dir)
}

// FirstTrouble returns true at its first call only, so that trouble is reported once.
func (l *Log) FirstTrouble() bool { return l.reported.CompareAndSwap(false, true) }

// Check returns an error if Append could not write now, as far as that shows without a write.
func (l *Log) Check() error {
	if err := checkHost(l.Host); err != nil {
		return err
	}
	d, err := l.open()
	if err != nil {
		return err
	}
	defer d.close()
	f, err := d.open(l.name(), 0)
	if errors.Is(err, fs.ErrNotExist) {
		return failed("write to", d.path, unix.Faccessat(d.fd, ".", unix.W_OK|unix.X_OK, unix.AT_EACCESS))
	}
	if err != nil {
		return err
	}
	return cmp.Or(f.refuseNames(&f.st), f.close())
}

func (l *Log) Path() string { return l.Dir + "/" + l.name() }

func (l *Log) name() string { return fileName(l.Host) }

// attempts bounds how often a file is opened again because it was rotated. Two rotations in a row are rare,
// as Max bytes are written between them.
const attempts = 100

func (l *Log) append(d folder, line []byte) error {
	for range attempts {
		f, err := d.openOrCreate(l.name())
		if err != nil {
			return err
		}
		written, err := l.appendTo(d, f, line)
		if err = cmp.Or(err, f.close()); err != nil || written {
			return err
		}
	}
	return failed("append to", l.Path(), errors.New("replaced again and again"))
}

// appendTo writes line to f, unless the name of f leads to another file by now (rotate.go). written is false if
// the line has to be written again.
func (l *Log) appendTo(d folder, f *file, line []byte) (written bool, err error) {
	locked := sysfile.Flock(f.fd, unix.LOCK_SH, cmp.Or(l.patience, patience)) == nil
	st, err := d.stat(l.name())
	if err != nil || !sysfile.SameFile(&f.st, st) {
		return false, sysfile.IgnoreMissing(err)
	}
	if err := f.refuseNames(st); err != nil {
		return false, err
	}
	if l.writing != nil {
		l.writing()
	}
	if err := f.write(line, st.Size); err != nil {
		return false, err
	}
	return locked || d.names(l.name(), f) || d.names(oldName(l.Host), f), nil
}

func (f *file) refuseNames(st *unix.Stat_t) error {
	if st.Nlink > 1 {
		return refuse("open", f.path, "has another name too")
	}
	return nil
}

// torn marks the end of an incomplete line. A key without a value is no field, so readers find the damage.
const torn = " torn\n"

// write adds line to the file, after the mark torn if the file does not end with a newline. (Another writer's
// line that is only partly in the file looks the same; the mark then stands on a line of its own.)
func (f *file) write(line []byte, size int64) error {
	whole, err := f.endsLine(size)
	if err != nil {
		return err
	}
	if !whole {
		line = append([]byte(torn), line...)
	}
	n, err := sysfile.Write(f.fd, line)
	if n > 0 && n < len(line) {
		if _, err = sysfile.Write(f.fd, []byte(torn)); err == nil {
			err = unix.ENOSPC
		}
	}
	return failed("write", f.path, err)
}

func (f *file) endsLine(size int64) (bool, error) {
	if size == 0 {
		return true, nil
	}
	last := make([]byte, 1)
	_, err := sysfile.Pread(f.fd, last, size-1)
	return last[0] == '\n', failed("read", f.path, err)
}
