package main

import (
	"errors"
	"io/fs"
	"os"
	"os/user"
	"strconv"
	"syscall"

	"adlock/lib/config"
	"adlock/lib/fault"
)

// initVerb makes lock directories in /var/lib for users that can have none at home.
var initVerb = verb{
	options: func(*query) []config.Option { return nil },
	args:    true,
	show:    initUsers,
}

func initUsers(q *query) error {
	if len(q.args) == 0 {
		return fault.New(fault.Usage, "init", "wants a USER")
	}
	if os.Geteuid() != 0 {
		return fault.New(fault.NotPermitted, "init", "makes directories of other users, and is for root")
	}
	var failed error
	for _, name := range q.args {
		dir, err := initUser(name)
		if err == nil {
			err = write([]byte(name + ": " + dir + "\n"))
		}
		if err != nil {
			if failed != nil {
				fault.Report(failed)
			}
			failed = err
		}
	}
	return failed
}

// initUser makes the lock directory of a user. If it exists nothing is done.
//
// A job of the user that has found no such directory, and is about to make one at home,
// makes a second one after the check. So this is for users who cannot make one at home:
// every job of theirs has failed so far.
func initUser(name string) (dir string, err error) {
	uid, gid, home, err := numbers(name)
	if err != nil {
		return "", err
	}
	dir = config.UserDir(uid)
	if config.IsUsers(dir, uid) {
		return dir, nil
	}
	at := config.DirOfHome(home)
	switch _, err := os.Lstat(at); {
	case err == nil:
		return "", fault.New(fault.CannotCreate, name, "has a lock directory already: "+at+": with a second one a job could run twice")
	case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR):
		return "", fault.Wrap(at, err)
	}
	// One of root's that is empty is what a crash has left of this.
	err = os.Mkdir(dir, 0o700)
	if errors.Is(err, fs.ErrExist) && config.IsUsers(dir, 0) {
		if entries, unread := os.ReadDir(dir); unread == nil && len(entries) == 0 {
			err = nil
		}
	}
	if err != nil {
		return "", fault.Wrap(dir, err)
	}
	// Until it is the user's no process takes it for a lock directory.
	return dir, fault.Wrap(dir, errors.Join(os.Chmod(dir, 0o700), os.Lchown(dir, uid, gid)))
}

// numbers are those of a user by name or number.
func numbers(name string) (uid, gid int, home string, err error) {
	known, err := user.Lookup(name)
	if err != nil {
		known, err = user.LookupId(name)
	}
	if err != nil {
		return 0, 0, "", fault.New(fault.Unavailable, name, "no such user in /etc/passwd")
	}
	uid, err = strconv.Atoi(known.Uid)
	if err == nil {
		gid, err = strconv.Atoi(known.Gid)
	}
	if err == nil && uid == 0 {
		err = errors.New("needs no other lock directory than root's")
	}
	if err != nil {
		err = &fault.Error{Kind: fault.Usage, Object: name, Err: err}
	}
	return uid, gid, known.HomeDir, err
}
