package process

// These tests run the real program on what an enemy or an accident could plant. The claims of the
// tests are in the table of attacks in test/README.md.

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/process"
	"adlock/lib/record"
	"adlock/test/support/helper"
	"adlock/test/support/must"
	"adlock/test/support/need"

	"golang.org/x/sys/unix"
)

// nobody is a user without rights to anything of root's.
const nobody = 65534

// public makes a directory that every user may enter, mode 0755.
func public(t *testing.T) string {
	t.Helper()
	path := must.Get(os.MkdirTemp("", "adlock-public-"))(t)
	t.Cleanup(func() { os.RemoveAll(path) })
	must.Do(t, os.Chmod(path, 0o755))
	return path
}

// program is a copy of the helper program with this mode, in a place where every user may run it.
func program(t *testing.T, mode os.FileMode) string {
	t.Helper()
	return copyOf(t, helper.Binary(t), mode)
}

func copyOf(t *testing.T, program string, mode os.FileMode) string {
	t.Helper()
	content := must.Get(os.ReadFile(program))(t)
	path := filepath.Join(public(t), filepath.Base(program))
	must.Do(t, need.WriteProgram(path, content, 0o700))
	must.Do(t, os.Chmod(path, mode)) // after the write, which removes set-user-ID
	return path
}

// setUserID is a copy of a program that runs as root, also if another user starts it.
func setUserID(t *testing.T, program string) string {
	t.Helper()
	var fs unix.Statfs_t
	path := copyOf(t, must.Get(exec.LookPath(program))(t), os.ModeSetuid|0o755)
	if must.Do(t, unix.Statfs(path, &fs)); fs.Flags&unix.ST_NOSUID != 0 {
		need.Skip(t, "no set-user-ID programs here")
	}
	return path
}

// open is an atom in a directory of root's that every user may read.
func open(t *testing.T) *helper.Atom {
	t.Helper()
	return &helper.Atom{Dir: public(t), Bin: helper.Binary(t)}
}

// victim starts a process of the user uid (0: this one) that no process has a reason to signal. It
// must live until the end of the test.
func victim(t *testing.T, uid int) process.Identity {
	t.Helper()
	p := helper.Command{Args: []string{"sleep", "1000"}, UID: uid}.Start(t)
	t.Cleanup(func() {
		p.Lives(t)
	})
	return identityOf(t, p.PID)
}

func identityOf(t *testing.T, pid int) process.Identity {
	t.Helper()
	return must.Get(process.Of(pid))(t)
}

// condemning is the content of a lock by which id has held the atom for a long time.
func condemning(id process.Identity) []byte {
	return record.Record{
		Owner: id, Token: record.NewToken(),
		Atom: atom.Atom{Program: "p", Host: "dax", Operator: "o", Operand: "x"},
	}.Bytes()
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

func TestAJobWithAProcessOfRootsIsStuckInADryRunToo(t *testing.T) {
	t.Parallel()
	need.Root(t)
	need.Tools(t, "setpriv")
	a := nobodys(t)
	sudo := setUserID(t, "setpriv")
	as := []string{"setpriv", "--reuid", strconv.Itoa(nobody), "--regid", strconv.Itoa(nobody), "--clear-groups"}
	job := helper.Command{Args: append(slices.Clone(as), "sh", "-c", "$run "+sudo+" --reuid 0 --regid 0 --clear-groups sleep 1000"), Env: a.Env()}.Start(t)
	helper.Eventually(t, "root's process runs", func() bool {
		return slices.ContainsFunc(helper.Session(job.PID), func(pid int) bool { return helper.Name(pid) == "sleep" })
	})
	for _, command := range []string{"$run --expire-after=0 echo ran", "$run --dry-run --expire-after=0 echo ran", a.Bin + ` stop --dry-run "$ADLOCK_DIR"/lock.*`, a.Bin + ` stop "$ADLOCK_DIR"/lock.*`} {
		got := a.Shell(t, command, as...)
		if got.Status != fault.StatusNotPermitted || !strings.Contains(got.Out+got.Err, " (sleep) of user 0: operation not permitted") ||
			!strings.Contains(command, "--dry-run") && !strings.Contains(got.Err, "; root may end it\n") {
			t.Errorf("%s: %+v", command, got)
		}
	}
	helper.KillSession(job.PID)
}
