package way

import (
	"os"
	"path/filepath"
	"testing"

	"adlock/test/support/must"
	"adlock/test/support/need"
)

func TestOnlyRunlogsMayLieBelowAGroupWritableDirectory(t *testing.T) {
	need.Root(t)
	const group, nobody = 4, 65534
	above := t.TempDir()
	for _, c := range []struct {
		uid  int
		mode os.FileMode
		ok   bool
	}{{0, 0o775, true}, {0, 0o777, false}, {nobody, 0o755, false}} {
		must.Do(t, os.Chown(above, c.uid, group))
		must.Do(t, os.Chmod(above, c.mode))
		dir := filepath.Join(above, "log")
		if err := CheckOwners(dir, "runlog", nil); (err == nil) != c.ok {
			t.Errorf("%+v: %v", c, err)
		}
		if err := Check(dir, "runlog", nil); err == nil {
			t.Errorf("%+v: a lock directory may", c)
		}
	}
}
