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
	"adlock/lib/otheruser"
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

// initUser makes the lock directory of a user. If that exists, it does nothing.
//
// There is a race: a job of the user may have found no lock directory before this call, and may
// make one at home after the check below; then there are two. So init is for users who cannot make
// a directory at home, and whose jobs have all failed so far.
func initUser(name string) (dir string, err error) {
	uid, gid, home, err := numbers(name)
	if err != nil {
		return "", err
	}
	dir = config.UserDir(uid)
	theirs, err := lookAs(uid, dir, func() (bool, error) { return config.IsUsers(dir, uid), nil })
	if theirs || err != nil {
		return dir, err
	}
	at := config.DirOfHome(home)
	switch there, err := lookAs(uid, at, func() (bool, error) { return isThere(at) }); {
	case err != nil:
		return "", err
	case there:
		return "", fault.New(fault.CannotCreate, name, "has a lock directory already: "+at+": with a second one a job could run twice")
	}
	// An empty directory of root's is what an init that crashed has left.
	err = os.Mkdir(dir, 0o700)
	if errors.Is(err, fs.ErrExist) && config.IsUsers(dir, 0) {
		if entries, unread := os.ReadDir(dir); unread == nil && len(entries) == 0 {
			err = nil
		}
	}
	if err != nil {
		return "", fault.Wrap(dir, err)
	}
	// As long as it belongs to root, no process uses it as a lock directory.
	return dir, fault.Wrap(dir, errors.Join(os.Chmod(dir, 0o700), os.Lchown(dir, uid, gid)))
}

// isThere takes a path that the user may not search for missing: the user's jobs cannot have made a file
// there.
func isThere(path string) (bool, error) {
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOTDIR) {
		return false, nil
	}
	return err == nil, err
}

func lookAs(uid int, path string, look func() (bool, error)) (bool, error) {
	users, err := others()
	if err != nil {
		return false, err
	}
	i := slices.IndexFunc(users, func(u otheruser.User) bool { return u.UID == uid })
	if i < 0 {
		return false, fault.New(fault.Unavailable, strconv.Itoa(uid), "no such user in /etc/passwd")
	}
	is, err := otheruser.Do(users[i], patience, func(func() bool) (bool, error) { return look() })
	if errors.Is(err, otheruser.ErrSilent) {
		silent[uid] = err
		return false, fault.New(fault.Unavailable, path, "does not answer")
	}
	return is, fault.Wrap(path, err)
}

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
