package hostile

import (
	"os"
	"path/filepath"
	"testing"

	"adlock/test/helper"
	"adlock/test/need"
)

func TestADirectoryThatOthersMayWriteIsRefused(t *testing.T) {
	for _, mode := range []os.FileMode{0o777, 0o777 | os.ModeSticky, 0o770, 0o702} {
		a := helper.NewAtom(t)
		must(t, os.Chmod(a.Dir, mode))
		for verb, script := range verbs {
			t.Log(mode, verb)
			a.Shell(t, script).Refused(t, 77, "writable by others")
		}
		a.Shell(t, "$adlock status").Refused(t, 77, "writable by others")
	}
}

func TestWhatIsNoDirectoryIsNotTakenForOne(t *testing.T) {
	for claim, plant := range map[string]func(path string) error{
		"symlink":          func(path string) error { return os.Symlink(filepath.Dir(path), path) },
		"dangling symlink": func(path string) error { return os.Symlink("nowhere", path) },
		"file":             func(path string) error { return os.WriteFile(path, nil, 0o600) },
	} {
		t.Run(claim, func(t *testing.T) {
			a := helper.NewAtom(t)
			a.Dir = filepath.Join(a.Dir, "locks")
			must(t, plant(a.Dir))
			if got := a.Newcomer(t); got.Out != "" || got.Status != 77 && got.Status != 73 {
				t.Errorf("%+v", got)
			}
			if left, err := os.ReadDir(filepath.Dir(a.Dir)); err != nil || len(left) != 1 {
				t.Errorf("something was made: %v (%v)", left, err)
			}
		})
	}
}

// A newcomer waits while the directory is taken away under it and another put in
// its place, or a link to one, with a lock in it that condemns a victim. It goes
// on in the directory that it has checked.
func TestADirectorySwappedUnderANewcomerIsNotFollowed(t *testing.T) {
	for claim, swap := range map[string]func(path, bait string) error{
		"for a link":              func(path, bait string) error { return os.Symlink(bait, path) },
		"for another user's":      func(path, bait string) error { return os.Rename(bait, path) },
		"for nothing":             func(_, _ string) error { return nil },
		"for a file of that name": func(path, _ string) error { return os.WriteFile(path, nil, 0o600) },
	} {
		t.Run(claim, func(t *testing.T) {
			need.Root(t)
			above := helper.Dir(t)
			a := helper.NewAtom(t)
			a.Dir = filepath.Join(above, "locks")
			owner := a.Owner(t, "exec sleep 1000")
			bait := filepath.Join(t.TempDir(), "bait")
			must(t, os.Mkdir(bait, 0o755))
			planted := &helper.Atom{Dir: bait}
			must(t, os.WriteFile(planted.Lock(), condemning(victim(t, 0)), 0o600))
			must(t, os.Chown(bait, nobody, nobody))

			newcomer := helper.Command{Args: []string{"sh", "-c", "exec $run --wait 1h --expire-after never echo ran"}, Env: a.Env()}.Start(t)
			helper.Eventually(t, "the newcomer waits", func() bool { return watches(newcomer.PID) })
			moved := filepath.Join(above, "moved")
			must(t, os.Rename(a.Dir, moved))
			must(t, swap(a.Dir, bait))
			owner.Kill(t)
			if status := newcomer.Wait(t); status != 0 {
				t.Errorf("status %d: %s", status, newcomer.Output())
			}
			for _, place := range []string{bait, a.Dir} {
				if left, err := os.ReadDir(place); err == nil && len(left) != 1 {
					t.Errorf("%s holds %v", place, left)
				}
			}
		})
	}
}

// watches reports whether the process holds an inotify descriptor.
func watches(pid int) bool {
	links, _ := filepath.Glob("/proc/" + itoa(pid) + "/fd/*")
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && to == "anon_inode:inotify" {
			return true
		}
	}
	return false
}

func TestARecordElsewhereIsHeldToTheSameRules(t *testing.T) {
	a := helper.NewAtom(t)
	elsewhere := filepath.Join(t.TempDir(), "log")
	must(t, os.Mkdir(elsewhere, 0o700))
	must(t, os.Chmod(elsewhere, 0o777))
	got := a.Shell(t, "ADLOCK_LOGDIR="+elsewhere+" $run echo ran")
	if got.Status != 0 || got.Out != "ran\n" || got.Err == "" {
		t.Errorf("%+v", got)
	}
	if left, err := os.ReadDir(elsewhere); err != nil || len(left) > 0 {
		t.Errorf("something was recorded: %v (%v)", left, err)
	}
}
