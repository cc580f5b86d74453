package process

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"adlock/test/support/helper"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

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

// The link leads to a lock directory of root's, with everything in place that is written to one.
func TestNothingIsWrittenThroughAnotherUsersLink(t *testing.T) {
	t.Parallel()
	need.Root(t)
	home, shared := public(t), public(t)
	must.Do(t, os.Chmod(shared, 0o777|os.ModeSticky)) // as /tmp
	must.Do(t, os.Symlink(home, shared+"/link"))
	must.Do(t, os.Lchown(shared+"/link", nobody, nobody))
	for name, in := range map[string]string{"ADLOCK_DIR": "link", "ADLOCK_LOGDIR": "log"} {
		locks := filepath.Join(home, in)
		must.Do(t, os.Mkdir(locks, 0o700))
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
func TestALockDirectoryBelowRootsIsAcceptedInAUserNamespace(t *testing.T) {
	t.Parallel()
	need.Root(t)
	const user = 4711
	a := &helper.Atom{Dir: filepath.Join(public(t), "locks"), Bin: program(t, 0o755), UID: user}
	must.Do(t, os.Mkdir(a.Dir, 0o700))
	must.Do(t, os.Chown(a.Dir, user, user))
	mapped := []string{"unshare", "--user", "--map-root-user"}
	if r := (helper.Command{Args: append(mapped, "true"), UID: user}).Run(t); r.Status != 0 {
		need.Skip(t, r.Err)
	}
	a.Shell(t, "$run echo ran", mapped...).Ran(t)
	must.Do(t, os.Chown(filepath.Dir(a.Dir), user+1, 0))
	a.Shell(t, "$run echo ran").Refused(t, 77, "is above the lock directory, and another user's")
}
