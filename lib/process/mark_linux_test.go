package process

import (
	"errors"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adlock/test/support/actor"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

const token = "00112233445566778899aabbccddeeff"

// fifo returns a FIFO that no process writes to: a shell that reads it waits without a child.
func fifo(t *testing.T) string {
	t.Helper()
	path := actor.File(t, "fifo")
	must.Do(t, unix.Mkfifo(path, 0o600))
	return path
}

// left is the job of a script that was killed while it held a lock, and the pids that the script has
// written to its file, in this order. The script gets the file as $1, a FIFO to wait at as $2, the
// token as $3. It leads neither a group nor a session.
func left(t *testing.T, script string, lines int) (Job, []int) {
	t.Helper()
	began, file := Boottime(), actor.File(t, "pids")
	actor.Shell(t, syscall.SysProcAttr{Setsid: true}, `exec >/dev/null 2>&1; sh -c "$4" sh "$1" "$2" "$3" & echo $! >"$1.owner"; wait; read x <"$2"`,
		file, fifo(t), token, script+"\nread x <\"$2\"")
	owner := actor.PIDIn(t, file+".owner")
	var pids []int
	actor.Eventually(t, "the script has started its processes", func() bool {
		text, _ := os.ReadFile(file)
		pids = nil
		for line := range strings.Lines(string(text)) {
			pids = append(pids, actor.Atoi(t, strings.TrimSpace(line)))
		}
		return len(pids) == lines
	})
	t.Cleanup(func() {
		for _, pid := range pids {
			unix.Kill(pid, unix.SIGKILL)
		}
	})
	id := must.Get(Of(owner))(t)
	unix.Kill(owner, unix.SIGKILL)
	actor.Eventually(t, "the script is dead", func() bool { return id.Life() == Dead })
	return Job{Owner: id, FileUID: -1, Token: token, Taken: began}, pids
}

// found returns the processes that bear the mark, and one in doubt; 0: none.
func found(t *testing.T, job Job) (pids []int, doubt int) {
	t.Helper()
	where, err := here()
	m, ok := job.mark(where)
	if !ok || err != nil {
		t.Fatal("the job has no mark")
	}
	seen, _, err := m.look(Table, nothing)
	must.Do(t, err)
	for k := range seen.members {
		pids = append(pids, k.PID)
	}
	slices.Sort(pids)
	for _, e := range seen.doubts {
		doubt = e.PID
	}
	return pids, doubt
}

// sleeper is a program that writes its pid to the file, so that it is no fork of the script by then.
const sleeper = `sh -c 'echo $$ >>"$1"; exec sleep 300' sh "$1"`

func TestAMarkShowsWhatADeadOwnerHasLeft(t *testing.T) {
	for claim, c := range map[string]struct {
		script string
		found  bool
	}{
		"a subshell that called no program": {`(sh -c 'echo $PPID' >>"$1"; read x <"$2") &`, true},
		"a program with the token":          {`ADLOCK_MARK="1 $3 f" ` + sleeper + ` &`, true},
		"a program under two locks": {`ADLOCK_MARK="2 ff f
1 $3 f" ` + sleeper + ` &`, true},
		"a program's own child":        {`ADLOCK_MARK="1 $3 f" sh -c '` + strings.ReplaceAll(sleeper, "'", `'"'"'`) + ` & wait' sh "$1" &`, true},
		"a program without the token":  {sleeper + ` &`, false},
		"a program in another session": {`ADLOCK_MARK="1 $3 f" setsid ` + sleeper + ` &`, false},
		"another lock's job":           {`ADLOCK_MARK="1 f${3#?} f" ` + sleeper + ` &`, false},
		"a token in another variable":  {`ADLOCK_MARKED="1 $3 f" ` + sleeper + ` &`, false},
	} {
		t.Run(claim, func(t *testing.T) {
			job, pids := left(t, c.script, 1)
			got, doubt := found(t, job)
			if slices.Contains(got, pids[0]) != c.found || doubt != 0 || job.Remains() != c.found {
				t.Errorf("found %v, in doubt %d, of %v", got, doubt, pids)
			}
			job.Owner.SID = 1 << 22
			if job.Remains() {
				t.Error("it remains in another session")
			}
		})
	}
}

func TestWhatIsOlderThanTheLockHasNoMark(t *testing.T) {
	job, pids := left(t, `ADLOCK_MARK="1 $3 f" `+sleeper+` & (sh -c 'echo $PPID' >>"$1"; read x <"$2") &`, 2)
	if got, _ := found(t, job); len(got) != 2 {
		t.Fatalf("found %v of %v", got, pids)
	}
	job.Taken = Boottime() + clockTick
	if got, doubt := found(t, job); len(got) != 0 || doubt != 0 {
		t.Errorf("found %v, in doubt %d", got, doubt)
	}
}

// The kernel gives out low pids again after the highest, which may be a low one in a container, or when
// it is told to (ns_last_pid).
func TestATokenCountsInTheTickOfItsLockWhateverThePID(t *testing.T) {
	for script, want := range map[string]bool{
		`ADLOCK_MARK="1 $3 f" ` + sleeper + ` &`:                                                       true,
		`(sh -c 'echo $PPID' >>"$1"; read x <"$2") &`:                                                  false, // perhaps it is older than the lock
		`ADLOCK_MARK="1 f${3#?} f" ` + sleeper + ` &`:                                                  false,
		`perl -e '$0 = "x" x 20000; open(F, ">>$ARGV[0]"); print F "$$\n"; close F; sleep 300' "$1" &`: false,
	} {
		job, pids := left(t, script, 1)
		child := must.Get(Of(pids[0]))(t)
		job.Owner.PID, job.Owner.Start, job.Taken = child.PID+1, child.Start, time.Duration(child.Start)*clockTick
		if got, doubt := found(t, job); slices.Contains(got, child.PID) != want || doubt != 0 {
			t.Errorf("%s: found %v, in doubt %d, of %v", script, got, doubt, pids)
		}
	}
}

// A lock that a subshell has taken is freed by its death, though the script goes on and forks.
func TestTheOtherSubshellsOfAScriptHaveNoMark(t *testing.T) {
	file := actor.File(t, "pids")
	a := actor.Shell(t, syscall.SysProcAttr{Setsid: true},
		`(sh -c 'echo $PPID' >"$1.owner"; read x <"$2") & (sh -c 'echo $PPID' >"$1.other"; read x <"$2") & wait`, file, fifo(t))
	owner, err := Of(actor.PIDIn(t, file+".owner"))
	other := actor.PIDIn(t, file+".other")
	must.Do(t, err)
	t.Cleanup(func() { unix.Kill(other, unix.SIGKILL) })
	if idOf(a).Image != owner.Image || owner.Image == 0 {
		t.Fatalf("images %v and %v", idOf(a).Image, owner.Image)
	}
	unix.Kill(owner.PID, unix.SIGKILL)
	actor.Eventually(t, "the owner is dead", func() bool { return owner.Life() == Dead })
	job := Job{Owner: owner, Token: token, Taken: time.Duration(owner.Start) * clockTick}
	if got, doubt := found(t, job); len(got) != 0 || doubt != 0 {
		t.Errorf("found %v, in doubt %d, where only %d and the script live", got, doubt, other)
	}
}

// A program that overwrites its environment, as for a title, shows no mark.
func TestAnOrphanWithAnUnreadableEnvironmentIsInDoubt(t *testing.T) {
	for _, title := range []string{"x", "queue=mail id=7 "} {
		job, pids := left(t, `perl -e '$0 = "`+title+`" x 20000; open(F, ">>$ARGV[0]"); print F "$$\n"; close F; sleep 300' "$1" &`, 1)
		got, doubt := found(t, job)
		if len(got) != 0 || doubt != pids[0] || !job.Remains() {
			t.Errorf("%s: found %v, in doubt %d, of %v", title, got, doubt, pids)
		}
	}
}

// Its parent has left the session, so that it looks like an orphan.
func TestWhatIsFoundThroughItsParentIsNotInDoubt(t *testing.T) {
	file := actor.File(t, "pids")
	actor.Shell(t, syscall.SysProcAttr{Setsid: true}, `sh -c "$2" sh "$1" & echo $! >"$1.owner"; wait`, file, `perl -MPOSIX -e '
		$child = fork or $0 = "x" x 20000, sleep 300;
		setsid; open(F, ">$ARGV[0]"); print F "$child\n"; close F; sleep 300' "$1" & wait`)
	owner, child := must.Get(Of(actor.PIDIn(t, file+".owner")))(t), actor.PIDIn(t, file)
	t.Cleanup(func() {
		unix.Kill(must.Get(look(child))(t).Parent, unix.SIGKILL)
		unix.Kill(child, unix.SIGKILL)
	})
	k := Membership{Roots: map[Key]bool{owner.Key(): true}}
	must.Do(t, k.AddBands(Job{Owner: owner, Token: token, Taken: time.Duration(owner.Start) * clockTick}))
	isChild := func(e Entry) bool { return e.PID == child }
	actor.Eventually(t, "the child shows no environment", func() bool {
		list := must.Get(k.Look(Table, nothing))(t)
		doubtful := slices.ContainsFunc(k.Doubts(), func(e *Entry) bool { return isChild(*e) })
		if found := k.Find(list, nothing); !slices.ContainsFunc(found, isChild) || len(k.Doubts()) > 0 {
			t.Errorf("found %v, in doubt %v", found, k.Doubts())
		}
		return doubtful
	})
}

// The lease of a store does not tell by this clock when it was taken.
func TestWhatIsOlderThanTheOwnerIsNotInDoubt(t *testing.T) {
	file := actor.File(t, "pids")
	actor.Shell(t, syscall.SysProcAttr{Setsid: true}, `exec perl -e '$0 = "x" x 20000; exec "sleep", "300" unless $pid = fork;
		open(F, ">$ARGV[0]"); print F "$pid\n"; close F; wait; sleep 300' "$1"`, file)
	owner := must.Get(Of(actor.PIDIn(t, file)))(t)
	unix.Kill(owner.PID, unix.SIGKILL)
	actor.Eventually(t, "the owner is dead", func() bool { return owner.Life() == Dead })
	if got, doubt := found(t, Job{Owner: owner, Token: token}); len(got) != 0 || doubt != 0 {
		t.Errorf("found %v, in doubt %d", got, doubt)
	}
}

func TestWhatIsLeftIsNotKnownWithoutAPlace(t *testing.T) {
	job, pids := left(t, `ADLOCK_MARK="1 $3 f" `+sleeper+` &`, 1)
	if left, err := job.Left(); !left || err != nil {
		t.Errorf("left %v, %v, of %v", left, err, pids)
	}
	actor.Set(t, &here, func() (Identity, error) { return Identity{}, unix.EMFILE })
	if _, err := job.Left(); !errors.Is(err, unix.EMFILE) {
		t.Error(err)
	}
	if marked, err := job.Marked(); !errors.Is(err, unix.EMFILE) {
		t.Error(marked, err)
	}
}

// The session has processes that start and end all the time, and none of them is the job's.
func TestAJobIsDeadBesideProcessesThatComeAndGo(t *testing.T) {
	file := actor.File(t, "pids")
	shell := actor.Shell(t, syscall.SysProcAttr{Setsid: true}, `exec >/dev/null 2>&1; sh -c 'read x <"$0"' "$2" & echo $! >"$1"
		for i in 1 2 3 4 5 6 7 8 9 10 11 12; do while kill -0 "$3"; do /bin/true; done & done; wait`, file, fifo(t), strconv.Itoa(os.Getpid()))
	t.Cleanup(func() { unix.Kill(-shell.PID(), unix.SIGKILL) })
	id := must.Get(Of(actor.PIDIn(t, file)))(t)
	job := Job{Owner: id, FileUID: -1, Token: token, Taken: Boottime()}
	unix.Kill(id.PID, unix.SIGKILL)
	actor.Eventually(t, "the owner is dead", func() bool { return id.Life() == Dead })
	for range 20 {
		if got, doubt := found(t, job); len(got) > 0 || doubt != 0 {
			t.Fatalf("found %v, in doubt %d", got, doubt)
		}
	}
}

// A file system that does not answer delays the verdict once, and not at each look.
func TestAnEnvironmentThatIsLateIsInDoubtAtOnce(t *testing.T) {
	job, pids := left(t, sleeper+" &", 1)
	asked, answers := 0, make(chan struct{})
	defer close(answers)
	actor.Set(t, &environmentWithin, 50*time.Millisecond)
	actor.Set(t, &readEnvironment, func(Entry) ([]byte, error) { <-answers; return nil, nil })
	m, ok := job.mark(Here())
	if !ok {
		t.Fatal("the job has no mark")
	}
	seen, _, err := m.look(func(see func(*Entry) bool) ([]Entry, error) { asked++; return Table(see) }, func(Key) bool { return false })
	if err != nil || len(seen.doubts) == 0 || asked != 1 {
		t.Errorf("%d looks, in doubt %+v, of %v, %v", asked, seen.doubts, pids, err)
	}
}

// The arguments differ from those in the table, as they do if a process has overwritten them.
func TestAnExecveAfterTheTableWasReadOverwritesNothing(t *testing.T) {
	gate := fifo(t)
	a := actor.Shell(t, actor.Apart, `read -r x <"$1"; exec sleep 100`, gate)
	actor.Eventually(t, "it waits", func() bool { return entryOf(a).Command == "sh" && actor.State(a.PID()) == "S" })
	e := entryOf(a)
	must.Do(t, os.WriteFile(gate, []byte("go\n"), 0))
	actor.Eventually(t, "it has another program", func() bool { return entryOf(a).Command == "sleep" })
	if text, err := environ(e); err != nil || len(text) == 0 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}

// On a busy machine, an execve outlasts many looks.
func TestAnExecveThatTakesLongIsWaitedFor(t *testing.T) {
	job, pids := left(t, `ADLOCK_MARK="1 $3 f" `+sleeper+` &`, 1)
	looks, read := 0, readEnvironment
	actor.Set(t, &readEnvironment, func(e Entry) ([]byte, error) {
		if looks++; looks <= 2*markedLooks {
			return nil, errChanging
		}
		return read(e)
	})
	if got, doubt := found(t, job); !slices.Equal(got, pids) || doubt != 0 {
		t.Errorf("found %v, in doubt %d, of %v, after %d looks", got, doubt, pids, looks)
	}
}

// Newer kernels may show the environment all the same, but not its length (isVeiled).
func TestAnotherUsersEnvironmentIsUnreadableWithoutPtrace(t *testing.T) {
	need.Root(t)
	nobody := syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	full, none := actor.Shell(t, nobody, "exec sleep 100"), actor.Shell(t, nobody, "exec env -i sleep 100")
	actor.Eventually(t, "they have their last programs", func() bool { return entryOf(full).Command == "sleep" && entryOf(none).Command == "sleep" })
	runtime.LockOSThread() // and the thread ends with the test
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var caps [2]unix.CapUserData
	must.Do(t, unix.Capget(&header, &caps[0]))
	caps[0].Effective &^= 1 << unix.CAP_SYS_PTRACE
	must.Do(t, unix.Capset(&header, &caps[0]))
	for _, pid := range []int{full.PID(), none.PID()} {
		if text, err := environ(must.Get(look(pid))(t)); !errors.Is(err, errUnreadable) {
			t.Errorf("%d bytes, %v", len(text), err)
		}
	}
}

// Its threads may be at work for the job, but /proc shows no environment of it.
func TestAProcessWhoseFirstThreadHasExitedIsNotGone(t *testing.T) {
	ready := actor.File(t, "ready")
	a := actor.Play(t, actor.Apart, "leaderless", ready)
	actor.Eventually(t, "its first thread has exited", func() bool { return actor.Exists(ready) && actor.State(a.PID()) == "Z" })
	e := must.Get(look(a.PID()))(t)
	want := errChanging
	if os.Geteuid() != 0 {
		want = errUnreadable
	}
	if _, err := environ(e); !errors.Is(err, want) {
		t.Error(err)
	}
	a.Process.Kill()
	actor.Eventually(t, "it is gone", func() bool { _, err := environ(e); return errors.Is(err, errGone) })
}
