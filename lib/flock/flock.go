// Package flock is a lock that other programs and other users know: flock(2) on a file that a person
// names, which a run holds beside its atom, as flock(1) holds it.
//
// The atom is taken first, then the file, so no run waits for an atom while it has the file. A run
// that finds the file held gives its atom up before it waits. While it waits it holds nothing. The
// kernel then gives it the file before it has the atom: it tries the atom once, and lets the file go
// if that is denied.
package flock

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/fault"
	"adlock/lib/process"
	"adlock/lib/sysfile"
)

// File is a file to lock. A nil File is no lock, and always free.
type File struct {
	Path string

	fd      int
	how     int // unix.LOCK_EX or unix.LOCK_SH
	held    bool
	granted chan error // gets the result of the flock(2) that blocks; nil: none does
}

// Open opens the file, or a directory. It needs no more than the right to read, so it may be another
// user's: for the same reason O_CREAT is used only where there is no file (with it the kernel refuses
// another user's file in a sticky directory: fs.protected_regular). A new file may be read by all that
// the umask lets. Without create no file is made, and one that is not there is nil.
func Open(path string, shared, create bool) (*File, error) {
	f := &File{Path: path, how: how(shared)}
	err := f.open(unix.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		if !create {
			return nil, fault.Wrap(path, unix.Access(filepath.Dir(path), unix.W_OK|unix.X_OK))
		}
		if err = f.open(unix.O_RDONLY | unix.O_CREAT | unix.O_EXCL); errors.Is(err, fs.ErrExist) {
			err = f.open(unix.O_RDONLY) // another run was faster
		}
	}
	if fault.KindOf(err) == fault.NotPermitted {
		return nil, fault.New(fault.NotPermitted, path, "permission denied: every user of it must be able to read it (chmod a+r), as a Makefile or a directory")
	}
	if err != nil {
		return nil, fault.Wrap(path, err)
	}
	return f, f.check()
}

// Inherited is the file that this process's parent has opened, and keeps open.
func Inherited(fd int, path string, shared bool) *File {
	return &File{Path: path, fd: fd, how: how(shared)}
}

func how(shared bool) int {
	if shared {
		return unix.LOCK_SH
	}
	return unix.LOCK_EX
}

func (f *File) open(flags int) (err error) {
	f.fd, err = sysfile.Openat(unix.AT_FDCWD, f.Path, flags|unix.O_NONBLOCK|unix.O_NOCTTY, 0o666)
	return err
}

// check refuses what is no file. An exclusive flock of a file on another machine needs the right to
// write it (flock(2), NFS).
func (f *File) check() error {
	var st unix.Stat_t
	if err := sysfile.Fstat(f.fd, &st); err != nil {
		return fault.Wrap(f.Path, err)
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
	case unix.S_IFREG:
		if f.how == unix.LOCK_EX && sysfile.IsNetwork(f.fd) {
			f.openToWrite()
		}
	default:
		return fault.New(fault.Usage, f.Path, "is no file and no directory: it cannot be locked")
	}
	return nil
}

// openToWrite opens the file for writing too. Where that is not permitted, flock(2) tells whether it
// was needed.
func (f *File) openToWrite() {
	reader := f.fd
	if f.open(unix.O_RDWR) != nil {
		f.fd = reader
		return
	}
	unix.Close(reader)
}

// Descriptor is that of the open file, for the job to inherit: the flock lasts as long as any process
// has it open. Below 0: there is no file.
func (f *File) Descriptor() int {
	if f == nil {
		return -1
	}
	return f.fd
}

// TryLock locks the file if no other process holds it.
func (f *File) TryLock() (free bool, err error) {
	if f == nil || f.held {
		return true, nil
	}
	if err = f.take(); err == unix.EWOULDBLOCK {
		err = sysfile.Flock(f.fd, f.how, 0)
	}
	f.held = err == nil
	if err == unix.EWOULDBLOCK {
		return false, nil
	}
	return f.held, f.explain(err)
}

// take is the result of the flock(2) that Await has left; EWOULDBLOCK if there is none.
func (f *File) take() error {
	select {
	case err := <-f.granted:
		f.granted = nil
		return err
	default:
		return unix.EWOULDBLOCK
	}
}

func (f *File) explain(err error) error {
	if errors.Is(err, unix.EBADF) || errors.Is(err, unix.EIO) {
		return fault.New(fault.System, f.Path, "cannot be locked alone: on this file system that needs the right to write it")
	}
	return fault.Wrap(f.Path, err)
}

// overEach is how often Await asks whether the wait is over.
const overEach = time.Second

// Await blocks until the file is locked, at most for the time most, or until over. It reports whether
// it is time to try the atom. The thread that blocks in flock(2) keeps its place in the kernel's queue: a
// signal would lose it. It stays there when Await returns false, until this process exits.
func (f *File) Await(most time.Duration, over func() bool) bool {
	if f.granted == nil {
		f.granted = make(chan error, 1)
		go func() { f.granted <- sysfile.Retry(func() error { return unix.Flock(f.fd, f.how) }) }()
	}
	end := time.Now().Add(most)
	for {
		select {
		case err := <-f.granted:
			f.granted <- err // for take
			return true
		case <-time.After(min(overEach, time.Until(end))):
			if over() || time.Until(end) <= 0 {
				return false
			}
		}
	}
}

// Free lets the file go, for all processes that have inherited it too.
func (f *File) Free() {
	if f != nil && (f.held || f.take() == nil) {
		f.held = false
		_ = sysfile.Unlock(f.fd) // fails only for a descriptor that is not open
	}
}

// IsTaken tells, without a flock, whether another process holds the file. It misses one in another
// pid namespace.
func (f *File) IsTaken() bool { return f != nil && f.table() != 0 }

func (f *File) table() int {
	var st unix.Stat_t
	if err := sysfile.Fstat(f.fd, &st); err != nil {
		return 0
	}
	return sysfile.FlockHolder(uint64(st.Dev), uint64(st.Ino), f.how == unix.LOCK_SH)
}

// Holder is a process that holds the file; PID 0: unknown. The pid that the kernel shows is of the
// process that called flock(2): it may be dead, and its number another's by now. So it counts only
// if that process has the file open.
func (f *File) Holder() process.Identity {
	pid := f.table()
	holder, err := process.Of(pid)
	if pid <= 0 || err != nil || !f.isOpenIn(pid) {
		return process.Identity{}
	}
	return holder
}

func (f *File) isOpenIn(pid int) bool {
	here, err := os.Stat("/proc/self/fd/" + strconv.Itoa(f.fd))
	dir := "/proc/" + strconv.Itoa(pid) + "/fd"
	open, failed := os.ReadDir(dir)
	if err != nil || failed != nil {
		return false
	}
	for _, fd := range open {
		if there, err := os.Stat(dir + "/" + fd.Name()); err == nil && os.SameFile(here, there) {
			return true
		}
	}
	return false
}
