package process

// These tests show with the real program that only a confirmed death frees a lock: processes that outlive a failed or
// interrupted ending, or that left their group before their supervisor was killed, hold the atom as long as they live.

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"adlock/lib/process"
	"adlock/lib/record"
	"adlock/test/support/actor"
	"adlock/test/support/check"
	"adlock/test/support/helper"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

// amongOthers starts an owner that leads neither a group nor a session, like a script under run-parts or make.
var amongOthers = []string{"sh", "-c", `"$@"; exec sleep 1000`, "sh"}

// deaf is a process that only KILL ends; it writes its pid to FILE. It waits without a child, which
// would outlive it for a moment.
const deaf = `sh -c 'trap "" INT TERM; mkfifo "$1.never" 2>/dev/null; echo $$ >"$1.tmp"; mv "$1.tmp" "$1"; read -r x <"$1.never"' sh `

var kill = helper.End

// frozen puts a process into a cgroup in which not even KILL reaches it, and returns a function that releases it.
func frozen(t *testing.T, pid int) (thaw func()) {
	t.Helper()
	need.Root(t)
	group := filepath.Join("/sys/fs/cgroup/freezer", fmt.Sprintf("adlock-test-%d-%d", os.Getpid(), pid))
	if err := os.Mkdir(group, 0o755); err != nil {
		need.Skip(t, "no freezer of cgroups version 1 here, and that of version 2 lets KILL through: ", err)
	}
	write := func(file, text string) {
		t.Helper()
		must.Do(t, os.WriteFile(filepath.Join(group, file), []byte(text), 0))
	}
	t.Cleanup(func() {
		write("freezer.state", "THAWED")
		helper.Eventually(t, "its cgroup is empty", func() bool { return os.Remove(group) == nil })
	})
	helper.EndsWith(t, pid)
	write("cgroup.procs", strconv.Itoa(pid))
	// The kernel skips a process that waits for its vfork's child, as dash does, so ask again.
	helper.Eventually(t, "it is frozen", func() bool {
		write("freezer.state", "FROZEN")
		text, _ := os.ReadFile(filepath.Join(group, "freezer.state"))
		return strings.TrimSpace(string(text)) == "FROZEN"
	})
	return func() { write("freezer.state", "THAWED") }
}

func TestAJobWithOneUnkillableProcessKeepsTheAtom(t *testing.T) {
	t.Parallel()
	for claim, prefix := range map[string][]string{"of a script among others": amongOthers, "of a script that leads": nil} {
		t.Run(claim, func(t *testing.T) {
			a := helper.NewAtom(t)
			file := filepath.Join(t.TempDir(), "child")
			a.Owner(t, deaf+file, prefix...)
			child := actor.PIDIn(t, file)
			thaw := frozen(t, child)
			a.Newcomer(t, "--expire-after=0", "--pause=0").Refused(t, 77, "stuck: ")
			helper.Eventually(t, "the owner is dead", func() bool { return !helper.Alive(a.OwnerPID(t)) })
			a.Newcomer(t).Denied(t)
			a.Newcomer(t, "--expire-after=0", "--pause=0").Refused(t, 77, "stuck: ")
			thaw()
			helper.Eventually(t, "the child is dead", func() bool { return !helper.Alive(child) })
			a.Newcomer(t).Ran(t)
		})
	}
}

func TestAJobKeepsTheAtomIfTheNewcomerThatEndsItIsKilled(t *testing.T) {
	t.Parallel()
	a := helper.NewAtom(t)
	file := filepath.Join(t.TempDir(), "child")
	a.Owner(t, deaf+file+" & wait", amongOthers...)
	child, pid := actor.PIDIn(t, file), a.OwnerPID(t)
	newcomer := helper.Command{Args: []string{"sh", "-c", "exec $run --expire-after=0 --pause=30s echo ran"}, Env: a.Env()}.Start(t)
	helper.Eventually(t, "the owner died of INT", func() bool { return !helper.Alive(pid) })
	newcomer.Kill(t)
	a.Newcomer(t).Denied(t)
	a.Newcomer(t, "--expire-after=0", "--pause=0").Ran(t)
	check.Equal(t, "it lives beside the newcomer's job", helper.Alive(child), false)
}

// leavers are commands that leave the process group of their parent.
func leavers(file string) map[string]string {
	job := deaf + file
	return map[string]string{
		"timeout":    "timeout 1000 " + job,
		"setsid":     "setsid -w " + job,
		"nested run": `$adlock run --name=nested -- ` + job,
	}
}

func TestACommandOutsideItsDeadSupervisorsGroupKeepsTheAtom(t *testing.T) {
	t.Parallel()
	for claim := range leavers("") {
		t.Run(claim, func(t *testing.T) {
			a := helper.NewAtom(t)
			file := filepath.Join(t.TempDir(), "job")
			supervisor := a.Supervised(t, "exec "+leavers(file)[claim])
			job := actor.PIDIn(t, file)
			supervisor.Kill(t)
			a.Newcomer(t).Denied(t)
			a.Newcomer(t, "--expire-after=0", "--pause=0").Ran(t)
			check.Equal(t, "it lives beside the newcomer's job", helper.Alive(job), false)
		})
	}
}

// The ways in which root starts a service as another user.
func TestACommandThatBecameAnotherUserIsEnded(t *testing.T) {
	t.Parallel()
	need.Root(t)
	need.Tools(t, "setpriv")
	const other = "setpriv --reuid=65534 --clear-groups "
	for claim, form := range map[string]string{
		"the command":       other + deaf,
		"in a session":      "setsid -w " + other + deaf,
		"a child of root's": "sh -c '\"$@\"; :' sh " + other + deaf,
		"a child of nobody": other + "sh -c '\"$@\"; :' sh " + deaf,
	} {
		for _, killed := range []bool{false, true} {
			t.Run(claim+", supervisor killed: "+strconv.FormatBool(killed), func(t *testing.T) {
				a := helper.NewAtom(t)
				dir := public(t)
				must.Do(t, os.Chmod(dir, 0o777))
				supervisor := a.Supervised(t, "exec "+form+dir+"/job")
				job := actor.PIDIn(t, dir+"/job")
				if killed {
					supervisor.Kill(t)
					a.Newcomer(t).Denied(t)
				}
				a.Newcomer(t, "--expire-after=0", "--pause=0").Ran(t)
				check.Equal(t, "it lives beside the newcomer's job", helper.Alive(job), false)
			})
		}
	}
}

// Processes of another user namespace do not show their environment, as the commands that a user may run
// and not read do not, and in a container those that have become another user.
func TestACommandWithAnUnreadableEnvironmentIsEnded(t *testing.T) {
	t.Parallel()
	elsewhere := []string{"--user", "--map-root-user"}
	need.Namespaces(t, elsewhere...)
	for _, killed := range []bool{false, true} {
		t.Run("supervisor killed: "+strconv.FormatBool(killed), func(t *testing.T) {
			a := helper.NewAtom(t)
			file := filepath.Join(t.TempDir(), "job")
			run := func(words string) helper.Command {
				return helper.Command{Args: slices.Concat([]string{"unshare"}, elsewhere, []string{"sh", "-c", "exec $run " + words}), Env: a.Env()}
			}
			owner := run(deaf + file).Start(t)
			job := actor.PIDIn(t, file)
			if killed {
				owner.Kill(t)
			}
			if r := run("--expire-after=0 --pause=0 echo ran").Run(t); r.Out != "ran\n" || helper.Alive(job) {
				t.Errorf("the newcomer: %+v; the job lives: %v", r, helper.Alive(job))
				kill(t, job)
			}
		})
	}
}

// guardBeforeCommand starts `adlock run` and takes the guard of its lock before the command is recorded there.
func guardBeforeCommand(t *testing.T, file string) (*helper.Atom, *helper.Process, *os.File) {
	t.Helper()
	for range 100 {
		a := helper.NewAtom(t)
		args := append([]string{a.Bin, "run", "--program=p", "--host=dax", "--operator=o", "--operand=x", "setsid", "-w"}, "sh", "-c", deaf+file)
		supervisor := helper.Command{Args: args, Env: a.Env()}.Start(t)
		var guard *os.File
		for deadline := time.Now().Add(helper.Patience); guard == nil; {
			f, err := os.OpenFile(a.Lock(), os.O_RDWR, 0)
			if err == nil && syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
				guard = f
			} else if f.Close(); time.Now().After(deadline) {
				t.Fatal("no lock, or no guard to be had")
			}
		}
		t.Cleanup(func() { guard.Close() })
		text := must.Get(os.ReadFile(a.Lock()))(t)
		if !strings.Contains(string(text), "\ncommand=") {
			return a, supervisor, guard
		}
		guard.Close()
		supervisor.Kill(t)
		kill(t, actor.PIDIn(t, file))
		os.Remove(file)
	}
	t.Fatal("the command was always recorded first")
	return nil, nil, nil
}

// The former holder of the guard may be a newcomer that was killed, and recorded no process.
func TestACommandIsRecordedOnceTheGuardIsFree(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "job")
	a, supervisor, guard := guardBeforeCommand(t, file)
	job := actor.PIDIn(t, file)
	time.Sleep(time.Second) // longer than one try for the guard
	guard.Close()
	helper.Eventually(t, "the command is recorded", func() bool { return helper.Settled(a.Lock()) })
	supervisor.Kill(t)
	a.Newcomer(t).Denied(t)
	kill(t, job)
	helper.Eventually(t, "setsid has ended too", func() bool { return a.Shell(t, "$run --dry-run true").Status == 0 })
	a.Newcomer(t).Ran(t)
}

func TestAProcessOutsideTheGroupOfItsDeadOwnerKeepsTheAtom(t *testing.T) {
	t.Parallel()
	a := helper.NewAtom(t)
	file := filepath.Join(t.TempDir(), "job")
	script := a.Owner(t, "timeout 1000 "+deaf+file)
	job := actor.PIDIn(t, file)
	script.Kill(t)
	a.Newcomer(t).Denied(t)
	kill(t, job)
	helper.Eventually(t, "timeout has ended too", func() bool { return a.Shell(t, "$run --dry-run true").Status == 0 })
	a.Newcomer(t).Ran(t)
}

func TestAJobThatItsSupervisorCannotEndKeepsTheAtom(t *testing.T) {
	t.Parallel()
	for how, want := range map[string]int{"--enforce --expire-after=1h": 124, "--quiet-ok": 143} {
		t.Run(how, func(t *testing.T) {
			a := helper.NewAtom(t)
			over := a.Gated(t)
			file := filepath.Join(t.TempDir(), "job")
			command := append([]string{a.Bin, "run", "--pause=0", "--program=p", "--host=dax", "--operator=o", "--operand=x"}, strings.Fields(how)...)
			command = append(command, "setsid", "-w", "sh", "-c", deaf+file)
			supervisor := helper.Command{Args: command, Env: a.Env()}.Start(t)
			job := actor.PIDIn(t, file)
			thaw := frozen(t, job)
			if want == 143 {
				supervisor.Signal(t, syscall.SIGTERM)
			} else {
				over()
			}
			said := fmt.Sprintf("adlock: o x: stuck: process %d (sh): still alive after KILL; adlock stays with the job", job)
			helper.Eventually(t, "it is stuck", func() bool { return strings.Contains(supervisor.Output(), said) })
			a.Newcomer(t, "--expire-after=1h").Denied(t)
			thaw()
			if status := supervisor.Wait(t); status != want || helper.Alive(job) {
				t.Errorf("status %d, want %d\n%s", status, want, supervisor.Output())
			}
			a.Newcomer(t).Ran(t)
		})
	}
}

func TestANewcomerFromInsideTheJobIsDenied(t *testing.T) {
	t.Parallel()
	a := helper.NewAtom(t)
	out := filepath.Join(t.TempDir(), "out")
	// The subshell is an orphan of the owner's group.
	p := a.Owner(t, `sh -c '($run --expire-after=0 echo ran >"$1.tmp" 2>&1; echo $? >>"$1.tmp"; mv "$1.tmp" "$1") &' sh `+out+`; exec sleep 1000`)
	var text []byte
	helper.Eventually(t, "the insider has tried", func() bool {
		var err error
		text, err = os.ReadFile(out)
		return err == nil
	})
	if string(text) != "75\n" || p.Ended() {
		t.Errorf("%q, the owner has ended: %v\n%s", text, p.Ended(), a.Runlog())
	}
}

// The newcomer that ends a job is killed itself, after the command has started another process
// that this newcomer has not found: no record names it.
func TestASupervisorWaitsForAnUnrecordedSurvivor(t *testing.T) {
	t.Parallel()
	a := helper.NewAtom(t)
	file := filepath.Join(t.TempDir(), "left")
	supervisor := a.Supervised(t, `until [ -e `+file+`.go ]; do sleep 0.05; done; setsid sh -c 'echo $$ >"$1"; exec sleep 1000' sh `+file+` & until [ -s `+file+` ]; do sleep 0.05; done`)
	// As a newcomer leaves it that begins to end the job, and is killed once what it signalled is dead.
	dead := helper.Command{Args: []string{"sleep", "1000"}}.Start(t)
	id := must.Get(process.Of(dead.PID))(t)
	dead.Kill(t)
	appendTo(t, a, record.SurvivorLine(1, id))
	must.Do(t, os.WriteFile(file+".go", nil, 0o600))
	left := actor.PIDIn(t, file)
	helper.Eventually(t, "the command has ended", func() bool { return slices.Equal(helper.Children(supervisor.PID), []int{left}) })
	a.Newcomer(t).Denied(t)
	supervisor.Lives(t)
	kill(t, left)
	supervisor.Is(t, 0, "…")
	a.Newcomer(t).Ran(t)
}

func appendTo(t *testing.T, a *helper.Atom, text string) {
	t.Helper()
	lock := must.Get(os.OpenFile(a.Lock(), os.O_WRONLY|os.O_APPEND, 0))(t)
	_, err := lock.WriteString(text)
	must.Do(t, errors.Join(err, lock.Close()))
}

// The ending of the job was cut short, and the lock had no room for the members.
func TestUnrecordedSurvivorsKeepTheAtomUntilTheyAreDead(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "child")
	script := deaf + file + " & wait"
	for claim, start := range map[string]func(*helper.Atom) *helper.Process{
		"of a script that leads":        func(a *helper.Atom) *helper.Process { return a.Owner(t, script) },
		"of a supervisor among others":  func(a *helper.Atom) *helper.Process { return a.Supervised(t, script, amongOthers...) },
		"of a supervisor that leads":    func(a *helper.Atom) *helper.Process { return a.Supervised(t, script) },
		"of a supervisor's whole group": func(a *helper.Atom) *helper.Process { return a.Supervised(t, "exec "+script) },
	} {
		for _, ended := range []bool{false, true} {
			t.Log(claim, ended)
			a := helper.NewAtom(t)
			start(a)
			child := actor.PIDIn(t, file)
			appendTo(t, a, record.ManySurvivors)
			kill(t, a.OwnerPID(t))
			a.Newcomer(t).Denied(t)
			if ended {
				a.Newcomer(t, "--expire-after=0", "--pause=0").Ran(t)
			} else {
				kill(t, child)
				helper.Eventually(t, "the atom is free", func() bool { return a.Newcomer(t).Status == 0 })
			}
			check.Equal(t, "it lives beside the newcomer's job", helper.Alive(child), false)
			must.Do(t, os.Remove(file))
		}
	}
}

func TestFalselyRecordedSurvivorsDoNotPreventARelease(t *testing.T) {
	t.Parallel()
	for _, text := range []string{record.ManySurvivors, ""} {
		a := helper.NewAtom(t)
		supervisor := a.Supervised(t, "until [ -e "+a.Dir+"/go ]; do sleep 0.05; done")
		if text == "" { // a stranger to the job that was taken for a member
			other := helper.Command{Args: []string{"sleep", "1000"}}.Start(t)
			id := must.Get(process.Of(other.PID))(t)
			text = record.SurvivorLine(1, id)
		}
		appendTo(t, a, text)
		must.Do(t, os.WriteFile(a.Dir+"/go", nil, 0o600))
		supervisor.Is(t, 0, "")
		a.Newcomer(t).Ran(t)
	}
}

// Two workers of one script, each in a subshell, hold a lock each. When the script and the first worker
// are dead, the second may have been the first one's child; it is under a lock of its own, without a limit.
func TestAWorkerWithALockOfItsOwnIsNotEndedForAnotherLock(t *testing.T) {
	a := helper.NewAtom(t)
	dir := t.TempDir()
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
	own := strings.ReplaceAll(a.Lock(), "o.x", "o.second")
	script := helper.Command{Env: append(a.Env(), "first="+first, "second="+second, "own="+own), Args: []string{"sh", "-c", `sh -c '
		( read -r pid _ </proc/self/stat; $adlock take --owner $pid -- "$lock" p dax o x || exit; echo $pid >$first; while :; do sleep 0.05; done ) &
		until [ -s $first ]; do sleep 0.02; done
		( read -r pid _ </proc/self/stat; $adlock take --owner $pid -- "$own" p dax o second || exit; echo $pid >$second; while :; do sleep 0.05; done ) &
		echo $$; wait' & wait`}}
	script.Env = append(script.Env, "lock="+a.Lock())
	p := script.Start(t)
	one, other := actor.PIDIn(t, first), actor.PIDIn(t, second)
	main := must.Get(strconv.Atoi(strings.TrimSpace(p.Output())))(t)
	kill(t, main)
	kill(t, one)
	helper.Eventually(t, "the first worker is dead", func() bool { return !helper.Alive(one) })
	a.Newcomer(t).Denied(t)
	a.Newcomer(t, "--expire-after=1ms").Refused(t, 77, "stuck: process "+itoa(other)+": may belong to the job, and holds a lock of its own: "+own)
	check.Equal(t, "the second worker lives", helper.Alive(other), true)
	kill(t, other)
	helper.Eventually(t, "the second worker is dead", func() bool { return !helper.Alive(other) })
	a.Newcomer(t).Ran(t)
}
