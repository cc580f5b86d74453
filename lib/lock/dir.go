// Package lock keeps the two inodes of an atom in the lock directory: the
// active lock (lock.NAME), which exists while the atom runs, and the last lock
// (last.NAME), whose mtime says when the atom last completed. It knows how they
// are put in place, guarded and removed; it decides nothing.
//
// Everything is reached from one descriptor of a directory that was checked
// once, so a path swapped later is never followed. The exclusion is as good as
// flock(2) and link(2) of the file system: one view of it only (an overlay and
// its upper directory are two).
package lock

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"adlock/lib/exit"
)

// File name prefixes within a lock directory.
const (
	ActivePrefix = "lock."
	LastPrefix   = "last."
	draftPrefix  = "temp."
)

// Dir is an open lock directory, seen to be safe: a real directory, owned by
// root or the effective user, writable by its owner only. It may be used by
// several goroutines.
type Dir struct {
	path    string
	fd      int
	uid     int  // its owner, and so the owner of every file in it
	entered bool // others may reach its files
}

// DefaultDir returns the lock directory of the design: $ADLOCK_DIR, else for
// root /var/lib/adlock, for others $HOME/.local/state/adlock. (XDG_STATE_HOME
// is not read: cron does not have it, and one job would get two directories.)
func DefaultDir() (string, error) {
	if dir := os.Getenv("ADLOCK_DIR"); dir != "" {
		return dir, nil
	}
	if os.Geteuid() == 0 {
		return "/var/lib/adlock", nil
	}
	home := os.Getenv("HOME")
	if !filepath.IsAbs(home) {
		return "", exit.New(exit.Unavailable, "ADLOCK_DIR", "is not set, and HOME is no absolute path")
	}
	return filepath.Join(home, ".local/state/adlock"), nil
}

// Create opens the lock directory at path, making it (mode 0700) and its
// parents where they are missing.
func Create(path string) (*Dir, error) {
	dir, err := Open(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return dir, err
	}
	if err := mkdirAll(path); err != nil {
		return nil, cannotCreate(path, err)
	}
	return Open(path)
}

// mkdirAll makes what is missing with mode 0700 at once, whatever the umask: who
// comes between could not enter it otherwise. (The umask is the whole process'; no
// job has been started yet, and files are made for their owner alone.)
func mkdirAll(path string) error {
	defer unix.Umask(unix.Umask(0o077))
	return os.MkdirAll(path, 0o700)
}

// Open opens the lock directory at path. It is an error (77) where another user
// could change what is in it, or which it is: links could be swapped under us,
// and a planted pid could turn root against a victim.
func Open(path string) (*Dir, error) {
	path = filepath.Clean(path)
	if err := checkWay(path); err != nil {
		return nil, err
	}
	fd, err := openat(unix.AT_FDCWD, path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, openFailed(path, err)
	}
	d := &Dir{path: path, fd: fd}
	if err := d.check(); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return d, nil
}

func (d *Dir) check() error {
	var st unix.Stat_t
	if err := retry(func() error { return unix.Fstat(d.fd, &st) }); err != nil {
		return exit.Wrap(d.path, err)
	}
	d.uid, d.entered = int(st.Uid), st.Mode&0o011 != 0
	switch {
	case st.Uid != 0 && d.uid != os.Geteuid():
		return exit.New(exit.NotPermitted, d.path, "lock directory belongs to another user")
	case st.Mode&0o022 != 0:
		return exit.New(exit.NotPermitted, d.path, "lock directory is writable by others")
	}
	return nil
}

func openFailed(path string, err error) error {
	switch {
	case errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR):
		var st unix.Stat_t
		if unix.Lstat(path, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK {
			return exit.New(exit.NotPermitted, path, "lock directory is a symbolic link")
		}
		return exit.New(exit.CannotCreate, path, "not a directory")
	case errors.Is(err, fs.ErrNotExist):
		return &exit.Error{Code: exit.CannotCreate, Object: path, Err: err}
	}
	return exit.Wrap(path, err)
}

// cannotCreate gives refusals their own status here: what may not be made is
// 73, what may not be touched is 77.
func cannotCreate(path string, err error) error {
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EROFS) {
		return &exit.Error{Code: exit.CannotCreate, Object: path, Err: err}
	}
	return exit.Wrap(path, err)
}

// Path returns the directory's path, or with a name that of a file in it.
func (d *Dir) Path(name ...string) string {
	return filepath.Join(append([]string{d.path}, name...)...)
}

// Close gives the directory's descriptor back.
func (d *Dir) Close() error { return unix.Close(d.fd) }

// Fd returns the directory's descriptor, for a watcher; it stays the Dir's.
func (d *Dir) Fd() int { return d.fd }

// Names returns the names of all files with the prefix, the prefix cut off.
func (d *Dir) Names(prefix string) ([]string, error) {
	fd, err := openat(d.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, exit.Wrap(d.path, err)
	}
	file := os.NewFile(uintptr(fd), d.path)
	defer file.Close()
	all, err := file.Readdirnames(-1)
	if err != nil {
		return nil, exit.Wrap(d.path, err)
	}
	var names []string
	for _, name := range all {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			names = append(names, rest)
		}
	}
	return names, nil
}

// openFile opens a file of the directory and refuses whatever is not a plain
// file of the directory's owner. It is looked at before it is opened, so that
// opening never blocks on a FIFO or wakes a device; nobody else can change the
// directory in between.
func (d *Dir) openFile(name string, flags int) (*file, error) {
	var st unix.Stat_t
	if err := retry(func() error { return unix.Fstatat(d.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) }); err != nil {
		return nil, d.wrap(name, err)
	}
	if err := d.checkFile(name, &st); err != nil {
		return nil, err
	}
	fd, err := openat(d.fd, name, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, d.wrap(name, err)
	}
	f := &file{dir: d, name: name, fd: fd}
	if err := f.stat(); err != nil {
		f.Close()
		return nil, err
	}
	if err := d.checkFile(name, &f.st); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (d *Dir) checkFile(name string, st *unix.Stat_t) error {
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return exit.New(exit.NotPermitted, d.Path(name), "not a regular file")
	case int(st.Uid) != d.uid && int(st.Uid) != os.Geteuid():
		return exit.New(exit.NotPermitted, d.Path(name), "belongs to another user")
	case st.Nlink > 2: // 2 while a draft is being put in place with link(2)
		return exit.New(exit.NotPermitted, d.Path(name), "has too many links")
	case d.entered && st.Mode&0o022 != 0: // another tool's: what it says may be anybody's word
		return exit.New(exit.NotPermitted, d.Path(name), "is writable by others")
	}
	return nil
}

// wrap names the file in an error; a missing file stays fs.ErrNotExist.
func (d *Dir) wrap(name string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return &fs.PathError{Op: "open", Path: d.Path(name), Err: err}
	}
	return exit.Wrap(d.Path(name), err)
}

func openat(dir int, name string, flags int, mode uint32) (fd int, err error) {
	err = retry(func() error {
		fd, err = unix.Openat(dir, name, flags|unix.O_CLOEXEC, mode)
		return err
	})
	return fd, err
}

// retry repeats a call that a signal interrupted.
func retry(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}
