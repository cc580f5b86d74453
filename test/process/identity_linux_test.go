package process

// These tests try to make the real program take one process for another, or a live one for dead: no uninvolved process
// may be signalled, and no atom may be lost or run twice. lib/process and lib/killer test how identities are compared.

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"adlock/test/support/actor"
	"adlock/test/support/check"
	"adlock/test/support/helper"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

// unshared starts what follows as process 1 of a pid namespace.
var unshared = []string{"unshare", "--pid", "--fork", "--kill-child", "--mount-proc"}

func needNamespaces(t *testing.T) {
	t.Helper()
	need.Root(t)
	need.Namespaces(t, unshared[1:]...)
}

// Shell functions. own starts an owner, by the command in its arguments if any, and returns when the owner has the
// atom. recycle starts an unrelated process, leader of a session of its own, with the pid $1. (The tick of start
// times is 10 ms: within one tick the two could not be distinguished.)
const functions = `
own() {
	"$@" sh -c '$take && : >"$ADLOCK_DIR/ready" && exec sleep 1000' & owner=$!
	until [ -e "$ADLOCK_DIR/ready" ]; do sleep 0.01; done
}
recycle() {
	sleep 0.1
	for try in 1 2 3 4 5 6 7 8 9; do
		echo $(($1 - 1)) >/proc/sys/kernel/ns_last_pid || return
		setsid sleep 1000 & stranger=$!
		[ $stranger -eq $1 ] && return
		kill -KILL $stranger
	done
	return 1
}
`

// ranInNamespace runs a script with these functions, and expects that its newcomer ran. Status 99 says
// that no pid could be chosen.
func ranInNamespace(t *testing.T, a *helper.Atom, script string, prefix ...string) {
	t.Helper()
	got := a.Shell(t, functions+script, prefix...)
	if got.Status == 99 {
		need.Skip(t, "this kernel does not let the next pid be chosen")
	}
	if got.Status != 0 || got.Out != "ran\n" {
		t.Errorf("%s\n%+v\n%s", script, got, a.Runlog())
	}
}

// mustHaveSignalledNone expects that these processes live, and that no signal is in the runlog.
func mustHaveSignalledNone(t *testing.T, a *helper.Atom, spared ...*helper.Process) {
	t.Helper()
	if strings.Contains(a.Runlog(), "event=signal") || slices.ContainsFunc(spared, (*helper.Process).Ended) {
		t.Errorf("a process was signalled:\n%s", a.Runlog())
	}
}

func TestAProcessThatReusesTheOwnersPidIsNotTakenForTheOwner(t *testing.T) {
	t.Parallel()
	needNamespaces(t)
	for claim, lead := range map[string]string{"in a group of others": "", "leading a group": "setsid"} {
		t.Run(claim, func(t *testing.T) {
			a := helper.NewAtom(t)
			ranInNamespace(t, a, `
				own `+lead+`
				kill -KILL $owner; wait $owner
				recycle $owner || exit 99
				$run echo ran || exit
				kill -0 $stranger || exit 98
				kill -KILL $stranger`, unshared...)
			mustHaveSignalledNone(t, a)
		})
	}
}

// A daemon leaves a process group behind whose leader, started with the dead
// owner's pid, has ended: only the session distinguishes this group from what the owner left.
func TestAProcessGroupThatReusesTheOwnersPidIsNotSignalled(t *testing.T) {
	t.Parallel()
	needNamespaces(t)
	a := helper.NewAtom(t)
	ranInNamespace(t, a, `
		$run sleep 1000 & owner=$! # it leads a group and no session
		until command=$(sed -n 's/^command=\([0-9]*\).*/\1/p' "$ADLOCK_DIR"/lock.* 2>/dev/null) && [ "$command" ]; do sleep 0.01; done
		kill -KILL $owner $command; wait $owner
		sleep 0.1
		for try in 1 2 3 4 5 6 7 8 9; do
			echo $((owner - 1)) >/proc/sys/kernel/ns_last_pid || exit 99
			setsid sh -c 'sleep 1000 & echo $! >"$1"' sh "$ADLOCK_DIR/daemon" & first=$!
			wait $first
			[ $first -eq $owner ] && break
			kill -KILL "$(cat "$ADLOCK_DIR/daemon")"
		done
		[ $first -eq $owner ] || exit 99
		daemon=$(cat "$ADLOCK_DIR/daemon")
		kill -0 -$owner || exit 97 # a group of the owner's number
		$run --expire-after=0 echo ran || exit
		kill -0 $daemon || exit 98
		kill -KILL $daemon`, append(unshared, "setsid")...)
	mustHaveSignalledNone(t, a)
}

// The newcomer is stopped before a signal while its owner dies and another process gets the pid.
func TestNoSignalReachesAProcessThatReusesTheOwnersPid(t *testing.T) {
	t.Parallel()
	needNamespaces(t)
	need.Tools(t, "strace")
	for when := 1; when <= 4; when++ {
		a := helper.NewAtom(t)
		ranInNamespace(t, a, `
			own
			strace -f --seccomp-bpf -o /dev/null -e trace=pidfd_send_signal \
				-e inject=pidfd_send_signal:delay_enter=1500000:when=`+strconv.Itoa(when)+` \
				$run --expire-after 0 echo ran & newcomer=$!
			until grep -q event=expire "$ADLOCK_DIR"/*.runlog; do sleep 0.01; done
			sleep 0.3
			kill -KILL $owner; wait $owner
			recycle $owner || exit 99
			kill -STOP $stranger # a CONT would show, too
			until grep -q '^State:.T' /proc/$stranger/status; do sleep 0.01; done
			wait $newcomer || exit
			grep -q '^State:.T' /proc/$stranger/status || exit 98
			kill -KILL $stranger`, unshared...)
	}
}

// The helper is stopped before each look at the shell that asks for the lock; the shell dies
// meanwhile, and another process gets its pid.
func TestAProcessThatReusesADyingShellsPidGetsNoLock(t *testing.T) {
	t.Parallel()
	needNamespaces(t)
	need.Tools(t, "strace")
	for when := 1; when <= 3; when++ {
		a := helper.NewAtom(t)
		ranInNamespace(t, a, `
			sh -c '
				strace -f --seccomp-bpf -o /dev/null -P /proc/$$/stat -e trace=openat \
					-e inject=openat:delay_enter=1500000:when=`+strconv.Itoa(when)+` \
					$adlock take --owner $$ --expire-after 0 -- "$ADLOCK_DIR/lock.p.h.o.x" p h o x & echo $! >"$ADLOCK_DIR/strace"
				wait' & owner=$!
			until [ -s "$ADLOCK_DIR/strace" ]; do sleep 0.01; done
			strace=$(cat "$ADLOCK_DIR/strace")
			held=0 # how often in a row the helper was seen stopped by strace
			until [ $held -eq 10 ] || ! kill -0 $strace 2>/dev/null; do
				sleep 0.02
				read -r helper </proc/$strace/task/$strace/children
				case $(cat /proc/$helper/stat 2>/dev/null) in
				*") t "*) held=$((held + 1)) ;;
				*) held=0 ;;
				esac
			done
			kill -KILL $owner; wait $owner
			recycle $owner || exit 99
			while kill -0 $strace 2>/dev/null; do sleep 0.01; done
			$adlock run --program p --host h --operator o --operand x --expire-after 0 echo ran || exit
			kill -0 $stranger || exit 98
			kill -KILL $stranger`, unshared...)
		mustHaveSignalledNone(t, a)
	}
}

// nameless runs a command on a machine without a machine-id(5).
var nameless = []string{"unshare", "--mount", "sh", "-c",
	`for id in /etc/machine-id /var/lib/dbus/machine-id; do [ ! -e $id ] || mount --bind /dev/null $id || exit; done; exec "$@"`, "sh"}

// The host may have the name of another machine, on which the owner lives: pods and images
// share one name. So nothing is taken over, and the message says why.
func TestALockOfAnotherBootIsStuckWithoutAMachineID(t *testing.T) {
	t.Parallel()
	need.Root(t)
	need.Namespaces(t, "--mount")
	a := helper.NewAtom(t)
	a.Owner(t, "exec sleep 1000", nameless...).Kill(t)
	a.Rewrite(t, "boot", "00000000-0000-0000-0000-000000000000")
	a.Newcomer(t, "--expire-after=0").Refused(t, 77, "stuck: ")
	mustBeStuckUntilCleared(t, a, "no /etc/machine-id", nameless...)
}

// mustBeStuckUntilCleared expects that nothing proves the owner's death, and that a person clears the lock.
func mustBeStuckUntilCleared(t *testing.T, a *helper.Atom, why string, prefix ...string) {
	t.Helper()
	a.Shell(t, "$run echo ran", prefix...).Denied(t)
	a.Shell(t, "$run --expire-after=0 echo ran", prefix...).Refused(t, 77, why)
	a.Shell(t, "$adlock clear "+helper.AtomName+"; $run echo ran", prefix...).Ran(t)
}

func TestALockOfAnotherPidNamespaceIsStuckUntilCleared(t *testing.T) {
	t.Parallel()
	needNamespaces(t)
	a := helper.NewAtom(t)
	container := a.Supervised(t, "exec sleep 1000", unshared...)
	a.Newcomer(t).Denied(t)
	a.Newcomer(t, "--expire-after=0").Refused(t, 77, "adlock clear '"+a.Lock()+"'")
	mustHaveSignalledNone(t, a, container)
	container.Kill(t)
	mustBeStuckUntilCleared(t, a, "stuck: ")
}

func TestAPidRecordedInAnotherNamespaceIsNotSignalledHere(t *testing.T) {
	t.Parallel()
	needNamespaces(t)
	a := helper.NewAtom(t)
	owner := a.Owner(t, "exec sleep 1000")
	got := a.Shell(t, functions+`
		recycle `+strconv.Itoa(owner.PID)+` || exit 99
		$run --expire-after 0 echo ran; status=$?
		kill -0 $stranger || exit 98
		kill -KILL $stranger
		exit $status`, unshared...)
	if got.Status == 99 {
		need.Skip(t, "this kernel does not let the next pid be chosen")
	}
	got.Refused(t, 77, "stuck: ")
	owner.Lives(t)
}

func TestAStoppedOwnerKeepsTheAtomUntilItExpires(t *testing.T) {
	t.Parallel()
	for claim, start := range map[string]func(*helper.Atom, testing.TB, string, ...string) *helper.Process{
		"a script": (*helper.Atom).Owner, "adlock run": (*helper.Atom).Supervised,
	} {
		t.Run(claim, func(t *testing.T) {
			a := helper.NewAtom(t)
			owner := start(a, t, "sleep 1000; :")
			owner.Signal(t, syscall.SIGSTOP)
			a.Newcomer(t).Denied(t)
			a.Newcomer(t, "--expire-after=0").Ran(t)
			if status := owner.Wait(t); status == 0 {
				t.Errorf("status %d", status)
			}
		})
	}
}

func TestAnOwnerThatIgnoresSignalsIsEndedByKILL(t *testing.T) {
	t.Parallel()
	a := helper.NewAtom(t)
	owner := a.Owner(t, "exec sleep 1000", "sh", "-c", `trap '' INT TERM; exec "$@"`, "sh")
	a.Newcomer(t, "--expire-after=0").Ran(t)
	owner.Is(t, 128+9, "…")
	var sent []string
	for _, line := range regexp.MustCompile(`event=signal .*signal=(\S+)`).FindAllStringSubmatch(a.Runlog(), -1) {
		sent = append(sent, line[1])
	}
	check.Equal(t, "signals", strings.Join(sent, " "), "CONT INT TERM KILL")
}

// mustEndWhole expects that a newcomer ends all processes of the job with this mark.
func mustEndWhole(t *testing.T, a *helper.Atom, mark string) {
	t.Helper()
	a.Newcomer(t, "--expire-after=0").Ran(t)
	if left := helper.With(mark); len(left) > 0 {
		t.Errorf("processes %v of the ended job live", left)
	}
}

func TestAChildThatCalledSetsidIsEndedWithItsOwner(t *testing.T) {
	t.Parallel()
	need.Tools(t, "setsid")
	const children = "; setsid sleep 1000 & setsid sh -c 'sleep 1000; :' & "
	for claim, start := range map[string]func(*helper.Atom, *testing.T, string){
		"a script": func(a *helper.Atom, t *testing.T, mark string) { a.Owner(t, mark+children+"setsid sleep 1000 & wait") },
		"adlock run": func(a *helper.Atom, t *testing.T, mark string) {
			a.Supervised(t, mark+children+"setsid -f sleep 1000; wait")
		},
	} {
		t.Run(claim, func(t *testing.T) {
			a := helper.NewAtom(t)
			mark := a.Mark(t)
			start(a, t, "export "+mark)
			helper.Eventually(t, "the children run", func() bool { return len(helper.With(mark)) == 4 })
			mustEndWhole(t, a, mark)
		})
	}
}

// Each hop lives for a millisecond and leaves an orphan; they end by themselves when the test's directory goes.
func TestAJobThatForksFasterThanOneScanIsEnded(t *testing.T) {
	t.Parallel()
	a := helper.NewAtom(t)
	hop := filepath.Join(t.TempDir(), "hop")
	must.Do(t, need.WriteProgram(hop, []byte("#!/bin/sh\n[ -e \"$0\" ] && \"$0\" &\n"), 0o700))
	mark := a.Mark(t)
	a.Supervised(t, "export "+mark+"; "+hop+" & "+hop+" & wait; sleep 1000")
	helper.Eventually(t, "the hops run", func() bool { return len(helper.With(mark)) > 0 })
	mustEndWhole(t, a, mark)
}

// Process 1 of a pid namespace does not die while a process outside keeps a zombie in it. Without
// a broken disk, no process is closer to an unkillable one.
func TestAnOwnerThatOutlivesKILLIsStuckAndKeepsTheAtom(t *testing.T) {
	t.Parallel()
	needNamespaces(t)
	need.Tools(t, "nsenter")
	a := helper.NewAtom(t)
	ready := filepath.Join(t.TempDir(), "ready")
	owner := a.Owner(t, "exec unshare --pid --fork sh -c 'echo $$ >"+ready+"; sleep 1000; :'")
	helper.Eventually(t, "the namespace is there", func() bool { info, err := os.Stat(ready); return err == nil && info.Size() > 0 })
	guest := filepath.Join(t.TempDir(), "guest")
	keeper := helper.Command{Args: []string{"nsenter", "--target", strconv.Itoa(helper.Children(owner.PID)[0]), "--pid",
		"sh", "-c", "echo $$ >" + guest + "; exec sleep 1000"}}.Start(t)
	helper.Eventually(t, "a guest is in it", func() bool { info, err := os.Stat(guest); return err == nil && info.Size() > 0 })
	keeper.Signal(t, syscall.SIGSTOP) // it will not reap its child
	helper.Eventually(t, "it is stopped", func() bool { return actor.State(keeper.PID) == "T" })

	a.Newcomer(t, "--expire-after=0", "--pause=0").Refused(t, 77, "still alive after KILL")
	a.Newcomer(t, "--expire-after=0", "--pause=0").Refused(t, 77, "stuck: ")
	if _, err := os.Stat(a.Lock()); err != nil {
		t.Error("the atom was lost: ", err)
	}
	keeper.Signal(t, syscall.SIGCONT)
	helper.Eventually(t, "the atom is free", func() bool { return a.Newcomer(t).Status == 0 })
}
