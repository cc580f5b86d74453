// Package flock locks a file that a person names, with flock(2) as flock(1) does. So a run also excludes other programs
// and other users. A run holds that file beside its atom.
//
// A run takes the atom first, then the file. It takes the file first only if it has to end the atom's owner or
// replace its lock. A run that finds the file locked waits for it without the atom. Once it gets the file, it
// tries the atom once, and unlocks the file if the atom is denied. So no run that waits for the atom holds the file.
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
	granted   chan error // gets the result of a flock(2) that blocks in a thread; nil: there is none
	tells     int        // descriptor that becomes readable when that flock(2) has returned
}

// Open opens name, a file or a directory, to lock it shared or exclusively. As name may be another user's, Open opens
// it for reading (but see openToWrite), and uses O_CREAT only for a new file (fs.protected_regular). If there is no
// file and create is false, the File is nil, with an error if the directory is not writable.
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
			if err = f.open(unix.O_RDONLY); err == unix.ENOENT { // if it opens, another run has created the file
				return nil, fault.New(fault.CannotCreate, name, "is a symbolic link to no file")
			}
		}
		if err != nil {
			return nil, cannotMake(name, err)
		}
		return f, nil
	case err == unix.EACCES:
		return nil, fault.New(fault.NotPermitted, name, "permission denied: every user of it must be able to enter the directories above it (chmod a+x)")
	case err == nil && kind != unix.S_IFREG && kind != unix.S_IFDIR:
		return nil, fault.New(fault.Usage, name, "is no file and no directory: it cannot be locked")
	case err == nil:
		err = f.open(unix.O_RDONLY)
	}
	if err == unix.EACCES {
		return nil, fault.New(fault.NotPermitted, name, "permission denied: every user of it must be able to read it (chmod a+r "+fault.Quoted(name)+")")
	}
	if err != nil {
		return nil, fault.Wrap(name, err)
	}
	if kind == unix.S_IFREG && !shared && sysfile.IsNetwork(f.fd) {
		f.openToWrite()
	}
	return f, nil
}

func cannotMake(path string, err error) error {
	if err == unix.EACCES {
		return &fault.Error{Kind: fault.CannotCreate, Object: path, Err: err}
	}
	return fault.Wrap(path, err)
}

// Inherited returns the file that this process's parent has opened, and keeps open.
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

// openToWrite opens the file again for writing, which an exclusive flock(2) needs on a file of another
// machine (NFS). If that is refused, it keeps the descriptor, and flock(2) reports the error.
func (f *File) openToWrite() {
	reader := f.fd
	if f.open(unix.O_RDWR) != nil {
		f.fd = reader
		return
	}
	unix.Close(reader)
}

// Descriptor returns the file's descriptor, for the job: the file stays locked while any process has it open.
func (f *File) Descriptor() int { return f.fd }

// TryLock locks the file; free is false if another process's lock excludes this one. A file that is no longer at its
// path excludes no newcomer: then TryLock opens the path again, or fails if the file was inherited.
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

// IsAtItsPath reports whether the open file is still at its path: it may have been renamed or removed.
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

// take returns the result of the flock(2) that Await has begun; EWOULDBLOCK without a result.
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

// Await starts a thread that blocks in flock(2), and so waits in the kernel's queue. tells, which later calls return
// too, is a descriptor that becomes readable when it is time to call TryLock. If err is not nil, tells is below 0.
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

// IsAwaited reports whether a thread still blocks in flock(2) for the file.
func (f *File) IsAwaited() bool { return f != nil && f.granted != nil && len(f.granted) == 0 }

// Free unlocks the file, also for all processes that have inherited it.
func (f *File) Free() {
	if f != nil && (f.held || f.take() == nil) {
		f.held = false
		_ = sysfile.Unlock(f.fd) // fails only for a descriptor that is not open
	}
}

// Close closes the file, which unlocks it if no other process has inherited it. If a thread still waits for the file,
// a goroutine closes the file once the kernel has granted the lock.
func (f *File) Close() {
	if f == nil {
		return
	}
	granted, waits := f.granted, f.IsAwaited()
	if granted != nil {
		f.stopWaiting()
	}
	if waits {
		go func() { <-granted; unix.Close(f.fd) }()
		return
	}
	unix.Close(f.fd)
}

// IsTaken reports whether a process of this pid namespace keeps out newcomers that want the file as f does.
func (f *File) IsTaken() bool { return f != nil && f.Locker() != 0 }

// Locker returns the pid of a process, perhaps dead, whose lock keeps out newcomers; 0 if there is none, or unknown.
func (f *File) Locker() int { return sysfile.FlockHolder(f.fd, f.how == unix.LOCK_SH) }

// Holder returns the process that locked the file, if that is this process or an ancestor. Otherwise, if this
// process has inherited the lock, Holder returns the topmost ancestor that has the lock. In other cases it returns
// the process that locked the file, if that process still has the lock. PID 0: unknown.
func (f *File) Holder() process.Identity {
	pid := f.Locker()
	switch {
	case pid > 0 && process.IsAncestor(pid):
	case f.IsHeldIn(os.Getpid()):
		pid = f.firstHolder()
	case pid <= 0, !f.IsHeldIn(pid):
		return process.Identity{}
	}
	if pid == os.Getpid() && f.granted != nil && sysfile.Flock(f.fd, f.how, 0) == nil {
		return process.Identity{} // the file has just been granted to this process's own thread, which waited for it
	}
	holder, err := process.Of(pid)
	if err != nil {
		return process.Identity{}
	}
	return holder
}

func (f *File) firstHolder() int {
	line, _ := process.Ancestors() // an incomplete list still has the topmost known one
	for _, pid := range slices.Backward(line) {
		if f.IsHeldIn(pid) {
			return pid
		}
	}
	return os.Getpid()
}

// IsHeldIn reports whether a process has the file open and locked against newcomers; false if that cannot be seen.
func (f *File) IsHeldIn(pid int) bool {
	var st unix.Stat_t
	return sysfile.Fstat(f.fd, &st) == nil && sysfile.HoldsFlock(pid, &st, f.how == unix.LOCK_SH)
}
