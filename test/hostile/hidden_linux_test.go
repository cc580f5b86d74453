package hostile

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"adlock/test/helper"
	"adlock/test/need"
)

// hiding runs what follows as nobody where /proc shows nobody what belongs to
// others.
var hiding = []string{"unshare", "--mount", "sh", "-c",
	`mount -t proc -o hidepid=2 proc /proc && exec setpriv --reuid ` + strconv.Itoa(nobody) + ` --regid ` + strconv.Itoa(nobody) + ` --clear-groups "$@"`, "sh"}

func needHiding(t *testing.T) {
	t.Helper()
	need.Root(t)
	need.Tools(t, "setpriv")
	need.Namespaces(t, "--mount")
}

// nobodys is an atom in a directory of nobody's.
func nobodys(t *testing.T) *helper.Atom {
	t.Helper()
	dir := filepath.Join(public(t), "locks")
	must(t, os.Mkdir(dir, 0o700))
	must(t, os.Chown(dir, nobody, nobody))
	return &helper.Atom{Dir: dir, Bin: program(t, 0o755)}
}

// What sudo starts belongs to root: it cannot be seen, may not be signalled, and
// is of the job nevertheless.
func TestAHiddenMemberOfAnotherUserHolds(t *testing.T) {
	needHiding(t)
	a := nobodys(t)
	file := filepath.Join(t.TempDir(), "child")
	// It is started by root, who then becomes the owner.
	becoming := []string{"sh", "-c", `sleep 1000 & echo $! >` + file + `; exec setpriv --reuid 65534 --regid 65534 --clear-groups "$@"`, "sh"}
	script := a.Owner(t, "sleep 1000; :", becoming...)
	var child int
	helper.Eventually(t, "the child is there", func() bool {
		text, err := os.ReadFile(file)
		if err == nil {
			child, err = strconv.Atoi(strings.TrimSpace(string(text)))
		}
		return err == nil
	})
	newcomer := func(options string) helper.Result { return a.Shell(t, "$run "+options+" echo ran", hiding...) }
	newcomer("--expire-after=0").Refused(t, 77, "stuck: ")
	if script.Ended() || strings.Contains(a.Runlog(), "event=signal") {
		t.Errorf("somebody was signalled:\n%s", a.Runlog())
	}
	script.Kill(t)
	newcomer("").Denied(t)
	must(t, syscall.Kill(child, syscall.SIGKILL))
	helper.Eventually(t, "the whole job is dead", func() bool { return len(helper.Session(script.PID)) == 0 })
	newcomer("").Ran(t)
}

func TestEnforceDoesNotTakeTheHiddenForDead(t *testing.T) {
	needHiding(t)
	a := nobodys(t)
	sleep := copyOf(t, "/bin/sleep", 0o4755)
	var fs unix.Statfs_t
	must(t, unix.Statfs(sleep, &fs))
	if fs.Flags&unix.ST_NOSUID != 0 {
		need.Skip(t, "no set-user-ID programs here")
	}
	for claim, job := range map[string]string{"the command": sleep + " 1000", "a child": "sh -c '" + sleep + " 1000; :'"} {
		t.Run(claim, func(t *testing.T) {
			script := helper.Command{
				Args: append(append([]string{}, hiding...), "sh", "-c", "$run --enforce --expire-after=1s "+job), Env: a.Env(),
			}.Start(t)
			if status := script.Wait(t); status != 77 {
				t.Errorf("status %d\n%s", status, script.Output())
			}
			a.Shell(t, "$run echo ran", hiding...).Denied(t)
			helper.KillSession(script.PID)
			helper.Eventually(t, "the whole job is dead", func() bool { return len(helper.Session(script.PID)) == 0 })
			a.Shell(t, "$run echo ran", hiding...).Ran(t)
		})
	}
}
