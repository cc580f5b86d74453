package main

import (
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
// There is a race: a job of the user may have found no lock directory before this call, and may make one at
// home after the check below; then there are two. So init is for users who cannot make a directory at home,
// and whose jobs have all failed so far.
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
	found, err := doAs(u, patience, func(func() bool) (string, error) {
		if config.IsUsers(dir, u.UID) {
			return dir, nil
		}
		_, err := os.Lstat(at)
		// No job of the user can have made a file in a directory that the user may not search.
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOTDIR) {
			return "", nil
		}
		return at, err
	})
	switch {
	case errors.Is(err, errSilent):
		silent[u.UID] = err
		return "", fault.New(fault.Unavailable, name, "does not answer")
	case err != nil:
		return "", fault.Wrap(at, err)
	case found == dir:
		return dir, nil
	case found == at:
		return "", fault.New(fault.CannotCreate, name, "has a lock directory already: "+at+": with a second one a job could run twice")
	}
	// An empty directory of root's was left by an init that crashed.
	err = os.Mkdir(dir, 0o700)
	if errors.Is(err, fs.ErrExist) && config.IsUsers(dir, 0) {
		if entries, unread := os.ReadDir(dir); unread == nil && len(entries) == 0 {
			err = nil
		}
	}
	if err != nil {
		return "", fault.Wrap(dir, err)
	}
	// While dir belongs to root, no process uses it as a lock directory.
	return dir, fault.Wrap(dir, errors.Join(os.Chmod(dir, 0o700), os.Lchown(dir, u.UID, u.GID)))
}
