package process

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"adlock/test/support/helper"
	"adlock/test/support/need"
)

func TestADirectoryThatOthersMayWriteIsRefused(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
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

// While a newcomer waits, the directory is replaced by another, or by a link to one, with a
// lock in it that names a victim. The newcomer goes on in the directory that it has checked.
func TestADirectorySwappedUnderANewcomerIsNotFollowed(t *testing.T) {
	t.Parallel()
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

// watches reports whether the process waits for a lock: it is in the line, or watches the directory.
func watches(pid int) bool {
	links, _ := filepath.Glob("/proc/" + itoa(pid) + "/fd/*")
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && (strings.Contains(to, "/line.") || to == "anon_inode:[signalfd]") {
			return true
		}
	}
	return false
}

func TestARunlogElsewhereIsHeldToTheSameRules(t *testing.T) {
	t.Parallel()
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

// A link in the middle of the path leads to another directory of root's.
func TestAnotherUsersLinkInThePathIsNotFollowed(t *testing.T) {
	t.Parallel()
	need.Root(t)
	home, shared := public(t), public(t)
	must(t, os.Chmod(shared, 0o777|os.ModeSticky)) // as /tmp
	must(t, os.Symlink(home, shared+"/link"))
	must(t, os.Lchown(shared+"/link", nobody, nobody))
	a := helper.NewAtom(t)
	a.Dir = filepath.Join(shared, "link", "locks")
	for verb, script := range verbs {
		t.Log(verb)
		a.Shell(t, script).Refused(t, 77, shared+"/link: is a link of another user's")
	}
	if left, err := os.ReadDir(home); err != nil || len(left) > 0 {
		t.Errorf("something was made: %v (%v)", left, err)
	}
	must(t, os.Lchown(shared+"/link", 0, 0))
	a.Newcomer(t).Ran(t)
}

// The link leads to a lock directory of root's, with everything in place that is written to one.
func TestARefusalIsNotWrittenThroughAnotherUsersLink(t *testing.T) {
	t.Parallel()
	need.Root(t)
	home, shared := public(t), public(t)
	must(t, os.Chmod(shared, 0o777|os.ModeSticky)) // as /tmp
	must(t, os.Symlink(home, shared+"/link"))
	must(t, os.Lchown(shared+"/link", nobody, nobody))
	for name, in := range map[string]string{"ADLOCK_DIR": "link", "ADLOCK_LOGDIR": "log"} {
		locks := filepath.Join(home, in)
		must(t, os.Mkdir(locks, 0o700))
		a := helper.NewAtom(t)
		through := " ADLOCK_HOOK=true " + name + "=" + filepath.Join(shared, "link", in) + " "
		for verb, script := range verbs {
			t.Log(name, verb)
			a.Shell(t, "export"+through+"; "+script)
		}
		a.Shell(t, "export"+through+"; $adlock hold x <<. \nacquire\n.")
		if left, err := os.ReadDir(locks); err != nil || len(left) > 0 {
			t.Errorf("%s: something was made: %v (%v)", name, left, err)
		}
	}
}

// In the namespace, root's directories seem to belong to uid 65534.
func TestInAUserNamespaceRootsDirectoriesMayBeAbove(t *testing.T) {
	t.Parallel()
	need.Root(t)
	const user = 4711
	a := &helper.Atom{Dir: filepath.Join(public(t), "locks"), Bin: program(t, 0o755), UID: user}
	must(t, os.Mkdir(a.Dir, 0o700))
	must(t, os.Chown(a.Dir, user, user))
	mapped := []string{"unshare", "--user", "--map-root-user"}
	if r := (helper.Command{Args: append(mapped, "true"), UID: user}).Run(t); r.Status != 0 {
		need.Skip(t, r.Err)
	}
	a.Shell(t, "$run echo ran", mapped...).Ran(t)
	must(t, os.Chown(filepath.Dir(a.Dir), user+1, 0))
	a.Shell(t, "$run echo ran").Refused(t, 77, "is above the lock directory, and another user's")
}

func TestTheUmaskDoesNotChangeAccess(t *testing.T) {
	t.Parallel()
	a := &helper.Atom{Dir: filepath.Join(public(t), "above", "locks"), Bin: program(t, 0o755)}
	if os.Geteuid() == 0 { // root enters anyhow
		a.UID = nobody
		must(t, os.Chown(filepath.Dir(filepath.Dir(a.Dir)), nobody, nobody))
	}
	a.Shell(t, "umask 0177; $run echo ran").Ran(t)
	for path, want := range map[string]os.FileMode{filepath.Dir(a.Dir): 0o700, a.Dir: 0o700, a.Last(): 0o600, filepath.Join(a.Dir, "program.dax.runlog"): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v (%v), want %v", path, info.Mode(), err, want)
		}
	}
}
