package lockfile

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/process"
	"adlock/lib/record"
	"adlock/test/support/must"
)

var motd = atom.Atom{Program: "cfengine.conf", Host: "dax", Operator: "editfile", Operand: "/etc/motd"}

// newDir opens a fresh lock directory.
func newDir(t testing.TB) *Dir {
	t.Helper()
	path := t.TempDir()
	must.Do(t, os.Chmod(path, 0o700))
	d := must.Get(Open(path))(t)
	t.Cleanup(func() { d.Close() })
	return d
}

// fullRecord is a full record with a new token each time.
func fullRecord() record.Record {
	return record.Record{
		Owner: process.Identity{PID: 4711, Start: 99, PGID: 4711, UID: 1000, Boot: "b", Machine: "m", PIDNS: 1, TimeNS: 2},
		Token: record.NewToken(), Atom: motd, Boottime: time.Hour, ExpireAfter: 2 * time.Hour,
	}
}

// put puts a lock in place and unlocks its guard.
func put(t testing.TB, d *Dir, r record.Record) {
	t.Helper()
	temp := must.Get(d.TempFile(r.Bytes()))(t)
	defer temp.Close()
	must.Do(t, temp.Link("lock.x"))
}

// lockedDir is a fresh lock directory with a lock in it.
func lockedDir(t testing.TB) *Dir {
	t.Helper()
	d := newDir(t)
	put(t, d, fullRecord())
	return d
}

// active opens the lock "x" until the test ends.
func active(t testing.TB, d *Dir) *Active {
	t.Helper()
	a := must.Get(d.Active("x"))(t)
	t.Cleanup(func() { a.Close() })
	return a
}

// refused wants an error with the status 77.
func refused(t testing.TB, claim string, err error) {
	t.Helper()
	if fault.KindOf(err) != fault.NotPermitted {
		t.Errorf("%s: got %v, want status 77", claim, err)
	}
}

func exists(d *Dir, name string) bool {
	_, err := os.Lstat(filepath.Join(d.path, name))
	return err == nil
}
