package cli

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/sysfile"
	"adlock/test/support/helper"
	"adlock/test/support/need"
)

// In these tests the lock directory cannot be used. They run without and with --on-trouble run.

// small is an atom whose lock directory is a small file system of its own.
func small(t *testing.T) *helper.Atom {
	t.Helper()
	need.Root(t)
	a := helper.NewAtom(t)
	if err := unix.Mount("trouble", a.Dir, "tmpfs", 0, "size=64k,mode=0700"); err != nil {
		need.Skip(t, "cannot mount a tmpfs:", err)
	}
	dir := a.Dir
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	return a
}

// alone excludes another run of these tests: unlocked runs of one user and NAME exclude each
// other, in whatever lock directory. It takes a socket name and not a file, as a container on this
// machine may share the socket names and have a /tmp of its own.
func alone(t *testing.T) {
	t.Helper()
	helper.Within(t, 10*time.Minute, "no other run of these tests is under way", func() bool {
		fd, _, err := sysfile.TakeAbstract("adlock-test-trouble-" + strconv.Itoa(os.Geteuid()))
		if err == unix.EADDRINUSE || err == sysfile.ErrStranger {
			return false
		}
		must(t, err)
		t.Cleanup(func() { unix.Close(fd) })
		return true
	})
}

// fill makes the atom's last lock, and fills the file system of its lock directory.
func fill(t *testing.T, a *helper.Atom) {
	t.Helper()
	must(t, os.WriteFile(a.Last(), nil, 0o600))
	must(t, os.Chtimes(a.Last(), time.Unix(0, 0), time.Unix(0, 0)))
	if err := os.WriteFile(filepath.Join(a.Dir, "filler"), make([]byte, 1<<20), 0o600); err == nil {
		t.Fatal("the file system takes a megabyte")
	}
}

// troubles are unusable lock directories, each with its status and message.
var troubles = map[string]struct {
	make   func(t *testing.T) *helper.Atom
	status int
	said   string
}{
	"full": {func(t *testing.T) *helper.Atom {
		a := small(t)
		fill(t, a)
		return a
	}, 74, "{dir}: no space left on device"},
	"read-only": {func(t *testing.T) *helper.Atom {
		a := small(t)
		must(t, os.WriteFile(a.Last(), nil, 0o600))
		must(t, unix.Mount("", a.Dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
		return a
	}, 73, "{dir}: read-only file system"},
	"missing": {func(t *testing.T) *helper.Atom {
		a := small(t)
		must(t, unix.Mount("", a.Dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
		a.Dir += "/locks"
		return a
	}, 73, "{dir}: mkdir: read-only file system (name one of your own: ADLOCK_DIR)"},
	"another's": {func(t *testing.T) *helper.Atom {
		need.Root(t)
		a := helper.NewAtom(t)
		must(t, os.Chown(a.Dir, 4711, 4711))
		return a
	}, 77, "{dir}: lock directory belongs to another user (run as that user, or name one of your own: ADLOCK_DIR)"},
}

// hear gives the atom's newcomers a hook, and a runlog in another directory.
func hear(t *testing.T, a *helper.Atom) (dir string) {
	t.Helper()
	dir = helper.Dir(t)
	a.More = append(a.More, "ADLOCK_LOGDIR="+dir, `ADLOCK_HOOK=echo "$ADLOCK_EVENT $ADLOCK_ATOM $ADLOCK_STATUS: $ADLOCK_TEXT" >>`+dir+"/told")
	return dir
}

// heard expects the text from the hook, and the event in the runlog.
func heard(t *testing.T, dir, told, event string) {
	t.Helper()
	text := func(name string) string {
		text, _ := os.ReadFile(filepath.Join(dir, name)) // may not be there yet
		return string(text)
	}
	helper.Eventually(t, "the hook is told: "+told, func() bool { return strings.Contains(text("told"), told+"\n") })
	if log := text("program.dax.runlog"); !strings.Contains(log, event) {
		t.Errorf("the runlog has no %q:\n%s", event, log)
	}
}

func TestTroubleWithTheDirectoryIsReportedAndNothingRuns(t *testing.T) {
	alone(t)
	for name, c := range troubles {
		t.Run(name, func(t *testing.T) {
			a := c.make(t)
			said := "o x: not run: " + strings.ReplaceAll(c.said, "{dir}", a.Dir)
			if r := a.Newcomer(t); r.Status != c.status || r.Out != "" || r.Err != "adlock: "+said+"\n" {
				t.Errorf("%+v; want status %d and %s", r, c.status, said)
			}
			told := "adlock: " + strings.ReplaceAll(c.said, "{dir}", a.Dir) + "\n"
			if r := a.Newcomer(t, "--dry-run"); name != "missing" && (r.Status != c.status || r.Out != "" || r.Err != told) {
				t.Errorf("the dry run: %+v; want status %d and %s", r, c.status, told)
			}
			if r := a.Newcomer(t, "--dry-run", "--on-trouble=run"); name != "missing" && (r.Status != 0 || !strings.HasPrefix(r.Out, "runs unlocked: ")) {
				t.Errorf("the dry run without a lock: %+v", r)
			}
			dir := hear(t, a)
			a.Newcomer(t).Refused(t, c.status, said)
			heard(t, dir, "not-run p.dax.o.x "+strconv.Itoa(c.status)+": "+said, " event=not-run ")
			// A script, and a program that speaks to hold.
			script := `. "$lib" && adlock_with o x -- echo ran`
			a.More = append(a.More, "lib="+filepath.Join(helper.Root(), "sh/adlock.sh"), "ADLOCK_BIN="+a.Bin, "ADLOCK_HOST=dax", "ADLOCK_PROGRAM=p", "ADLOCK_ON_TROUBLE=run")
			a.Shell(t, script).Refused(t, c.status, said)
			hold := `"$adlock" hold --operator o x <&- | grep -c '^error o x: not run: '; exit 9`
			if r := a.Shell(t, hold); !strings.HasPrefix(r.Out, "1\n") || r.Err != "adlock: "+said+"\n" {
				t.Errorf("hold: %+v", r)
			}
		})
	}
}

func TestOnTroubleRunRunsUnlockedAndReportsIt(t *testing.T) {
	alone(t)
	for name, c := range troubles {
		t.Run(name, func(t *testing.T) {
			a := c.make(t)
			dir := hear(t, a)
			said := "o x: runs unlocked: " + strings.ReplaceAll(c.said, "{dir}", a.Dir)
			r := a.Newcomer(t, "--on-trouble=run")
			if r.Status != 0 || r.Out != "ran\n" || r.Err != "adlock: "+said+"\n" {
				t.Errorf("%+v; want %s", r, said)
			}
			heard(t, dir, "unlocked p.dax.o.x : "+said, " event=unlocked ")
			heard(t, dir, "unlocked p.dax.o.x : "+said, " event=release ")
			if r := a.Shell(t, `$run --on-trouble run -- sh -c 'exit 3'`); r.Status != 3 {
				t.Errorf("of a job that exits with 3: %+v", r)
			}
			heard(t, dir, "fail p.dax.o.x 3: o x: failed with status 3", " status=3")
		})
	}
}

func TestTwoUnlockedRunsExcludeEachOther(t *testing.T) {
	alone(t)
	for name, c := range troubles {
		t.Run(name, func(t *testing.T) {
			a := c.make(t)
			job := unlocked(t, a)
			a.Newcomer(t, "--on-trouble=run").Denied(t)
			if r := a.Newcomer(t, "--on-trouble=run", "--dry-run"); name != "missing" && (r.Status != 75 || !strings.HasPrefix(r.Out, "busy: it runs without a lock\n")) {
				t.Errorf("the dry run: %+v", r)
			}
			job.Signal(t, unix.SIGTERM)
			job.Wait(t)
			if r := a.Newcomer(t, "--on-trouble=run"); r.Status != 0 || r.Out != "ran\n" {
				t.Errorf("after it: %+v", r)
			}
		})
	}
}

// unlocked starts a job that runs without a lock until it is ended.
func unlocked(t *testing.T, a *helper.Atom) *helper.Process {
	t.Helper()
	p := helper.Command{Env: a.Env(), Args: []string{"sh", "-c", `exec $run --on-trouble run -- sh -c 'echo begun; exec sleep 1000'`}}.Start(t)
	helper.Eventually(t, "the job has begun", func() bool { return strings.Contains(p.Output(), "begun") })
	return p
}

func TestAnUnlockedRunDeniesLockedOnesOnceThereIsRoom(t *testing.T) {
	alone(t)
	a := small(t)
	fill(t, a)
	job := unlocked(t, a)
	must(t, os.Remove(filepath.Join(a.Dir, "filler")))
	a.Newcomer(t).Denied(t)
	a.Newcomer(t, "--shared").Denied(t)
	if r := a.Newcomer(t, "--dry-run"); r.Status != 75 || !strings.HasPrefix(r.Out, "busy: it runs without a lock\n") {
		t.Errorf("the dry run: %+v", r)
	}
	a.Shell(t, "$take; [ $? = 11 ] && exit 75").Denied(t)
	if _, err := os.Stat(a.Lock()); err == nil {
		t.Error("a newcomer that was denied has left its lock")
	}
	// A new file in place of the last lock would not show the run.
	if r := a.Shell(t, `"$adlock" clear --last --older 0 && "$adlock" tune --reset `+helper.AtomName); r.Status != 71 || !strings.Contains(r.Err, ": a run without a lock is under way\n") {
		t.Errorf("%+v", r)
	}
	if _, err := os.Stat(a.Last()); err != nil {
		t.Error(err)
	}
	a.Newcomer(t).Denied(t)
	waiter := helper.Command{Env: a.Env(), Args: []string{"sh", "-c", "exec $run --wait 1m echo ran"}}.Start(t)
	helper.Eventually(t, "a newcomer waits", func() bool { return strings.Contains(a.Runlog(), "event=wait") })
	job.Signal(t, unix.SIGTERM)
	if status := waiter.Wait(t); status != 0 || waiter.Output() != "ran\n" {
		t.Errorf("the waiter: status %d, %q", status, waiter.Output())
	}
	// The unlocked run has stamped the last lock at its end.
	a.Newcomer(t, "--if-elapsed=1h").Denied(t)
}

func TestAnUnlockedRunStampsTheLastLock(t *testing.T) {
	alone(t)
	a := small(t)
	hear(t, a)
	fill(t, a)
	if r := a.Newcomer(t, "--on-trouble=run"); r.Status != 0 {
		t.Fatalf("%+v", r)
	}
	a.Newcomer(t, "--on-trouble=run", "--if-elapsed=1h").Denied(t)
	if r := a.Newcomer(t, "--on-trouble=run", "--retry-failed", "--if-elapsed=1ms"); r.Status != 0 {
		t.Errorf("%+v", r)
	}
}

func TestWithTroubleALivingOwnerStillDenies(t *testing.T) {
	alone(t)
	a := small(t)
	owner := a.Owner(t, "exec sleep 1000")
	fill(t, a)
	a.Newcomer(t, "--on-trouble=run", "--expire-after=1h").Denied(t)
	// The owner has expired, but the disk has no room for the newcomer's lock.
	a.Newcomer(t, "--on-trouble=run", "--expire-after=0").Refused(t, 74, "o x: not run: "+a.Dir+": no space left on device")
	if owner.Ended() {
		t.Error("the owner was ended")
	}
	owner.Kill(t)
	owner.Wait(t)
	if r := a.Newcomer(t, "--on-trouble=run"); r.Status != 0 || r.Out != "ran\n" {
		t.Errorf("once the owner is dead: %+v", r)
	}
}

func TestOnAReadOnlyFileSystemLocksAreStillHonoured(t *testing.T) {
	alone(t)
	a := small(t)
	hear(t, a)
	owner := a.Owner(t, "exec sleep 1000")
	readOnly := func(flag uintptr) { must(t, unix.Mount("", a.Dir, "", unix.MS_REMOUNT|flag, "")) }
	readOnly(unix.MS_RDONLY)
	a.Newcomer(t).Denied(t)
	a.Newcomer(t, "--on-trouble=run", "--expire-after=1h").Denied(t)
	if r := a.Newcomer(t, "--dry-run"); r.Status != 75 || !strings.HasPrefix(r.Out, "busy: ") {
		t.Errorf("the dry run: %+v", r)
	}
	if r := a.Shell(t, `"$adlock" status`); r.Status != 0 || r.Err != "" || !strings.Contains(r.Out, "running") {
		t.Errorf("status: %+v", r)
	}
	a.Newcomer(t, "--expire-after=0").Refused(t, 73, "read-only file system")
	if r := a.Shell(t, `"$adlock" stop `+helper.AtomName); r.Status != 73 || !strings.Contains(r.Err, "read-only file system") || owner.Ended() {
		t.Errorf("stop: %+v", r)
	}
	owner.Kill(t)
	owner.Wait(t)
	if r := a.Newcomer(t, "--on-trouble=run"); r.Status != 0 || r.Out != "ran\n" {
		t.Errorf("once the owner is dead: %+v", r)
	}
	a.Newcomer(t).Refused(t, 73, "read-only file system")
	readOnly(0)
}

func TestALockThatCannotBeReadLetsNothingRunUnlocked(t *testing.T) {
	alone(t)
	a := small(t)
	must(t, os.WriteFile(a.Lock(), []byte("no lock at all\n"), 0o600))
	fill(t, a)
	r := a.Newcomer(t, "--on-trouble=run")
	r.Refused(t, 74, "o x: not run: "+a.Lock()+": is cut short")
}

func TestAGuardedScriptRunsUnlockedOnceOnTrouble(t *testing.T) {
	alone(t)
	for name, c := range troubles {
		t.Run(name, func(t *testing.T) {
			a := c.make(t)
			script := filepath.Join(helper.Dir(t), "script")
			must(t, os.WriteFile(script, []byte("#!/bin/sh\n. \"$lib\" && adlock_guard\necho ran\n[ -z \"$1\" ] || \"$0\" && echo inner\nexit 5\n"), 0o755))
			a.More = append(a.More, "lib="+filepath.Join(helper.Root(), "sh/adlock.sh"), "ADLOCK_BIN="+a.Bin)
			run := func(env string, args ...string) helper.Result {
				return helper.Command{Args: append([]string{script}, args...), Env: append(a.Env(), env)}.Run(t)
			}
			run("ADLOCK_ON_TROUBLE=fail").Refused(t, c.status, "guard "+script+": not run: ")
			for _, args := range [][]string{nil, {"again"}} { // a run within itself is busy
				want := map[int]string{0: "ran\n", 1: "ran\ninner\n"}[len(args)]
				if r := run("ADLOCK_ON_TROUBLE=run", args...); r.Status != 5 || strings.TrimSuffix(r.Out, "inner\n") != "ran\n" || !strings.Contains(r.Err, "guard "+script+": runs unlocked: ") {
					t.Errorf("%+v; want %q", r, want)
				}
			}
		})
	}
}

func TestAnotherUsersSocketUnderAnUnlockedRunsNameIsReported(t *testing.T) {
	alone(t)
	c := troubles["full"]
	a := c.make(t)
	job := unlocked(t, a)
	sockets, err := os.ReadFile("/proc/net/unix")
	must(t, err)
	name := regexp.MustCompile(`@adlock-unlocked-0-p_dax_o_x`).FindString(string(sockets))
	if name == "" {
		t.Fatalf("no such name:\n%s", sockets)
	}
	job.Signal(t, unix.SIGTERM)
	job.Wait(t)
	stranger := listenAs(t, 4711, name)
	a.Newcomer(t, "--on-trouble=run").Refused(t, 74, "a process of another user has this name")
	// Without trouble no newcomer asks for the socket name.
	must(t, os.Remove(filepath.Join(a.Dir, "filler")))
	a.Newcomer(t, "--on-trouble=run").Ran(t)
	// A socket of the same user whose process answers nothing is a run under way.
	must(t, stranger.Close())
	mine := listenAs(t, 0, name)
	defer mine.Close()
	fill(t, a)
	a.Newcomer(t, "--on-trouble=run").Denied(t)
}

// listenAs listens at a socket as another user, on a thread that is not used again.
func listenAs(t *testing.T, uid uintptr, name string) (listener net.Listener) {
	t.Helper()
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, uid, uid, uid); errno != 0 {
			err = errno
			return
		}
		listener, err = net.Listen("unix", name)
	}()
	<-done
	must(t, err)
	return listener
}

func TestStatusShowsAJobThatWasNotRun(t *testing.T) {
	alone(t)
	a := troubles["full"].make(t)
	dir := hear(t, a)
	a.Newcomer(t).Refused(t, 74, "not run")
	heard(t, dir, "not-run p.dax.o.x 74: o x: not run: "+a.Dir+": no space left on device", "status=74")
	if r := a.Shell(t, `"$adlock" status`); r.Status != 0 || !strings.Contains(r.Out, "\n  not run: status 74, nothing could be locked\n") {
		t.Errorf("%+v", r)
	}
}

func TestOnTroubleRunIsRefusedWithAStore(t *testing.T) {
	a := helper.NewAtom(t)
	a.Newcomer(t, "--on-trouble=run", "--store=etcd://127.0.0.1:1/x").Refused(t, 64, "--on-trouble: run is for a lock directory")
	a.Newcomer(t, "--on-trouble=maybe").Refused(t, 64, `--on-trouble: "maybe": want run or fail`)
}
