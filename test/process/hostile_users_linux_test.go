package process

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"adlock/test/support/helper"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

func itoa(n int) string { return strconv.Itoa(n) }

func TestALockPlantedForRootEndsNoProcess(t *testing.T) {
	need.Root(t)
	for claim, plant := range map[string]func(a *helper.Atom) error{
		"in the planter's directory": func(a *helper.Atom) error { return os.Chown(a.Dir, nobody, nobody) },
		"in a sticky directory":      func(a *helper.Atom) error { return os.Chmod(a.Dir, 0o777|os.ModeSticky) },
		"in a group's directory":     func(a *helper.Atom) error { return os.Chmod(a.Dir, 0o775) },
		"a file of the planter's":    func(a *helper.Atom) error { return os.Chown(a.Lock(), nobody, nobody) },
		"in a file open to all":      func(a *helper.Atom) error { return os.Chmod(a.Lock(), 0o666) },
	} {
		t.Run(claim, func(t *testing.T) {
			a := open(t)
			must.Do(t, os.WriteFile(a.Lock(), condemning(victim(t, 0)), 0o600))
			must.Do(t, plant(a))
			a.Newcomer(t, "--expire-after=0").Refused(t, 77, a.Dir)
			a.Shell(t, verbs["kill-carefully"]).Refused(t, 77, a.Dir)
			a.Shell(t, verbs["clear"]).Refused(t, 77, a.Dir)
			a.Shell(t, verbs["stop"]).Refused(t, 77, a.Dir)
		})
	}
}

func TestAUsersLockEndsNoOtherUsersProcess(t *testing.T) {
	need.Root(t)
	a := &helper.Atom{Dir: public(t), Bin: program(t, 0o755), UID: nobody}
	must.Do(t, os.WriteFile(a.Lock(), condemning(victim(t, 0)), 0o600))
	must.Do(t, os.Chown(a.Lock(), nobody, nobody))
	must.Do(t, os.Chown(a.Dir, nobody, nobody))
	a.Newcomer(t, "--expire-after=0").Refused(t, 77, "stuck: ")
}

// A mistake, or a hole elsewhere, has put a user's pid into a lock of root's.
func TestAPidInRootsLockEndsNoOtherUsersProcess(t *testing.T) {
	need.Root(t)
	a := open(t)
	must.Do(t, os.WriteFile(a.Lock(), condemning(victim(t, nobody)), 0o600))
	a.Newcomer(t, "--expire-after=0").Refused(t, 77, "belongs to another user than the lock file")
	a.Shell(t, verbs["kill-carefully"]).Refused(t, 77, "belongs to another user than the lock file")
}

// logrotate's CVE-2022-1348: a user who may read a file may flock it.
func TestOtherUsersCannotFlockLocksLastLocksOrRunlogs(t *testing.T) {
	need.Root(t)
	need.Tools(t, "flock")
	a := open(t)
	defer syscall.Umask(syscall.Umask(0)) // the newcomer's too
	owner := a.Owner(t, "exec sleep 1000")
	for _, path := range []string{a.Lock(), a.Last(), filepath.Join(a.Dir, "program.dax.runlog")} {
		if got := (helper.Command{Args: []string{"flock", "--nonblock", path, "echo", "ran"}, UID: nobody}).Run(t); got.Out != "" {
			t.Errorf("%s can be locked: %+v", path, got)
		}
	}
	owner.Kill(t)
	a.Newcomer(t).Ran(t)
}

func TestAFlockOfAnotherUserDoesNotBlockANewcomer(t *testing.T) {
	need.Root(t)
	need.Tools(t, "flock")
	a := open(t)
	a.Newcomer(t).Ran(t)
	for _, path := range []string{a.Last(), filepath.Join(a.Dir, "program.dax.runlog")} {
		must.Do(t, os.Chmod(path, 0o644))
		marker := "holding " + path
		enemy := helper.Command{Args: []string{"flock", path, "sh", "-c", "echo holding " + path + "; exec sleep 1000"}, UID: nobody}.Start(t)
		helper.Eventually(t, marker, func() bool { return strings.Contains(enemy.Output(), marker) })
	}
	a.Newcomer(t, "--if-elapsed=1s", "--wait=10m", "--wait-elapsed").Ran(t)
	owner := a.Owner(t, "exec sleep 1000")
	// The newcomer waits a limited time to write each line of the runlog, and holds the guard of
	// the owner's lock meanwhile.
	helper.Eventually(t, "the owner is replaced", func() bool { return a.Newcomer(t, "--expire-after=0").Status == 0 })
	owner.Wait(t)
}

// A user runs a set-user-ID copy; the environment asks for locks in a directory of root's, and
// the arguments for the gate's verb.
func TestASetUserIDProgramRefusesToRun(t *testing.T) {
	need.Root(t)
	for claim, mode := range map[string]os.FileMode{"set-user-ID": 0o755 | os.ModeSetuid, "set-group-ID": 0o755 | os.ModeSetgid} {
		t.Run(claim, func(t *testing.T) {
			home := public(t)
			must.Do(t, os.Chmod(home, 0o777))
			a := &helper.Atom{Dir: filepath.Join(home, "locks"), Bin: program(t, mode), UID: nobody}
			var fs unix.Statfs_t
			must.Do(t, unix.Statfs(a.Bin, &fs))
			if fs.Flags&unix.ST_NOSUID != 0 {
				need.Skip(t, "this file system knows no set-user-ID")
			}
			for verb, script := range verbs {
				t.Log(verb)
				a.Shell(t, script).Refused(t, 77, "set-user-ID")
			}
			for _, args := range [][]string{{"status"}, {"stat-age", "/etc/passwd"}, {"kill-carefully", itoa(victim(t, 0).PID)}, {}} {
				helper.Command{Args: append([]string{a.Bin}, args...), UID: nobody, Env: []string{"HOME=" + home}}.Run(t).Refused(t, 77, "set-user-ID")
			}
			need.Tools(t, "bash")
			gate := `exec 3<<<g; exec -a "adlock: gate" "$adlock" 3 /usr/bin/id id`
			helper.Command{Args: []string{"bash", "-c", gate}, UID: nobody, Env: a.Env()}.Run(t).Refused(t, 77, "set-user-ID")
			if left, err := os.ReadDir(home); err != nil || len(left) > 0 {
				t.Errorf("something was made: %v (%v)", left, err)
			}
		})
	}
}

// Two users, one file in a sticky directory, as /tmp: whichever makes it.
func TestTwoUsersCanFlockAFileThatBothMayRead(t *testing.T) {
	need.Root(t)
	bin := program(t, 0o755)
	for claim, c := range map[string]struct {
		first  string // what the first user does before its run
		file   string
		status int // of the second user's run
	}{
		"made by the first run":            {"umask 022", "file", 0},
		"made by the first run, umask 077": {"umask 077", "file", 77},
		"made before":                      {": >file", "file", 0},
		"made before, for one user":        {"umask 077; : >file", "file", 77},
		"the directory":                    {":", ".", 0},
		"a link":                           {": >file; ln -s file link", "link", 0},
	} {
		for _, users := range [][2]int{{0, nobody}, {nobody, 60001}, {nobody, 0}} {
			dir := public(t)
			must.Do(t, os.Chmod(dir, os.ModeSticky|0o777))
			run := func(uid int, before string) helper.Result {
				locks := filepath.Join(public(t), "locks")
				must.Do(t, os.Mkdir(locks, 0o700))
				must.Do(t, os.Chown(locks, uid, uid))
				script := before + "; exec " + bin + " run --name a --flock " + c.file + " true"
				return helper.Command{UID: uid, Dir: dir, Args: []string{"sh", "-c", script}, Env: []string{"ADLOCK_DIR=" + locks}}.Run(t)
			}
			run(users[0], c.first).Is(t, 0, "…", "")
			want := c.status
			if users[1] == 0 {
				want = 0
			}
			if r := run(users[1], ":"); r.Status != want || want != 0 && !strings.Contains(r.Err, "chmod a+r '") {
				t.Errorf("%s by %v: the second: %+v", claim, users, r)
			}
		}
	}
}
