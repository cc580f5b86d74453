package locker

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"adlock/lib/fault"
	"adlock/lib/record"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

func TestOnlyAFileOfRootsAlonePausesTheHost(t *testing.T) {
	need.Root(t)
	PauseFile = filepath.Join(t.TempDir(), "adlock.pause")
	whole := string(record.NewPause(time.Hour, "").Bytes())
	for claim, c := range map[string]struct {
		text    string
		mode    os.FileMode
		uid     int
		on, bad bool
	}{
		"root's":                    {whole, 0o644, 0, true, false},
		"root's, of its user alone": {whole, 0o600, 0, true, false},
		"another user's":            {whole, 0o644, 1, false, true},
		"writable by a group":       {whole, 0o664, 0, false, true},
		"of an unknown format":      {"", 0o644, 0, false, true},
		"over":                      {string(pastPause().Bytes()), 0o644, 0, false, false},
	} {
		must.Do(t, os.WriteFile(PauseFile, []byte(c.text), 0o600))
		must.Do(t, os.Chmod(PauseFile, c.mode))
		must.Do(t, os.Chown(PauseFile, c.uid, -1))
		p, err := HostPause()
		if p.On != c.on || (fault.KindOf(err) == fault.NotPermitted) != c.bad || (err != nil) != c.bad {
			t.Errorf("%s: %+v, %v", claim, p, err)
		}
		must.Do(t, os.Remove(PauseFile))
	}
	if p, err := HostPause(); p.On || err != nil {
		t.Errorf("none: %+v, %v", p, err)
	}
	must.Do(t, os.Symlink("/etc/passwd", PauseFile))
	if p, err := HostPause(); p.On || err == nil {
		t.Errorf("a link: %+v, %v", p, err)
	}
}

func pastPause() record.Pause {
	p := record.NewPause(time.Nanosecond, "")
	time.Sleep(time.Microsecond)
	return p
}
