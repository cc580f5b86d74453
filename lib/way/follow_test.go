package way

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"adlock/lib/fault"
	"adlock/test/support/must"
)

func TestFollowReturnsTheLastTargetOfALink(t *testing.T) {
	dir := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	t.Chdir(dir)
	for link, to := range map[string]string{
		"one": "f", "two": "one", "absolute": dir + "/two", "dangling": "sub/none", "elsewhere": "sub", "loop": "loop",
		"sub/up": "../f", "a/b/up": "../g", "lost": "none/f",
	} {
		must.Do(t, errors.Join(os.MkdirAll(filepath.Dir(link), 0o755), os.Symlink(to, link)))
	}
	must.Do(t, errors.Join(os.WriteFile("f", nil, 0o644), os.Symlink("a/b", "deep")))
	for path, want := range map[string]string{
		"f": "f", "none": "none", "sub/x": "sub/x", "one": "f", "two": "f", "absolute": "f",
		"dangling": "sub/none", "elsewhere/up": "f", "deep/up": "a/g", "deep/../g": "a/g",
	} {
		got, err := Follow(path)
		if got != path { // the target of a link may be an absolute path
			got, _ = filepath.Rel(dir, filepath.Join(dir, strings.TrimPrefix(got, dir)))
		}
		if err != nil || got != want {
			t.Errorf("%s leads to %q, %v, want %q", path, got, err, want)
		}
	}
	writer := must.Get(os.OpenFile("f", os.O_WRONLY, 0))(t)
	defer writer.Close()
	number := strconv.Itoa(int(writer.Fd()))
	must.Do(t, os.Symlink("/dev/fd/"+number, "open"))
	for _, path := range []string{"open", "/dev/fd/" + number, "/proc/self/fd/" + number} {
		if got, err := Follow(path); fault.KindOf(err) != fault.CannotCreate {
			t.Errorf("%s leads to %q, %v", path, got, err)
		}
	}
	for path, want := range map[string]error{"loop": unix.ELOOP, "lost": unix.ENOENT, "sub/../none/": unix.ENOENT, "f/x": unix.ENOTDIR} {
		if got, err := Follow(path); !errors.Is(err, want) {
			t.Errorf("%s leads to %q, %v, want %v", path, got, err, want)
		}
	}
}
