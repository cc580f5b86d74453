package config

import (
	"os"
	"path/filepath"
	"testing"

	"adlock/test/support/helper"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

func TestMistakesAreNotRecordedInARefusedDirectory(t *testing.T) {
	need.Root(t)
	const nobody = 65534
	written(t, "ADLOCK_NONSENSE=1\n")
	home, locks := t.TempDir(), filepath.Join(t.TempDir(), "locks")
	link := filepath.Join(t.TempDir(), "link")
	must.Do(t, os.Mkdir(locks, 0o700))
	for _, err := range []error{os.Symlink(filepath.Dir(locks), link), os.Lchown(link, nobody, nobody), os.Chmod(home, 0o777|os.ModeSticky)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for dir, recorded := range map[string]bool{filepath.Join(link, "locks"): false, home: false, locks: true} {
		if said := helper.Stderr(t, func() { TellMistakes(dir, nil) }); said == "" {
			t.Errorf("%s: nothing was said", dir)
		}
		_, err := os.Stat(filepath.Join(dir, toldFile))
		if recorded != (err == nil) {
			t.Errorf("%s: %v", dir, err)
		}
		_ = os.Remove(filepath.Join(locks, toldFile))
	}
}
