package lockfile

import (
	"errors"
	"io/fs"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/record"
	"adlock/lib/sysfile"
)

// TempFile is a new file that appears under its name whole or not at all. Until then it has no name (O_TMPFILE). In
// Replace, and without O_TMPFILE (FUSE, BSD), it is named temp.TOKEN; Sweep removes what a crash leaves. It is
// guarded before it appears and until it is closed, after its creator's final check.
type TempFile struct {
	file
	temporary string // its temp.TOKEN name; "" if it has none
}

// TempFile makes a file of mode 0600, whatever the umask. The caller may put it in place, and must Discard it.
func (d *Dir) TempFile(content []byte) (*TempFile, error) {
	return d.tempFile(func(uint64) []byte { return content })
}

// TempLock is TempFile for a lock. It writes the file's own inode and this node's name into the record.
func (d *Dir) TempLock(own record.Record) (*TempFile, error) {
	own.Node, _ = sysfile.NodeName() // without it, another boot proves no death on a network file system
	return d.tempFile(func(inode uint64) []byte {
		own.File = inode
		return own.Bytes()
	})
}

func (d *Dir) tempFile(content func(inode uint64) []byte) (*TempFile, error) {
	temp, err := d.nameless()
	if err == nil && temp == nil {
		temp, err = d.temporary()
	}
	if err != nil {
		return nil, err
	}
	if err := temp.fill(content); err != nil {
		temp.Discard()
		return nil, err
	}
	return temp, nil
}

func (t *TempFile) fill(content func(inode uint64) []byte) error {
	if err := sysfile.Fchmod(t.fd, 0o600); err != nil {
		return t.wrap(err)
	}
	if err := t.stat(); err != nil {
		return err
	}
	if err := t.write(content(t.st.Ino)); err != nil {
		return err
	}
	_, err := t.flock(0)
	return err
}

func (d *Dir) temporary() (*TempFile, error) {
	name := atom.TemporaryName(record.NewToken())
	fd, err := sysfile.Openat(d.fd, name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, cannotCreate(d.Path(name), err)
	}
	return &TempFile{file: file{dir: d, name: name, fd: fd}, temporary: name}, nil
}

// Link puts the file in place under a free name; fs.ErrExist if the name is taken.
func (t *TempFile) Link(name string) error {
	var err error
	if t.temporary == "" {
		err = t.linkNameless(name)
	} else {
		err = sysfile.Retry(func() error { return unix.Linkat(t.dir.fd, t.temporary, t.dir.fd, name, 0) })
		if errors.Is(err, unix.EEXIST) && t.isAt(name) {
			err = nil
		}
		if err == nil {
			t.dropTemporary()
		}
	}
	if err != nil {
		return cannotLink(t.dir.Path(name), err)
	}
	t.name = name
	return nil
}

// isAt reports whether the file has the name: over NFS a call whose reply was lost is repeated, and fails though it is done.
func (t *TempFile) isAt(name string) bool {
	placed := file{dir: t.dir, name: name, st: t.st}
	is, err := placed.named()
	return is && err == nil
}

// cannotLink returns the error for a failed link(2). Linux gives EPERM for FAT, FUSE and
// fs.protected_hardlinks; network and older systems give the others.
func cannotLink(path string, err error) error {
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return &fault.Error{Kind: fault.CannotCreate, Object: path, Err: fault.Worded(err.Error()+" (hard links are refused here: "+
			"the file system has none, or fs.protected_hardlinks forbids them; name another directory by ADLOCK_DIR)", err)}
	}
	return cannotCreate(path, err)
}

// Replace renames the file to name, over the file of that name, so that the name always has a file.
func (t *TempFile) Replace(name string) error {
	if t.temporary == "" {
		temporary := atom.TemporaryName(record.NewToken())
		if err := t.linkNameless(temporary); err != nil {
			return cannotCreate(t.dir.Path(temporary), err)
		}
		t.temporary = temporary
	}
	if err := sysfile.Renameat(t.dir.fd, t.temporary, name); err != nil && !t.isAt(name) {
		return fault.Wrap(t.dir.Path(name), err)
	}
	t.temporary, t.name = "", name
	return nil
}

// Touch sets the file's mtime to the current time of the file system, and returns it.
func (t *TempFile) Touch() (time.Time, error) {
	err := t.touch()
	return t.Modified(), err
}

// Withdraw removes the file after Link or Replace, if the name still leads to it. It stamps nothing.
func (t *TempFile) Withdraw() error {
	mine, err := t.named()
	if err != nil || !mine {
		return err
	}
	return t.wrap(sysfile.Unlinkat(t.dir.fd, t.name))
}

// Discard closes the file, and removes it unless it was put in place.
func (t *TempFile) Discard() {
	t.dropTemporary()
	t.Close()
}

func (t *TempFile) dropTemporary() {
	if t.temporary != "" {
		unix.Unlinkat(t.dir.fd, t.temporary, 0) // if it fails, Sweep removes the file later
		t.temporary = ""
	}
}

// sweepAge is the least age at which Sweep removes a temp.* file with one name: by then a living creator guards it.
const sweepAge = time.Minute

// Sweep removes the temp.* files of crashed creators: those that are not guarded, and have a second name or are
// older than a minute at now, the file system's time. (A new last lock gets an old mtime: age alone proves nothing.)
func (d *Dir) Sweep(now time.Time) error {
	files, err := d.Files(atom.TemporaryFile)
	if err != nil {
		return err
	}
	var failed error
	for _, f := range files {
		failed = errors.Join(failed, d.sweepOne(f.String(), now))
	}
	return failed
}

func (d *Dir) sweepOne(name string, now time.Time) error {
	f, err := d.openFile(name, unix.O_RDWR)
	if errors.Is(err, fs.ErrNotExist) || fault.KindOf(err) == fault.NotPermitted {
		return nil // the file was just put in place, or is not adlock's
	}
	if err != nil {
		return err
	}
	defer f.Close()
	// If the file is also a last lock, stamps renew its mtime: only the guard shows if its creator lives.
	if f.st.Nlink < 2 && now.Sub(f.Modified()) < sweepAge {
		return nil
	}
	if free, err := f.flock(0); err != nil || !free {
		return err
	}
	return d.remove(name)
}

// Named reports whether the file has its temp.TOKEN name now, so that a crash would leave it.
func (t *TempFile) Named() bool { return t.temporary != "" }

// setModified sets the mtime. The zero time becomes the epoch, which in a last lock means 'never completed'.
func (t *TempFile) setModified(at time.Time) error {
	if at.IsZero() {
		at = time.Unix(0, 0)
	}
	return t.wrap(sysfile.Retry(func() error { return setModified(t.fd, at) }))
}
