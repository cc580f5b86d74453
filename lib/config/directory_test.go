package config

import (
	"errors"
	"os"
	"slices"
	"testing"

	"adlock/lib/fault"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

func TestTheDefaultDirectoryIsVarLibForRootAndHomeForOthers(t *testing.T) {
	const root, user = 0, 4711
	for _, c := range []struct {
		uid       int
		dir, home string
		want      string // "": an error
	}{
		{user, "/some/where", "me", "/some/where"},
		{root, "/some/where/.//", "", "/some/where"},
		{root, "/./", "", "/"},
		{root, "", "", "/var/lib/adlock"},
		{user, "", "/home/me", "/home/me/.local/state/adlock"},
		{user, "", "me", ""},
		{user, "", "", ""},
	} {
		t.Setenv("ADLOCK_DIR", c.dir)
		t.Setenv("HOME", c.home)
		path, err := usualDir(c.uid)
		if path != c.want || (err == nil) != (c.want != "") || err != nil && fault.KindOf(err) != fault.Unavailable {
			t.Errorf("%+v: %q, %v", c, path, err)
		}
	}
}

func TestTheDirectoryThatRootMadeForAUserComesBeforeHome(t *testing.T) {
	t.Setenv("ADLOCK_DIR", "")
	t.Setenv("HOME", "/home/me")
	was := rootsDir
	defer func() { rootsDir = was }()
	rootsDir = t.TempDir() + "/adlock"
	uid := os.Geteuid() + 4711 // not 0, for which usualDir is root's
	dir, theirs := UserDir(uid), DirOfHome("/home/me")
	check := func(claim, want string) {
		t.Helper()
		if path, err := usualDir(uid); path != want || err != nil {
			t.Errorf("%s: %s, %v", claim, path, err)
		}
	}
	check("it is not there", theirs)
	must.Do(t, os.Mkdir(dir, 0o700))
	check("it is another's", theirs)
	if err := os.Chown(dir, uid, -1); err != nil {
		need.Skip(t, err)
	}
	check("it is there", dir)
	must.Do(t, errors.Join(os.Rename(dir, dir+"x"), os.Symlink(dir+"x", dir), os.Lchown(dir, uid, -1)))
	check("it is a link", theirs)
}

func TestAStoreThatIsADirectoryIsTheLockDirectory(t *testing.T) {
	t.Setenv("ADLOCK_DIR", "/usual")
	for store, want := range map[string]string{"": "/usual", "/other/": "/other", "other": "other", "etcd://h:1/p": "/usual", "ftp://u@h/d": "/usual"} {
		t.Setenv("ADLOCK_STORE", store)
		if path, err := Dir(); path != want || err != nil || !slices.Contains(InForce(""), Setting{dirVariable, want, "environment"}) {
			t.Errorf("%q: %q, %v, %v", store, path, err, InForce(""))
		}
	}
}

func TestTheRunlogIsInTheLockDirectoryByDefault(t *testing.T) {
	t.Setenv("ADLOCK_STORE", "/store")
	for elsewhere, want := range map[string]string{"": "/store", "/logs/": "/logs"} {
		t.Setenv("ADLOCK_LOGDIR", elsewhere)
		if path, err := RunlogDir(); path != want || err != nil {
			t.Errorf("%q: %q, %v", elsewhere, path, err)
		}
		if log, err := RunlogOf("/store", "h"); log.Dir != want || err != nil {
			t.Errorf("%q: %q, %v", elsewhere, log.Dir, err)
		}
	}
}
