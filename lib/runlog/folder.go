package runlog

import (
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"

	"adlock/lib/sysfile"
)

const (
	prefix = "program."
	suffix = ".runlog"
	turned = ".1"
)

func fileName(host string) string { return prefix + host + suffix }

// oldName is the name of the rotated file.
func oldName(host string) string { return fileName(host) + turned }

func checkHost(host string) error {
	if !isHost(host) {
		return fmt.Errorf("runlog: host %q is not canonical", host)
	}
	return nil
}

// isHost reports whether host can be a canonical part of a name.
func isHost(host string) bool {
	for i := 0; i < len(host); i++ {
		c := host[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-') {
			return false
		}
	}
	return host != ""
}

// folder is an open directory that no other user can change, so a file in it is what its owner
// put there.
type folder struct {
	path string
	fd   int
}

func openFolder(path string) (folder, error) {
	fd, err := sysfile.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW)
	if err != nil {
		return folder{}, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	d := folder{path, fd}
	if err := d.check(); err != nil {
		d.close()
		return folder{}, err
	}
	return d, nil
}

func (d folder) check() error {
	var st unix.Stat_t
	if err := sysfile.Fstat(d.fd, &st); err != nil {
		return &fs.PathError{Op: "stat", Path: d.path, Err: err}
	}
	if !sysfile.IsOurs(&st) {
		return refuse("open", d.path, "owned by user %d", st.Uid)
	}
	if st.Mode&0o022 != 0 {
		return refuse("open", d.path, "writable by others (mode %04o)", st.Mode&0o7777)
	}
	return nil
}

func (d folder) close() {
	unix.Close(d.fd) // read only: close(2) cannot lose data
}

// openOrCreate opens the file name, and creates it if it is missing. (It does not use one
// open(2): O_CREAT fails on an existing file where the kernel's protected_regular forbids it.)
func (d folder) openOrCreate(name string) (*file, error) {
	for range attempts {
		f, err := d.open(name)
		if !errors.Is(err, fs.ErrNotExist) {
			return f, err
		}
		f, err = d.openWith(name, unix.O_CREAT|unix.O_EXCL)
		if errors.Is(err, fs.ErrExist) {
			continue // another process was faster
		}
		return f, err
	}
	return nil, &fs.PathError{Op: "open", Path: d.path + "/" + name, Err: errors.New("kept changing; giving up")}
}

// mayCreate reports whether a file can be created here.
func (d folder) mayCreate() error {
	if err := unix.Faccessat(d.fd, ".", unix.W_OK|unix.X_OK, unix.AT_EACCESS); err != nil {
		return &fs.PathError{Op: "write to", Path: d.path, Err: err}
	}
	return nil
}

func (d folder) open(name string) (*file, error) { return d.openWith(name, 0) }

// openWith opens a file for appending. It uses O_RDWR to read the last byte, and because NFS
// requires it for an exclusive flock; and O_NONBLOCK, so as not to wait at a FIFO.
func (d folder) openWith(name string, flags int) (*file, error) {
	path := d.path + "/" + name
	fd, err := sysfile.Openat(d.fd, name, flags|unix.O_RDWR|unix.O_APPEND|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	f := &file{path: path, fd: fd}
	if err := f.check(); err != nil {
		_ = f.close() // nothing was written
		return nil, err
	}
	return f, nil
}

// stat looks at the file that name leads to now.
func (d folder) stat(name string) (*unix.Stat_t, error) {
	var st unix.Stat_t
	if err := sysfile.Lstatat(d.fd, name, &st); err != nil {
		return nil, &fs.PathError{Op: "stat", Path: d.path + "/" + name, Err: err}
	}
	return &st, nil
}

// names reports whether name leads to f; false if that cannot be known.
func (d folder) names(name string, f *file) bool {
	st, err := d.stat(name)
	return err == nil && f.is(st)
}

func (d folder) rename(from, to string) error {
	if err := sysfile.Renameat(d.fd, from, to); err != nil {
		return &fs.PathError{Op: "rename", Path: d.path + "/" + from, Err: err}
	}
	return nil
}

// file is an open runlog.
type file struct {
	path     string
	fd       int
	dev, ino uint64
}

// check refuses a file that is not adlock's runlog, and makes sure that the owner may read and
// write a new one whatever the umask.
func (f *file) check() error {
	var st unix.Stat_t
	if err := sysfile.Fstat(f.fd, &st); err != nil {
		return &fs.PathError{Op: "stat", Path: f.path, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return refuse("open", f.path, "not a regular file")
	}
	if !sysfile.IsOurs(&st) {
		return refuse("open", f.path, "owned by user %d", st.Uid)
	}
	if st.Mode&0o600 != 0o600 {
		if err := sysfile.Fchmod(f.fd, 0o600); err != nil {
			return &fs.PathError{Op: "chmod", Path: f.path, Err: err}
		}
	}
	f.dev, f.ino = uint64(st.Dev), uint64(st.Ino)
	return nil
}

func (f *file) is(st *unix.Stat_t) bool {
	return f.dev == uint64(st.Dev) && f.ino == uint64(st.Ino)
}

// close closes the file; on NFS and under a quota a write may fail only there. (It does not
// repeat after EINTR: Linux has closed the descriptor, and its number may be another's.)
func (f *file) close() error {
	if err := unix.Close(f.fd); err != nil && err != unix.EINTR {
		return &fs.PathError{Op: "close", Path: f.path, Err: err}
	}
	return nil
}

// refuse is the error for a file that another user could have planted.
func refuse(op, path, format string, args ...any) error {
	return &fs.PathError{Op: op, Path: path, Err: fmt.Errorf("%w: "+format, append([]any{unix.EPERM}, args...)...)}
}
