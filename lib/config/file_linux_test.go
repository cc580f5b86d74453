package config

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"adlock/lib/atom"
	"adlock/lib/locker"
	"adlock/test/support/helper"
	"adlock/test/support/intercept"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

// Configuration management replaces the file while jobs start.
func TestASettingsFileReplacedDuringTheReadIsReadAgain(t *testing.T) {
	for claim, c := range map[string]struct {
		times int // how often it is replaced
		used  bool
	}{"once": {1, true}, "again and again": {1000, false}} {
		path := written(t, "ADLOCK_LOGDIR=/old")[0]
		fresh, left := path+".new", c.times
		var f *File
		intercept.Run(t, func() { f = readFile(path) }, func(intercept.Call) unix.Errno {
			if left--; left >= 0 {
				must.Do(t, os.WriteFile(fresh, []byte("ADLOCK_LOGDIR=/new"), 0o600))
				must.Do(t, os.Rename(fresh, path))
			}
			return 0
		}, unix.SYS_FSTAT)
		if used := f.Refused == nil && len(f.lines) == 1 && f.lines[0].value == "/new"; used != c.used || !used && f.misplaced == nil {
			t.Errorf("%s: %v, %+v", claim, f.Refused, f.lines)
		}
	}
	path, f := written(t, "ADLOCK_LOGDIR=/old")[0], &File{}
	intercept.Run(t, func() { f = readFile(path) }, func(intercept.Call) unix.Errno {
		_ = os.Remove(path) // the first time
		return 0
	}, unix.SYS_FSTAT)
	if f != nil {
		t.Errorf("removed: %v, %+v", f.Refused, f.lines)
	}
}

func TestARefusedDirectoryGetsNoRecordOfWhatWasReported(t *testing.T) {
	need.Root(t)
	const nobody = 65534
	written(t, "ADLOCK_NONSENSE=1\n")
	home, locks := t.TempDir(), filepath.Join(t.TempDir(), "locks")
	link := filepath.Join(t.TempDir(), "link")
	must.Do(t, errors.Join(os.Mkdir(locks, 0o700), os.Symlink(filepath.Dir(locks), link), os.Lchown(link, nobody, nobody),
		os.Chmod(home, 0o777|os.ModeSticky)))
	for dir, recorded := range map[string]bool{filepath.Join(link, "locks"): false, home: false, locks: true} {
		for file, tell := range map[string]func(){
			toldFile: func() { TellMistakes(dir, values) }, toldHosts: func() { TellNoHost(dir, "etcd://h:1/p") },
		} {
			said := helper.Stderr(t, tell)
			if err := os.Remove(filepath.Join(dir, file)); said == "" || recorded != (err == nil) {
				t.Errorf("%s: said %q, and %v", dir, said, err)
			}
		}
	}
}

func TestADenialNamesItsAtomByOperatorAndOperand(t *testing.T) {
	for _, remote := range []bool{false, true} {
		s := Defaults()
		s.Verbose, s.Remote, s.Request.FromStart = true, remote, true
		s.Request.Atom = atom.Atom{Program: "p", Host: "h", Operator: "run", Operand: "x"}
		said := helper.Stderr(t, func() { s.Tell(locker.Outcome{Verdict: locker.Busy, Reason: "busy"}, t.TempDir()) })
		if said != "adlock: run x: busy\n" {
			t.Errorf("remote %v: %q", remote, said)
		}
	}
}
