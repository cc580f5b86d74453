// Package flock is a lock that other programs and other users know: flock(2) on a file that a person
// names, which a run holds beside its atom, as flock(1) holds it.
//
// The atom is taken first, then the file, so no run waits for an atom while it has the file. A run that
// finds the file held gives its atom up before it waits. When the kernel then gives it the file, it
// tries the atom once, and lets the file go if that is denied.
package flock

import (
	"errors"
	"os"
	"path"
	"slices"

	"golang.org/x/sys/unix"

	"adlock/lib/fault"
	"adlock/lib/process"
	"adlock/lib/sysfile"
)

// File is a file to lock. A nil File is no lock, and always free.
type File struct {
	Path string

	fd        int
	how       int // unix.LOCK_EX or unix.LOCK_SH
	held      bool
	inherited bool
	granted   chan error // gets the result of the flock(2) that blocks; nil: none does
	tells     int        // can be read when that flock(2) has ended
}

// Open opens the file, or a directory. It needs no more than the right to read, so it may be another
// user's: for the same reason O_CREAT is used only where there is no file (fs.protected_regular).
// Without create no file is made, and one that is not there is nil.
func Open(name string, shared, create bool) (*File, error) {
	f := &File{Path: name, how: how(shared)}
	var st unix.Stat_t
	err := sysfile.Retry(func() error { return unix.Stat(name, &st) })
	kind := st.Mode & unix.S_IFMT
	switch {
	case err == unix.ENOENT && !create:
		return nil, cannotMake(name, unix.Access(path.Dir(name), unix.W_OK|unix.X_OK))
	case err == unix.ENOENT:
		if err = f.open(unix.O_RDONLY | unix.O_CREAT | unix.O_EXCL); err == unix.EEXIST {
			err = f.open(unix.O_RDONLY) // another run was faster
		}
		return f, cannotMake(name, err)
	case err == unix.EACCES:
		return nil, fault.New(fault.NotPermitted, name, "permission denied: every user of it must be able to enter the directories above it (chmod a+x)")
	case err == nil && kind != unix.S_IFREG && kind != unix.S_IFDIR:
		return nil, fault.New(fault.Usage, name, "is no file and no directory: it cannot be locked")
	case err == nil:
		err = f.open(unix.O_RDONLY)
	}
	if err == unix.EACCES {
		return nil, fault.New(fault.NotPermitted, name, "permission denied: every user of it must be able to read it (chmod a+r "+name+")")
	}
	if err == nil && kind == unix.S_IFREG && !shared && sysfile.IsNetwork(f.fd) {
		f.openToWrite()
	}
	return f, fault.Wrap(name, err)
}

func cannotMake(path string, err error) error {
	if err == unix.EACCES {
		return &fault.Error{Kind: fault.CannotCreate, Object: path, Err: err}
	}
	return fault.Wrap(path, err)
}

// Inherited is the file that this process's parent has opened, and keeps open.
func Inherited(fd int, path string, shared bool) *File {
	return &File{Path: path, fd: fd, how: how(shared), inherited: true}
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

// openToWrite is for an exclusive flock of a file on another machine (NFS); flock(2) tells if refused.
func (f *File) openToWrite() {
	reader := f.fd
	if f.open(unix.O_RDWR) != nil {
		f.fd = reader
		return
	}
	unix.Close(reader)
}

// Descriptor is for the job to inherit: the flock lasts while any process has it open. Below 0: no file.
func (f *File) Descriptor() int {
	if f == nil {
		return -1
	}
	return f.fd
}

// TryLock locks the file if no other process holds it. A file that has left its path excludes no newcomer.
func (f *File) TryLock() (free bool, err error) {
	for f != nil && !f.held {
		if err = f.take(); err == unix.EWOULDBLOCK {
			err = sysfile.Flock(f.fd, f.how, 0)
		}
		switch {
		case err == unix.EWOULDBLOCK:
			return false, nil
		case err != nil:
			return false, f.explain(err)
		case f.IsAtItsPath():
			f.held = true
		default:
			err = f.reopen()
		}
		if err != nil {
			return false, err
		}
	}
	return true, nil
}

// IsAtItsPath tells whether the open file is still at its path: it may have been renamed or removed.
func (f *File) IsAtItsPath() bool {
	var open, there unix.Stat_t
	return unix.Fstat(f.fd, &open) == nil && unix.Stat(f.Path, &there) == nil && sysfile.SameFile(&open, &there)
}

func (f *File) reopen() error {
	_ = sysfile.Unlock(f.fd)
	if f.inherited {
		return fault.New(fault.Denied, f.Path, "was replaced meanwhile: start this again")
	}
	fresh, err := Open(f.Path, f.how == unix.LOCK_SH, true)
	if err == nil {
		unix.Close(f.fd)
		f.fd = fresh.fd
	}
	return err
}

// take is the result of the flock(2) that Await has begun; EWOULDBLOCK if there is none.
func (f *File) take() error {
	select {
	case err := <-f.granted:
		f.stopWaiting()
		return err
	default:
		return unix.EWOULDBLOCK
	}
}

func (f *File) stopWaiting() {
	unix.Close(f.tells)
	f.granted = nil
}

func (f *File) explain(err error) error {
	if errors.Is(err, unix.EBADF) || errors.Is(err, unix.EIO) {
		return fault.New(fault.System, f.Path, "cannot be locked alone: on this file system that needs the right to write it")
	}
	return fault.Wrap(f.Path, err)
}

// Await begins to wait for the file. It returns a descriptor, below 0 with an error, that can be read when
// it is time to call TryLock. A thread blocks in flock(2), in the kernel's queue: a signal loses its place.
func (f *File) Await() (tells int, err error) {
	if f.granted != nil {
		return f.tells, nil
	}
	var far int
	if f.tells, far, err = sysfile.SocketPair(); err != nil {
		return -1, fault.Wrap(f.Path, err)
	}
	granted, fd := make(chan error, 1), f.fd
	f.granted = granted
	go func() {
		granted <- sysfile.Retry(func() error { return unix.Flock(fd, f.how) })
		unix.Close(far)
	}()
	return f.tells, nil
}

// IsAwaited tells whether a thread still blocks in flock(2) for the file.
func (f *File) IsAwaited() bool { return f != nil && f.granted != nil && len(f.granted) == 0 }

// Free lets the file go, for all processes that have inherited it too.
func (f *File) Free() {
	if f != nil && (f.held || f.take() == nil) {
		f.held = false
		_ = sysfile.Unlock(f.fd) // fails only for a descriptor that is not open
	}
}

// Close lets the file go if no other process has inherited it; if a thread waits for it, once granted.
func (f *File) Close() {
	if f == nil {
		return
	}
	shut := func() { unix.Close(f.fd) }
	if f.IsAwaited() {
		granted := f.granted
		shut = func() { go func() { <-granted; unix.Close(f.fd) }() }
	}
	if f.granted != nil {
		f.stopWaiting()
	}
	shut()
}

// IsTaken tells whether another process holds the file, except in another pid namespace.
func (f *File) IsTaken() bool { return f != nil && f.Locker() != 0 }

// Locker is the pid of the process that locked the file; 0: unknown, or none. That process may be dead.
func (f *File) Locker() int {
	var st unix.Stat_t
	if err := sysfile.Fstat(f.fd, &st); err != nil {
		return 0
	}
	return sysfile.FlockHolder(uint64(st.Dev), uint64(st.Ino), f.how == unix.LOCK_SH)
}

// Holder is a process that holds the file; PID 0: unknown. If this process has inherited what holds it,
// that is the first of its ancestors that has it.
func (f *File) Holder() process.Identity {
	pid := f.Locker()
	switch {
	case pid > 0 && process.IsAncestor(pid):
	case f.IsHeldIn(os.Getpid()):
		pid = f.firstHolder()
	case pid <= 0, !f.IsHeldIn(pid):
		return process.Identity{}
	}
	holder, err := process.Of(pid)
	if err != nil {
		return process.Identity{}
	}
	return holder
}

func (f *File) firstHolder() int {
	line, _ := process.Ancestors() // incomplete: the highest that is known
	for _, pid := range slices.Backward(line) {
		if f.IsHeldIn(pid) {
			return pid
		}
	}
	return os.Getpid()
}

// IsHeldIn reports whether a process has the open file that keeps newcomers out, as far as it shows that.
func (f *File) IsHeldIn(pid int) bool {
	var st unix.Stat_t
	return sysfile.Fstat(f.fd, &st) == nil && sysfile.HoldsFlock(pid, uint64(st.Ino), f.how == unix.LOCK_SH)
}
