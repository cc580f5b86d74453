package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"adlock/lib/fault"
	"adlock/lib/sysfile"
)

// become gives the calling thread the user's rights to files, and takes root's away. Each system call
// here affects this thread alone, unlike those of package syscall.
func become(u otherUser) error {
	if u.UID == 0 {
		return fault.New(fault.NotPermitted, u.Name, "is no other user")
	}
	if err := unix.Setgroups(u.Groups); err != nil {
		return &fault.Error{Kind: fault.NotPermitted, Object: u.Name, Err: err}
	}
	// Both calls return the previous number and no error (setfsuid(2)): a second call shows whether
	// the first succeeded.
	for _, set := range []struct {
		call func(int) (int, error)
		id   int
	}{{unix.SetfsgidRetGid, u.GID}, {unix.SetfsuidRetUid, u.UID}} {
		_, _ = set.call(set.id)
		if is, _ := set.call(-1); is != set.id {
			return fault.New(fault.NotPermitted, u.Name, "the rights of that user cannot be taken")
		}
	}
	return dropCapabilities(u)
}

// keptCapabilities are the capabilities needed to see whether a process lives. They give no rights to files. The others
// might have an effect on a file system of the user's own (FUSE).
const keptCapabilities = 1<<unix.CAP_KILL | 1<<unix.CAP_SYS_PTRACE

func dropCapabilities(u otherUser) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	err := unix.Capget(&header, &data[0])
	if err == nil {
		data[0].Effective, data[1].Effective = data[0].Effective&keptCapabilities, 0
		err = unix.Capset(&header, &data[0])
	}
	if err != nil {
		return &fault.Error{Kind: fault.NotPermitted, Object: u.Name, Err: err}
	}
	return nil
}

// openBelow opens the directory that names lead to below base. base may contain links: root may have made
// /home one. A link among the names, or a file that is no directory, is an error (fault.NotPermitted).
func openBelow(base string, names ...string) (fd int, err error) {
	at := base
	fd, err = sysfile.Open(base, unix.O_PATH|unix.O_DIRECTORY)
	for i, name := range names {
		if err != nil {
			break
		}
		flags := unix.O_PATH
		if i == len(names)-1 {
			flags = unix.O_RDONLY
		}
		above := fd
		at = path.Join(at, name)
		fd, err = sysfile.Openat(above, name, flags|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
		unix.Close(above)
	}
	if err == unix.ENOTDIR {
		return -1, fault.New(fault.NotPermitted, at, "is no directory, and a link is not followed")
	}
	if err != nil {
		return -1, &fs.PathError{Op: "open", Path: at, Err: err}
	}
	return fd, nil
}

// namesIn lists names of the open directory fd, no more than most; more reports whether there are others.
func namesIn(fd, most int) (names []string, more bool, err error) {
	again, err := sysfile.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, false, err
	}
	dir := os.NewFile(uintptr(again), "")
	defer dir.Close()
	names, err = dir.Readdirnames(most + 1)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return names[:min(len(names), most)], len(names) > most, err
}
