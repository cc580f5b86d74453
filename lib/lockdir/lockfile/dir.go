// Package lockfile keeps the files of a lock directory: it puts them in place, reads, guards and removes them,
// and lets newcomers queue and wait. Packages policy and lockdir decide whether an atom may be taken.
//
// Locks are reached from one descriptor of a directory that was checked once, so a path swapped later is not
// followed. The exclusion is as good as flock(2) and link(2) of the file system, through one mount of it (an
// overlay and its upper directory count as two).
package lockfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"adlock/lib/atom"
	"adlock/lib/config"
	"adlock/lib/fault"
	"adlock/lib/sysfile"
	"adlock/lib/way"
)

// Dir is an open lock directory, which only its user and root can write (but see OpenToTry). Goroutines may share it.
type Dir struct {
	path    string
	fd      int
	uid     int  // the user that owns the directory; only files of uid and me are accepted
	me      int  // the effective user; in another user's directory, that user (OfUser)
	entered bool // other users may enter the directory

	visited *Visit // nil: not another user's directory
}

// Visit limits the reading of another user's directory, because that user chooses how many files there are.
type Visit struct {
	UID   int         // that user
	Names []string    // the names that Files lists; the directory may have more
	Alive func() bool // called before each file; false: read no more files
}

// ErrNoMore is the error for a file that is not read because Visit.Alive returned false.
var ErrNoMore = errors.New("was not read")

// OfUser returns the lock directory of another user, for reading only. fd is the open directory; path is for
// messages. The calling thread already has that user's rights (adlock-report's otheruser.go).
func OfUser(fd int, path string, v *Visit) (*Dir, error) {
	d := &Dir{path: path, fd: fd, me: v.UID, visited: v}
	var st unix.Stat_t
	if err := sysfile.Fstat(fd, &st); err != nil {
		return nil, fault.Wrap(path, err)
	}
	if err := d.check(&st); err != nil {
		return nil, err
	}
	return d, nil
}

// Create opens the lock directory at path. It makes a missing one and its parents (0700), unless path is relative.
func Create(path string) (*Dir, error) {
	dir, err := Open(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return dir, err
	}
	if err := MayMake(path); err != nil {
		return nil, err
	}
	// No other user can enter the new directories. (The umask is that of all threads, but no job runs yet.)
	defer unix.Umask(unix.Umask(0o077))
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, cannotMake(path, err)
	}
	return Open(path)
}

// MayMake returns an error for a relative path: from another working directory it would name another lock directory.
func MayMake(path string) error {
	if filepath.IsAbs(path) {
		return nil
	}
	return fault.New(fault.CannotCreate, path, "no such directory, and a relative one is not made (give its full path)")
}

// Open opens the lock directory at path. It refuses (77) a directory that another user could change or swap:
// a planted pid could make root end a process of that user's choice.
func Open(path string) (*Dir, error) {
	path = config.Trim(path)
	if err := checkWay(path); err != nil {
		return nil, err
	}
	fd, st, err := sysfile.OpenDir(path)
	if err != nil {
		return nil, openFailed(path, err)
	}
	d := &Dir{path: path, fd: fd, me: os.Geteuid()}
	if err := d.check(&st); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return d, nil
}

func checkWay(path string) error {
	err := way.Check(path, "lock directory", func() string { return config.WayOut(path) })
	if known := new(fault.Error); err == nil || errors.As(err, &known) {
		return err
	}
	return openFailed(path, err)
}

func (d *Dir) check(st *unix.Stat_t) error {
	d.uid, d.entered = int(st.Uid), st.Mode&0o011 != 0
	switch {
	case d.me == 0 && d.uid != 0:
		return fault.New(fault.NotPermitted, d.path, "lock directory belongs to another user (run as that user: "+sysfile.AsUser(d.uid)+", or name one of your own: ADLOCK_DIR)")
	case st.Uid != 0 && d.uid != d.me:
		return fault.New(fault.NotPermitted, d.path, "lock directory belongs to another user (run as that user, or "+config.WayOut(d.path)+")")
	case st.Mode&0o022 != 0:
		return fault.New(fault.NotPermitted, d.path, "lock directory is writable by others ("+d.remedy(st)+")")
	}
	return nil
}

func openFailed(path string, err error) error {
	switch {
	case errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR):
		var st unix.Stat_t
		if unix.Lstat(path, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK {
			return fault.New(fault.NotPermitted, path, "lock directory is a symbolic link (name where it leads: ADLOCK_DIR)")
		}
		return fault.New(fault.CannotCreate, path, "not a directory")
	case errors.Is(err, fs.ErrNotExist):
		return &fault.Error{Kind: fault.CannotCreate, Object: path, Err: err}
	case errors.Is(err, fs.ErrPermission):
		var refused *fs.PathError
		if errors.As(err, &refused) {
			return &fault.Error{Kind: fault.NotPermitted, Object: refused.Path, Err: withWayOut(refused, path)}
		}
	}
	return fault.Wrap(path, err)
}

// remedy returns the advice for a directory that others may write. It is chmod, unless only root could do that, or
// the sticky bit (as on /tmp) shows that others are meant to write there.
func (d *Dir) remedy(st *unix.Stat_t) string {
	switch {
	case st.Mode&unix.S_ISVTX != 0:
		return "set ADLOCK_DIR to a directory that only you can write"
	case d.uid != d.me && d.me != 0:
		return config.WayOut(d.path)
	}
	return "chmod go-w " + fault.Quoted(d.path)
}

func cannotCreate(path string, err error) error {
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EROFS) {
		return &fault.Error{Kind: fault.CannotCreate, Object: path, Err: err}
	}
	return fault.Wrap(path, err)
}

func withWayOut(refused *fs.PathError, path string) error {
	return fault.Worded(refused.Op+": "+refused.Err.Error()+" ("+config.WayOut(path)+")", refused.Err)
}

func cannotMake(path string, err error) error {
	var refused *fs.PathError
	if fault.KindOf(cannotCreate(path, err)) != fault.CannotCreate || !errors.As(err, &refused) {
		return cannotCreate(path, err)
	}
	return cannotCreate(path, withWayOut(refused, path))
}

// Path returns the path of the file of that name in the directory or, if name is "", of the directory itself.
func (d *Dir) Path(name string) string {
	if name == "" {
		return d.path
	}
	return d.path + "/" + name
}

func (d *Dir) Close() error { return unix.Close(d.fd) }

// Fd returns the directory's descriptor; Close closes it.
func (d *Dir) Fd() int { return d.fd }

// Files lists the directory's files of these kinds, in no particular order.
func (d *Dir) Files(kinds ...atom.Kind) ([]atom.File, error) {
	all, err := d.names()
	if err != nil {
		return nil, fault.Wrap(d.path, err)
	}
	var files []atom.File
	for _, name := range all {
		if f := atom.ParseFile(name); slices.Contains(kinds, f.Kind) {
			files = append(files, f)
		}
	}
	return files, nil
}

func (d *Dir) names() ([]string, error) {
	if d.visited != nil {
		return d.visited.Names, nil
	}
	fd, err := sysfile.Openat(d.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), d.path)
	defer file.Close()
	return file.Readdirnames(-1)
}

// openFile opens a file of the directory, unless checkFile refuses it. checkFile judges what has the name before
// it is opened, as opening a FIFO could block and a device could wake up, and judges the open file again.
func (d *Dir) openFile(name string, flags int) (*file, error) {
	if d.visited != nil {
		if !d.visited.Alive() {
			return nil, &fs.PathError{Op: "open", Path: d.Path(name), Err: ErrNoMore}
		}
		flags = unix.O_RDONLY
	}
	var st unix.Stat_t
	if err := sysfile.Lstatat(d.fd, name, &st); err != nil {
		return nil, d.wrap(name, err)
	}
	if err := d.checkFile(name, &st); err != nil {
		return nil, err
	}
	fd, err := sysfile.Openat(d.fd, name, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
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
		return fault.New(fault.NotPermitted, d.Path(name), "not a regular file: adlock has not made it; move it away")
	case int(st.Uid) != d.uid && int(st.Uid) != d.me:
		return fault.New(fault.NotPermitted, d.Path(name), "belongs to another user")
	case st.Nlink > 2: // 2 while a temporary file is being put in place with link(2)
		return fault.New(fault.NotPermitted, d.Path(name), "has too many links")
	case d.entered && lax(st): // another tool's file, which other users may have written
		return d.refuseLax(name)
	}
	return nil
}

func lax(st *unix.Stat_t) bool { return st.Mode&0o022 != 0 }

// refuseLax refuses a file that others may write. It advises keeping only a last lock, which names no process.
func (d *Dir) refuseLax(name string) error {
	cure := "chmod go-w " + fault.Quoted(d.Path(name))
	if atom.ParseFile(name).Kind != atom.LastLock {
		cure = "another user may have written it: check that the job does not run, then rm " + fault.Quoted(d.Path(name))
	}
	return fault.New(fault.NotPermitted, d.Path(name), "is writable by others ("+cure+")")
}

func (d *Dir) remove(name string) error {
	return fault.Wrap(d.Path(name), sysfile.IgnoreMissing(sysfile.Unlinkat(d.fd, name)))
}

// wrap adds the file's path to err, which stays fs.ErrNotExist if the file is missing.
func (d *Dir) wrap(name string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return &fs.PathError{Op: "open", Path: d.Path(name), Err: err}
	}
	return fault.Wrap(d.Path(name), err)
}
