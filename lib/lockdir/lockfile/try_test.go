package lockfile

import (
	"os"
	"path/filepath"
	"testing"

	"adlock/lib/fault"
)

func TestAnExistingDirectoryIsTriedItself(t *testing.T) {
	d := newDir(t)
	tried, there, err := OpenToTry(d.path)
	must(t, err)
	defer tried.Close()
	if !there || tried.path != d.path {
		t.Errorf("%s, there: %v", tried.path, there)
	}
}

func TestTheNearestExistingDirectoryIsTriedAndNoneIsMade(t *testing.T) {
	above := newDir(t).path
	for _, path := range []string{above + "/a", above + "/a/b/c", above + "/a/../b"} {
		tried, there, err := OpenToTry(path)
		must(t, err)
		if there || tried.path != above {
			t.Errorf("%s: %s, there: %v", path, tried.path, there)
		}
		temp, err := tried.TempFile(nil)
		must(t, err)
		temp.Discard()
		must(t, tried.Close())
	}
	if left, err := os.ReadDir(above); len(left) != 0 || err != nil {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestAPlaceWhereNoDirectoryCanBeMadeIsRefused(t *testing.T) {
	above := newDir(t).path
	dangling := filepath.Join(above, "link")
	must(t, os.Symlink("/nowhere/at/all", dangling))
	must(t, os.WriteFile(above+"/file", nil, 0o600))
	for claim, path := range map[string]string{
		"a relative one": "not/there", "below a file": above + "/file/a",
		"a link that leads nowhere": dangling + "/a",
	} {
		if _, _, err := OpenToTry(path); fault.KindOf(err) != fault.CannotCreate {
			t.Errorf("%s: %v", claim, err)
		}
	}
	must(t, os.Chmod(above, 0o777))
	_, _, err := OpenToTry(above + "/a")
	refused(t, "below what others may write to", err)
}
