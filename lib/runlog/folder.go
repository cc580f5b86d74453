package runlog

import (
	"errors"
	"io/fs"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"adlock/lib/fault"
	"adlock/lib/sysfile"
)

const (
	prefix  = "program."
	suffix  = ".runlog"
	rotated = ".1"
)

func fileName(host string) string { return prefix + host + suffix }

func oldName(host string) string { return fileName(host) + rotated }

func checkHost(host string) error {
	if !isHost(host) {
		return errors.New("runlog: host " + strconv.Quote(host) + " is not canonical")
	}
	return nil
}

func isHost(host string) bool {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
	return host != "" && strings.Trim(host, letters) == ""
}

// folder is an open directory that only root and this user can change, so no other user can put a file into it.
type folder struct {
	path string
	fd   int
}

func openFolder(path string) (folder, error) {
	fd, st, err := sysfile.OpenDir(path)
	if err != nil {
		return folder{}, failed("open", path, err)
	}
	d := folder{path, fd}
	switch {
	case !sysfile.IsOurs(&st):
		err = refuse("open", path, "owned by user "+strconv.FormatUint(uint64(st.Uid), 10))
	case st.Mode&0o022 != 0:
		err = refuse("open", path, "writable by others (mode 0"+strconv.FormatUint(uint64(st.Mode&0o7777), 8)+")")
	}
	if err != nil {
		d.close()
	}
	return d, err
}

func (d folder) close() {
	unix.Close(d.fd) // read only: close(2) cannot lose data
}

// openOrCreate uses O_CREAT only for a missing file: fs.protected_regular forbids it on some existing ones.
func (d folder) openOrCreate(name string) (*file, error) {
	for range attempts {
		f, err := d.open(name, 0)
		if !errors.Is(err, fs.ErrNotExist) {
			return f, err
		}
		f, err = d.open(name, unix.O_CREAT|unix.O_EXCL)
		if !errors.Is(err, fs.ErrExist) { // else another process was faster
			return f, err
		}
	}
	return nil, failed("open", d.path+"/"+name, errors.New("kept changing; giving up"))
}

// open opens a file to append to. O_RDWR is for reading the last byte and for an exclusive flock(2) on NFS;
// O_NONBLOCK keeps a FIFO from blocking open.
func (d folder) open(name string, flags int) (*file, error) {
	path := d.path + "/" + name
	fd, err := sysfile.Openat(d.fd, name, flags|unix.O_RDWR|unix.O_APPEND|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, failed("open", path, err)
	}
	f := &file{path: path, fd: fd}
	if err := f.check(); err != nil {
		_ = f.close() // nothing was written
		return nil, err
	}
	return f, nil
}

func (d folder) stat(name string) (*unix.Stat_t, error) {
	var st unix.Stat_t
	err := sysfile.Lstatat(d.fd, name, &st)
	return &st, failed("stat", d.path+"/"+name, err)
}

// names reports whether name leads to f; false if that cannot be found out.
func (d folder) names(name string, f *file) bool {
	st, err := d.stat(name)
	return err == nil && sysfile.SameFile(&f.st, st)
}

type file struct {
	path string
	fd   int
	st   unix.Stat_t // when it was opened
}

// check refuses a file that is not regular or another user's, and lets its owner read and write it.
func (f *file) check() error {
	err := sysfile.Fstat(f.fd, &f.st)
	switch {
	case err != nil:
		return failed("stat", f.path, err)
	case f.st.Mode&unix.S_IFMT != unix.S_IFREG:
		return refuse("open", f.path, "not a regular file")
	case !sysfile.IsOurs(&f.st):
		return refuse("open", f.path, "owned by user "+strconv.FormatUint(uint64(f.st.Uid), 10))
	case f.st.Mode&0o600 != 0o600:
		return failed("chmod", f.path, sysfile.Fchmod(f.fd, 0o600))
	}
	return nil
}

// close closes the file. On NFS and under a quota a write may fail only here. EINTR is no error, and close(2)
// is not repeated: Linux has closed the descriptor.
func (f *file) close() error {
	if err := unix.Close(f.fd); err != unix.EINTR {
		return failed("close", f.path, err)
	}
	return nil
}

func failed(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: path, Err: err}
}

func refuse(op, path, why string) error {
	return failed(op, path, fault.Worded(unix.EPERM.Error()+": "+why, unix.EPERM))
}
