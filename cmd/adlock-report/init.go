package main

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"os/user"
	"slices"
	"strconv"
	"syscall"

	"adlock/lib/config"
	"adlock/lib/fault"
)

var initVerb = verb{
	options: func(*query) []config.Option { return nil },
	args:    true,
	visits:  true,
	show:    initUsers,
}

func initUsers(q *query) error {
	if len(q.args) == 0 {
		return fault.New(fault.Usage, "init", "wants a USER")
	}
	if os.Geteuid() != 0 {
		return fault.New(fault.NotPermitted, "init", "makes directories of other users, and is for root")
	}
	var failed failures
	for _, name := range q.args {
		dir, err := initUser(name)
		if err == nil {
			err = write([]byte(name + ": " + dir + "\n"))
		}
		failed.add(err)
	}
	return failed.last
}

// initUser makes the lock directory of a user (a name or a uid) if it does not exist, and returns its path.
// A job of the user that found no lock directory before this call may make one at home after the check below.
// So init is for users who cannot make one there, and whose jobs have all failed so far.
func initUser(name string) (dir string, err error) {
	known, err := user.Lookup(name)
	if err != nil {
		known, err = user.LookupId(name)
	}
	users, unread := others()
	i := slices.IndexFunc(users, func(u otherUser) bool { return err == nil && strconv.Itoa(u.UID) == known.Uid })
	switch {
	case unread != nil:
		return "", unread
	case err == nil && known.Uid == "0":
		return "", fault.New(fault.Usage, name, "needs no other lock directory than root's")
	case i < 0:
		return "", fault.New(fault.Unavailable, name, "no such user in /etc/passwd")
	}
	u := users[i]
	dir = config.UserDir(u.UID)
	at := config.DirOfHome(known.HomeDir)
	there, err := doAs(u, patience, func(func() bool) (bool, error) {
		if config.IsUsers(dir, u.UID) {
			return true, fault.Wrap(dir, os.Chmod(dir, 0o700)) // a run refuses one that others may write
		}
		_, err := os.Lstat(at)
		// No job of the user can have made a file in a directory that the user may not search.
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOTDIR) {
			return false, nil
		}
		return false, cmp.Or[error](err, fault.New(fault.CannotCreate, name, "has a lock directory already: "+at+": with a second one a job could run twice"))
	})
	switch {
	case errors.Is(err, errSilent):
		silent[u.UID] = err
		return "", fault.New(fault.Unavailable, name, "does not answer")
	case err != nil || there:
		return dir, fault.Wrap(at, err)
	}
	if config.IsUsers(dir, 0) {
		_ = os.Remove(dir) // an empty one was left by an init that crashed; of any other, Mkdir tells
	}
	if err = os.Mkdir(dir, 0o700); errors.Is(err, fs.ErrExist) {
		return "", fault.New(fault.CannotCreate, dir, "is there, and is no directory of "+name+": remove it, or give it to that user")
	}
	if err != nil {
		return "", fault.Wrap(dir, err)
	}
	// While dir belongs to root, no process uses it as a lock directory.
	return dir, fault.Wrap(dir, errors.Join(os.Chmod(dir, 0o700), os.Lchown(dir, u.UID, u.GID)))
}
