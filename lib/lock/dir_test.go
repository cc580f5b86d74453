package lock

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"adlock/lib/exit"
	"adlock/test/need"
)

func TestADirectoryThatOthersCouldChangeIsRefused(t *testing.T) {
	for _, mode := range []fs.FileMode{0o720, 0o702, 0o777 | fs.ModeSticky} {
		path := t.TempDir()
		must(t, os.Chmod(path, mode))
		_, err := Open(path)
		refused(t, mode.String(), err)
	}
}

func TestADirectoryOfAnotherUserIsRefused(t *testing.T) {
	need.Root(t)
	path := t.TempDir()
	must(t, os.Chown(path, 4711, 4711))
	_, err := Open(path)
	refused(t, "a foreign directory", err)
}

func TestALinkToADirectoryIsRefused(t *testing.T) {
	d := newDir(t)
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(d.path, link))
	for _, path := range []string{link, link + "/", link + "/."} {
		_, err := Open(path)
		refused(t, path, err)
	}
}

func TestWhatIsNoDirectoryCannotBecomeOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(path, nil, 0o600))
	for _, path := range []string{path, path + "/below"} {
		if _, err := Create(path); exit.Code(err) != exit.CannotCreate {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestAMissingDirectoryIsMadePrivateWithItsParents(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	path := filepath.Join(t.TempDir(), "a", "b")
	if _, err := Open(path); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("Open made it, or: %v", err)
	}
	d, err := Create(path)
	must(t, err)
	defer d.Close()
	info, err := os.Stat(path)
	must(t, err)
	if info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v", info.Mode())
	}
}

func TestTheDefaultDirectoryNeedsAnAbsoluteHome(t *testing.T) {
	t.Setenv("ADLOCK_DIR", "/some/where")
	if path, err := DefaultDir(); path != "/some/where" || err != nil {
		t.Errorf("%q, %v", path, err)
	}
	t.Setenv("ADLOCK_DIR", "")
	t.Setenv("HOME", "somewhere")
	path, err := DefaultDir()
	if os.Geteuid() == 0 {
		if path != "/var/lib/adlock" || err != nil {
			t.Errorf("root: %q, %v", path, err)
		}
	} else if exit.Code(err) != exit.Unavailable {
		t.Errorf("%q, %v", path, err)
	}
}

// A swap of the directory after it was opened changes nothing: all goes by the
// descriptor.
func TestADirectorySwappedAfterTheCheckIsNotFollowed(t *testing.T) {
	d := newDir(t)
	moved, bait := d.path+".moved", t.TempDir()
	must(t, os.Rename(d.path, moved))
	must(t, os.Symlink(bait, d.path))
	t.Cleanup(func() { os.RemoveAll(moved) })
	put(t, d, record())
	must(t, d.MakeLast("x", Memory{}))
	must(t, d.Stamp("x", Memory{}))
	if left, err := os.ReadDir(bait); err != nil || len(left) > 0 {
		t.Errorf("the bait holds %v (%v)", left, err)
	}
	for _, file := range []string{"lock.x", "last.x"} {
		if _, err := os.Stat(filepath.Join(moved, file)); err != nil {
			t.Error(err)
		}
	}
}

func TestNothingButAPlainFileOfTheOwnersIsOpened(t *testing.T) {
	plain := func(mode fs.FileMode) func(string) error {
		return func(path string) error {
			return errors.Join(os.WriteFile(path, nil, 0o600), os.Chmod(path, mode))
		}
	}
	for claim, plant := range map[string]func(path string) error{
		"link to a file":  func(path string) error { return os.Symlink("/etc/passwd", path) },
		"link to nowhere": func(path string) error { return os.Symlink("nowhere", path) },
		"link to itself":  func(path string) error { return os.Symlink(filepath.Base(path), path) },
		"fifo":            func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"directory":       func(path string) error { return os.Mkdir(path, 0o700) },
		"socket": func(path string) error {
			return syscall.Mknod(path, syscall.S_IFSOCK|0o600, 0)
		},
		"three links": func(path string) error {
			return errors.Join(os.WriteFile(path, nil, 0o600), os.Link(path, path+".b"), os.Link(path, path+".c"))
		},
		"writable by others": plain(0o602),
		"writable by group":  plain(0o660),
	} {
		t.Run(claim, func(t *testing.T) {
			d := enteredDir(t)
			must(t, plant(d.Path("lock.x")))
			must(t, plant(d.Path("last.x")))
			_, err := d.Active("x")
			refused(t, "Active", err)
			_, err = d.Last("x")
			refused(t, "Last", err)
			refused(t, "Stamp", d.Stamp("x", Memory{}))
			_, err = d.LastChanged("x")
			refused(t, "LastChanged", err)
		})
	}
}

// enteredDir is a lock directory that others may look into.
func enteredDir(t *testing.T) *Dir {
	t.Helper()
	path := t.TempDir()
	must(t, os.Chmod(path, 0o755))
	d, err := Open(path)
	must(t, err)
	t.Cleanup(func() { d.Close() })
	return d
}

func TestALaxModeIsHarmlessWhereNobodyElseGetsIn(t *testing.T) {
	d := newDir(t)
	must(t, os.WriteFile(d.Path("last.x"), nil, 0o600))
	must(t, os.Chmod(d.Path("last.x"), 0o666)) // : > last.x under umask 0
	must(t, d.Stamp("x", Memory{}))
}

func TestADeviceIsNotOpened(t *testing.T) {
	need.Root(t)
	d := newDir(t)
	if err := syscall.Mknod(d.Path("lock.x"), syscall.S_IFCHR|0o600, 1<<8|3); err != nil { // null(4)
		need.Skip(t, "devices cannot be made here: ", err)
	}
	_, err := d.Active("x")
	refused(t, "a device", err)
}

func TestAFileOfAnotherUserIsRefused(t *testing.T) {
	need.Root(t)
	d := newDir(t)
	put(t, d, record())
	must(t, os.Chown(d.Path("lock.x"), 4711, 4711))
	_, err := d.Active("x")
	refused(t, "a foreign lock", err)
}

func TestNamesAreThoseWithThePrefix(t *testing.T) {
	d := newDir(t)
	put(t, d, record())
	must(t, d.MakeLast("y", Memory{}))
	names, err := d.Names(ActivePrefix)
	if err != nil || !slices.Equal(names, []string{"x"}) {
		t.Errorf("%q, %v", names, err)
	}
}
