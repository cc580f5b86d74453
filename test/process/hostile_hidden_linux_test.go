package process

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"adlock/test/support/actor"
	"adlock/test/support/helper"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

// hiding runs a command as an unprivileged user, with a /proc that hides the processes of other users.
var hiding = []string{"unshare", "--mount", "sh", "-c",
	`mount -t proc -o hidepid=2 proc /proc && exec setpriv --reuid ` + strconv.Itoa(nobody) + ` --regid ` + strconv.Itoa(nobody) + ` --clear-groups "$@"`, "sh"}

func needHiding(t *testing.T) {
	t.Helper()
	need.Root(t)
	need.Tools(t, "setpriv")
	need.Namespaces(t, "--mount")
}

// nobodys is an atom in a directory of an unprivileged user.
func nobodys(t *testing.T) *helper.Atom {
	t.Helper()
	dir := filepath.Join(public(t), "locks")
	must.Do(t, os.Mkdir(dir, 0o700))
	must.Do(t, os.Chown(dir, nobody, nobody))
	return &helper.Atom{Dir: dir, Bin: program(t, 0o755)}
}

// A process that sudo starts belongs to root. Its unprivileged user cannot see or signal it, but it is part of the job.
func TestAHiddenProcessOfAnotherUserKeepsTheAtomBusy(t *testing.T) {
	t.Parallel()
	needHiding(t)
	a := nobodys(t)
	file := filepath.Join(t.TempDir(), "child")
	// Root starts the child, and then becomes the owner's user.
	becoming := []string{"sh", "-c", `sleep 1000 & echo $! >` + file + `; exec setpriv --reuid 65534 --regid 65534 --clear-groups "$@"`, "sh"}
	script := a.Owner(t, "exec sleep 1000", becoming...)
	child := actor.PIDIn(t, file)
	newcomer := func(options string) helper.Result { return a.Shell(t, "$run "+options+" echo ran", hiding...) }
	newcomer("--expire-after=0").Refused(t, 77, "stuck: ")
	mustHaveSignalledNone(t, a, script)
	script.Kill(t)
	newcomer("").Denied(t)
	must.Do(t, syscall.Kill(child, syscall.SIGKILL))
	// A hidden zombie looks like a live process: its parent must have reaped it.
	helper.Eventually(t, "the child is gone", func() bool { return syscall.Kill(child, 0) == syscall.ESRCH })
	newcomer("").Ran(t)
}

func TestEnforceDoesNotTakeHiddenProcessesForDead(t *testing.T) {
	t.Parallel()
	needHiding(t)
	a := nobodys(t)
	root := setUserID(t, "setpriv") + " --reuid 0 --regid 0 --clear-groups sleep 1000"
	for claim, job := range map[string]string{"the command": root, "a child": "sh -c '" + root + "; :'"} {
		t.Run(claim, func(t *testing.T) {
			over := a.Gated(t)
			a.Bin = copyOf(t, a.Bin, 0o755)
			script := helper.Command{
				Args: append(append([]string{}, hiding...), "sh", "-c", "$run --enforce --expire-after=1h "+job), Env: a.Env(),
			}.Start(t)
			helper.Eventually(t, "root's process runs", func() bool {
				return slices.ContainsFunc(helper.Session(script.PID), func(pid int) bool { return helper.Name(pid) == "sleep" })
			})
			over()
			helper.Eventually(t, "it is stuck", func() bool { return strings.Contains(script.Output(), ": stuck: process ") })
			a.Shell(t, "$run echo ran", hiding...).Denied(t)
			script.Lives(t)
			job := helper.Session(script.PID)
			helper.KillSession(script.PID)
			helper.Eventually(t, "the whole job is gone", func() bool {
				return !slices.ContainsFunc(job, func(pid int) bool { return syscall.Kill(pid, 0) == nil })
			})
			a.Shell(t, "$run echo ran", hiding...).Ran(t)
		})
	}
}

// A set-user-ID command may be signalled by the user that started it, but hidepid hides it from that user.
func TestAHUPReachesASetUserIDCommandThatProcHides(t *testing.T) {
	t.Parallel()
	needHiding(t)
	a := nobodys(t)
	got := a.Shell(t, `$run `+setUserID(t, "sleep")+` 20 &
		until grep -q ^command= "$ADLOCK_DIR"/lock.*; do sleep 0.01; done 2>/dev/null
		kill -HUP $!; wait $!`, hiding...)
	if got.Status != 128+int(syscall.SIGHUP) {
		t.Errorf("%+v", got)
	}
}
