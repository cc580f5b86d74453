package lockfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/record"
	"adlock/lib/way"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

func TestALockDirectoryThatIsALinkIsRefused(t *testing.T) {
	d := newDir(t)
	link := filepath.Join(t.TempDir(), "link")
	must.Do(t, os.Symlink(d.path, link))
	for _, path := range []string{link, link + "/", link + "/."} {
		_, err := Open(path)
		refused(t, path, err)
	}
}

func TestAMissingDirectoryIsMadePrivateUnderAnyUmask(t *testing.T) {
	for _, umask := range []int{0, 0o022, 0o177, 0o777} {
		above := t.TempDir()
		path := filepath.Join(above, "a", "b")
		if _, err := Open(path); !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("Open made it, or: %v", err)
		}
		before := syscall.Umask(umask)
		d, err := Create(path)
		if after := syscall.Umask(before); after != umask {
			t.Errorf("the umask was %03o and is %03o", umask, after)
		}
		must.Do(t, err)
		must.Do(t, d.Close())
		for _, made := range []string{path, filepath.Dir(path)} {
			if info := must.Get(os.Stat(made))(t); info.Mode().Perm() != 0o700 {
				t.Errorf("umask %03o: %s has mode %v", umask, made, info.Mode())
			}
		}
	}
}

// through makes above/a/b/locks, private to this user.
func through(t *testing.T) (above, path string) {
	t.Helper()
	above = t.TempDir()
	must.Do(t, os.Chmod(above, 0o700))
	path = filepath.Join(above, "a", "b", "locks")
	must.Do(t, os.MkdirAll(path, 0o700))
	return above, path
}

func TestAPathThatAnotherUserCouldRedirectIsRefused(t *testing.T) {
	need.Root(t)
	const stranger = 4711
	for claim, change := range map[string]func(above string) error{
		"a stranger's directory":  func(above string) error { return os.Chown(above+"/a", stranger, 0) },
		"a directory open to all": func(above string) error { return os.Chmod(above+"/a", 0o757) },
		"a strange group's directory": func(above string) error {
			return errors.Join(os.Chown(above+"/a", 0, stranger), os.Chmod(above+"/a", 0o775))
		},
		"a stranger's directory behind an absolute link": func(above string) error {
			return errors.Join(relink(above, above+"/a/b2", 0), os.Chown(above+"/a/b2", stranger, 0))
		},
		"a stranger's link":          func(above string) error { return relink(above, "b2", stranger) },
		"a stranger's absolute link": func(above string) error { return relink(above, above+"/a/b2", stranger) },
		"a link out of a stranger's directory": func(above string) error {
			return errors.Join(os.Mkdir(above+"/a/his", 0o755), relink(above, "his/../b2", 0), os.Chown(above+"/a/his", stranger, 0))
		},
	} {
		above, path := through(t)
		must.Do(t, change(above))
		_, err := Open(path)
		refused(t, claim, err)
		_, err = Create(filepath.Join(path, "c", "d"))
		refused(t, claim, err)
		if _, err := os.Stat(filepath.Join(path, "c")); err == nil {
			t.Errorf("%s: something was made there", claim)
		}
	}
}

func TestAPathMayContainAsManyLinksAsTheKernelFollows(t *testing.T) {
	_, path := through(t)
	links := t.TempDir()
	must.Do(t, os.Chmod(links, 0o700))
	target := filepath.Dir(path)
	for n := range way.MostLinks + 1 {
		link := filepath.Join(links, strconv.Itoa(n))
		must.Do(t, os.Symlink(target, link))
		target = link
	}
	last := filepath.Join(links, strconv.Itoa(way.MostLinks-1))
	d := must.Get(Open(last + "/locks"))(t)
	must.Do(t, d.Close())
	if _, err := Open(target + "/locks"); !errors.Is(err, unix.ELOOP) {
		t.Error("one more was followed, or: ", err)
	}
}

// relink puts a link in the place of a/b, and renames the directory to a/b2.
func relink(above, target string, owner int) error {
	return errors.Join(os.Rename(above+"/a/b", above+"/a/b2"), os.Symlink(target, above+"/a/b"), os.Lchown(above+"/a/b", owner, -1))
}

func TestAPathMayContainTheUsersLinksAndStickyDirectories(t *testing.T) {
	links := func(target func(above string) string) func(string) error {
		return func(above string) error { return relink(above, target(above), os.Geteuid()) }
	}
	for claim, change := range map[string]func(above string) error{
		"a link":                           links(func(string) string { return "b2" }),
		"an absolute link":                 links(func(above string) string { return above + "/a/b2" }),
		"a link up and down":               links(func(above string) string { return "../../" + filepath.Base(above) + "/a/./b2" }),
		"a sticky directory":               func(above string) error { return os.Chmod(above+"/a", 0o777|fs.ModeSticky) },
		"the user's own group's directory": func(above string) error { return os.Chmod(above+"/a", 0o775) },
		"a directory that cannot be read":  func(above string) error { return os.Chmod(above+"/a", 0o711) },
		"a strange group's directory that it cannot write to": func(above string) error {
			if os.Geteuid() != 0 {
				return nil
			}
			return errors.Join(os.Chown(above+"/a", 0, 4711), os.Chmod(above+"/a", 0o755))
		},
		"an ordinary path": func(string) error { return nil },
	} {
		above, path := through(t)
		must.Do(t, change(above))
		d, err := Open(path)
		if err != nil {
			t.Errorf("%s: %v", claim, err)
			continue
		}
		must.Do(t, d.Close())
	}
}

func TestARelativePathStartsAtTheWorkingDirectory(t *testing.T) {
	above, path := through(t)
	t.Chdir(filepath.Join(above, "a"))
	for _, relative := range []string{"b/locks", "../a/b/locks", "./b/../b/locks/"} {
		d := must.Get(Open(relative))(t)
		must.Do(t, d.Close())
	}
	must.Do(t, os.Chmod(".", 0o777))
	_, err := Open("b/locks")
	refused(t, path, err)
}

// Swapping the directory after it was opened changes nothing: locks are reached through the descriptor.
func TestSwappingTheOpenedDirectoryRedirectsNoLock(t *testing.T) {
	d := newDir(t)
	moved, bait := d.path+".moved", t.TempDir()
	must.Do(t, os.Rename(d.path, moved))
	must.Do(t, os.Symlink(bait, d.path))
	t.Cleanup(func() { os.RemoveAll(moved) })
	put(t, d, fullRecord())
	must.Do(t, d.MakeLast("x", record.Memory{}))
	must.Do(t, d.Stamp("x", record.Memory{}))
	if left, err := os.ReadDir(bait); err != nil || len(left) > 0 {
		t.Errorf("the bait holds %v (%v)", left, err)
	}
	for _, file := range []string{"lock.x", "last.x"} {
		must.Get(os.Stat(filepath.Join(moved, file)))(t)
	}
}

func TestOnlyRegularFilesWithAtMostTwoLinksAreOpened(t *testing.T) {
	for claim, plant := range map[string]func(path string) error{
		"link to a file":  func(path string) error { return os.Symlink("/etc/passwd", path) },
		"link to nowhere": func(path string) error { return os.Symlink("nowhere", path) },
		"link to itself":  func(path string) error { return os.Symlink(filepath.Base(path), path) },
		"fifo":            func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"directory":       func(path string) error { return os.Mkdir(path, 0o700) },
		"socket":          func(path string) error { return syscall.Mknod(path, syscall.S_IFSOCK|0o600, 0) },
		"three links": func(path string) error {
			return errors.Join(os.WriteFile(path, nil, 0o600), os.Link(path, path+".b"), os.Link(path, path+".c"))
		},
	} {
		d := enteredDir(t)
		must.Do(t, plant(d.Path("lock.x")))
		must.Do(t, plant(d.Path("last.x")))
		_, err := d.Active("x")
		refused(t, claim+", Active", err)
		_, err = d.Last("x")
		refused(t, claim+", Last", err)
		refused(t, claim+", Stamp", d.Stamp("x", record.Memory{}))
		_, err = d.LastChanged("x")
		refused(t, claim+", LastChanged", err)
	}
	d := enteredDir(t)
	put(t, d, fullRecord())
	must.Do(t, os.Link(d.Path("lock.x"), d.Path("temp.x"))) // two links, for a moment
	active(t, d)
}

// enteredDir is a lock directory that other users may enter.
func enteredDir(t *testing.T) *Dir {
	t.Helper()
	path := t.TempDir()
	must.Do(t, os.Chmod(path, 0o755))
	d := must.Get(Open(path))(t)
	t.Cleanup(func() { d.Close() })
	return d
}

// Any user may have written a lock's content, and chmod does not undo that; a last lock cannot do harm.
func TestAdviceIsToRemoveAWritableLockAndChmodALastLock(t *testing.T) {
	d := enteredDir(t)
	for file, remedy := range map[string]string{
		"lock.p.h.o.x": "is writable by others (another user may have written it: check that the job does not run, then rm '" + d.Path("lock.p.h.o.x") + "')",
		"last.p.h.o.x": "is writable by others (chmod go-w '" + d.Path("last.p.h.o.x") + "')",
	} {
		must.Do(t, os.WriteFile(d.Path(file), nil, 0o600))
		must.Do(t, os.Chmod(d.Path(file), 0o660))
		if _, err := d.openFile(file, syscall.O_RDONLY); err == nil || err.Error() != d.Path(file)+": "+remedy {
			t.Errorf("got %v", err)
		}
	}
}

func TestADeviceInPlaceOfALockIsNotOpened(t *testing.T) {
	need.Root(t)
	d := newDir(t)
	if err := syscall.Mknod(d.Path("lock.x"), syscall.S_IFCHR|0o600, 1<<8|3); err != nil { // null(4)
		need.Skip(t, "devices cannot be made here: ", err)
	}
	_, err := d.Active("x")
	refused(t, "a device", err)
}

func TestFilesListsOnlyTheKindsAskedFor(t *testing.T) {
	d := newDir(t)
	for _, name := range []string{"lock.p.h.o.x", "lock.p.h.slot-1", "last.p.h.o.x", "read.p.h.o.x", "lock.x", "last.notes", "program.h.runlog"} {
		must.Do(t, os.WriteFile(d.Path(name), nil, 0o600))
	}
	for _, c := range []struct {
		kinds []atom.Kind
		want  []string
	}{
		{nil, nil},
		{[]atom.Kind{atom.ReaderLock}, nil},
		{[]atom.Kind{atom.ActiveLock}, []string{"lock.p.h.o.x", "lock.p.h.slot-1"}},
		{[]atom.Kind{atom.LastLock, atom.ReadersMark}, []string{"last.p.h.o.x", "read.p.h.o.x"}},
	} {
		files := must.Get(d.Files(c.kinds...))(t)
		var got []string
		for _, f := range files {
			got = append(got, f.String())
		}
		slices.Sort(got)
		if !slices.Equal(got, c.want) {
			t.Errorf("of %v: %q", c.kinds, got)
		}
	}
}

func TestOpenToTryOpensTheNearestParentAndMakesNoDirectory(t *testing.T) {
	above := newDir(t).path
	for _, path := range []string{above + "/a", above + "/a/b/c", above + "/a/../b"} {
		tried, there, err := OpenToTry(path)
		must.Do(t, err)
		if there || tried.path != above {
			t.Errorf("%s: %s, there: %v", path, tried.path, there)
		}
		temp := must.Get(tried.TempFile(nil))(t)
		temp.Discard()
		must.Do(t, tried.Close())
	}
	if left, err := os.ReadDir(above); len(left) != 0 || err != nil {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestAPathWhereNoDirectoryCanBeMadeIsRefused(t *testing.T) {
	above := newDir(t).path
	dangling := filepath.Join(above, "link")
	must.Do(t, os.Symlink("/nowhere/at/all", dangling))
	must.Do(t, os.WriteFile(above+"/file", nil, 0o600))
	t.Chdir(t.TempDir())
	for path, why := range map[string]string{"not/there": "no such", above + "/file": "not a directory", above + "/file/a": "not a directory", dangling + "/a": ""} {
		_, _, err := OpenToTry(path)
		if path != dangling+"/a" && fault.KindOf(err) == fault.CannotCreate {
			_, err = Create(path)
		}
		if fault.KindOf(err) != fault.CannotCreate || !strings.HasPrefix(err.Error(), path+": "+why) {
			t.Errorf("got %v", err)
		}
	}
	must.Do(t, os.Chmod(above, 0o777))
	_, _, err := OpenToTry(above + "/a")
	refused(t, "below what others may write to", err)
}
