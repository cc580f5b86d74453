package config

import (
	"testing"

	"adlock/lib/fault"
)

func TestTheDefaultDirectoryIsRootsOrBelowAnAbsoluteHome(t *testing.T) {
	const root, user = 0, 4711
	for _, c := range []struct {
		uid       int
		dir, home string
		want      string // "": an error
	}{
		{user, "/some/where", "me", "/some/where"},
		{root, "/some/where", "", "/some/where"},
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

func TestAStoreThatIsADirectoryIsTheLockDirectory(t *testing.T) {
	t.Setenv("ADLOCK_DIR", "/usual")
	for store, want := range map[string]string{"": "/usual", "/other": "/other", "other": "other", "etcd://h:1/p": "/usual", "ftp://u@h/d": "/usual"} {
		t.Setenv("ADLOCK_STORE", store)
		if path, err := Dir(); path != want || err != nil {
			t.Errorf("%q: %q, %v", store, path, err)
		}
	}
}

func TestTheRecordIsInTheLockDirectoryUnlessToldOtherwise(t *testing.T) {
	t.Setenv("ADLOCK_STORE", "/store")
	for elsewhere, want := range map[string]string{"": "/store", "/logs": "/logs"} {
		t.Setenv("ADLOCK_LOGDIR", elsewhere)
		if path, err := RunlogDir(); path != want || err != nil {
			t.Errorf("%q: %q, %v", elsewhere, path, err)
		}
		if log, err := RunlogOf("/store", "h"); log.Dir != want || err != nil {
			t.Errorf("%q: %q, %v", elsewhere, log.Dir, err)
		}
	}
}
