package config

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"adlock/test/support/intercept"
)

// Configuration management replaces the file while jobs start.
func TestAFileThatIsReplacedMeanwhileIsReadAgain(t *testing.T) {
	for claim, c := range map[string]struct {
		times int // how often it is replaced
		used  bool
	}{"once": {1, true}, "again and again": {1000, false}} {
		path := written(t, "ADLOCK_LOGDIR=/old")[0]
		fresh, left := path+".new", c.times
		var f *File
		intercept.Run(t, func() { f = readFile(path) }, func(intercept.Call) unix.Errno {
			if left--; left >= 0 {
				if err := os.WriteFile(fresh, []byte("ADLOCK_LOGDIR=/new"), 0o600); err != nil {
					t.Error(err)
				}
				if err := os.Rename(fresh, path); err != nil {
					t.Error(err)
				}
			}
			return 0
		}, unix.SYS_FSTAT)
		if used := f.Refused == nil && len(f.lines) == 1 && f.lines[0].value == "/new"; used != c.used || !used && f.misplaced == nil {
			t.Errorf("%s: %v, %+v", claim, f.Refused, f.lines)
		}
	}
}
