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

	"adlock/lib/fault"
	"adlock/test/support/actor"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

const token = "00112233445566778899aabbccddeeff"

func TestTheMarkKeepsTheLatestClaimsNewestFirst(t *testing.T) {
	var env []string
	for n := range mostMarks + 2 {
		env = []string{"A=b", AddMark(env, Claim{PID: n, Start: 9, Token: token, File: "/a b", Again: n%2 == 0})}
	}
	t.Setenv(MarkVariable, marksIn(env)+"7 no-file\n")
	all := Claims()
	for i, c := range all {
		if n := mostMarks + 1 - i; c != (Claim{n, 9, token, "/a b", n%2 == 0}) {
			t.Errorf("line %d: %+v", i, c)
		}
	}
	if len(all) != mostMarks {
		t.Errorf("%d lines", len(all))
	}
}

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

func TestADeadOwnersJobIsFoundByTokenOrImageInItsSession(t *testing.T) {
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

func TestLaterForksAndProcessesWithTheTokenAreMarked(t *testing.T) {
	m := mark{token: token, image: 9, owner: Key{20000, 50}, session: 7, since: 60}
	ageless, imageless := m, m
	ageless.ageless, imageless.image = true, 0
	plain, changing, veiled := environment{}, environment{err: errChanging}, environment{err: errUnreadable}
	carries := environment{text: []byte("A=b\x00" + MarkVariable + "=1:2 " + token + " f\n\x00")}
	above := Entry{PID: 400, Parent: 300, SID: 7, Start: 61}
	for claim, c := range map[string]struct {
		m     mark
		e     Entry
		shown environment
		above Entry
		want  string
	}{
		"a fork":                       {m, Entry{PID: 500, SID: 7, Start: 61, image: 9}, plain, above, "member"},
		"the owner":                    {m, Entry{PID: 20000, SID: 7, Start: 50, image: 9}, carries, above, ""},
		"a known member":               {m, Entry{PID: 7, SID: 7, Start: 61, image: 9}, carries, above, ""},
		"one that has exited":          {m, Entry{PID: 500, SID: 7, Start: 61, image: 9, Exited: true}, carries, above, ""},
		"a hidden one":                 {m, Entry{PID: 500, SID: 7, Start: 61, image: 9, Hidden: true}, carries, above, ""},
		"a thread of the kernel":       {m, Entry{PID: 500, SID: 7, Start: 61, kernel: true}, carries, above, ""},
		"one in another session":       {m, Entry{PID: 500, SID: 8, Start: 61, image: 9}, carries, above, ""},
		"one of no known image":        {imageless, Entry{PID: 500, SID: 7, Start: 61}, plain, above, ""},
		"an older fork":                {m, Entry{PID: 500, SID: 7, Start: 59, image: 9}, carries, above, ""},
		"in one tick, a higher pid":    {m, Entry{PID: 20001, SID: 7, Start: 60, image: 9}, plain, above, "member"},
		"in one tick, the owner's pid": {m, Entry{PID: 20000, SID: 7, Start: 60, image: 9}, plain, above, ""},
		"in one tick, a lower pid":     {m, Entry{PID: 20000 - 1<<14, SID: 7, Start: 60, image: 9}, plain, above, ""},
		"in one tick, from the top":    {m, Entry{PID: 19999 - 1<<14, SID: 7, Start: 60, image: 9}, plain, above, "member"},
		"in one tick, with a token":    {m, Entry{PID: 19999, SID: 7, Start: 60}, carries, above, "member"},
		"in one tick, unreadable":      {m, Entry{PID: 19999, SID: 7, Start: 60}, veiled, above, ""},
		"a fork, ages unknown":         {ageless, Entry{PID: 500, SID: 7, Start: 1, image: 9}, plain, above, "doubt"},
		"a token, ages unknown":        {ageless, Entry{PID: 500, SID: 7, Start: 1}, carries, above, "member"},
		"an execve":                    {m, Entry{PID: 500, SID: 7, Start: 61}, changing, above, "doubt changed"},
		"an orphan of init":            {m, Entry{PID: 500, Parent: 1, SID: 7, Start: 61}, veiled, Entry{PID: 1, SID: 7}, "doubt"},
		"an orphan in plain sight":     {m, Entry{PID: 500, Parent: 1, SID: 7, Start: 61}, plain, Entry{PID: 1, SID: 7}, ""},
		"of a parent that is gone":     {m, Entry{PID: 500, Parent: 3, SID: 7, Start: 61}, veiled, above, "doubt"},
		"of a parent outside":          {m, Entry{PID: 500, Parent: 3, SID: 7, Start: 61}, veiled, Entry{PID: 3, SID: 8, Start: 61}, "doubt"},
		"of a parent within":           {m, Entry{PID: 500, Parent: 400, SID: 7, Start: 61}, veiled, above, ""},
		"of an earlier supervisor":     {m, Entry{PID: 500, Parent: 3, SID: 7, Start: 61}, veiled, Entry{PID: 3, SID: 7, Start: 59, Command: "adlock: run"}, "doubt"},
		"of a later supervisor":        {m, Entry{PID: 500, Parent: 3, SID: 7, Start: 61}, veiled, Entry{PID: 3, SID: 7, Start: 61, Command: "adlock: run"}, ""},
		"an older subshell's fork":     {m, Entry{PID: 500, Parent: 3, SID: 7, Start: 61, image: 9}, plain, Entry{PID: 3, SID: 7, Start: 59, image: 9}, ""},
		"an older program's fork":      {m, Entry{PID: 500, Parent: 3, SID: 7, Start: 61, image: 9}, plain, Entry{PID: 3, SID: 7, Start: 59}, "member"},
		"a younger subshell's fork":    {m, Entry{PID: 500, Parent: 3, SID: 7, Start: 61, image: 9}, plain, Entry{PID: 3, Parent: 3, SID: 7, Start: 61, image: 7}, "member"},
		"the owner's, of a subshell":   {m, Entry{PID: 500, Parent: 20000, SID: 7, Start: 61, image: 9}, plain, Entry{PID: 20000, Parent: 2, SID: 7, Start: 50, image: 9}, "member"},
		"a fork's of an older fork":    {m, Entry{PID: 500, Parent: 3, SID: 7, Start: 61, image: 9}, plain, Entry{PID: 3, Parent: 2, SID: 7, Start: 61}, ""},
	} {
		older := Entry{PID: 2, SID: 7, Start: 40, image: 9}
		seen := c.m.find([]Entry{c.e, c.above, older}, map[Key]environment{c.e.Key(): c.shown}, func(k Key) bool { return k.PID == 7 })
		got := ""
		if seen.members[c.e.Key()] {
			got = "member"
		} else if slices.ContainsFunc(seen.doubts, func(e *Entry) bool { return *e == c.e }) {
			got = "doubt"
		}
		if seen.changed {
			got += " changed"
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", claim, got, c.want)
		}
	}
	// The lease of a store does not tell by this clock when it was taken.
	self := must.Get(Of(os.Getpid()))(t)
	if m, ok := (Job{Owner: self, Token: token}).mark(Here()); !ok || m.since != self.Start || startAt(time.Second) != 100 || Unrecorded >= 0 {
		t.Errorf("%+v, %v: want all since %d", m, ok, self.Start)
	}
}

// A program that overwrites its environment, as for a title, shows no mark.
func TestAnOrphanWithAnUnreadableEnvironmentIsInDoubt(t *testing.T) {
	for _, title := range []string{"x", "queue=mail id=7 "} {
		job, pids := left(t, `perl -e '$0 = "`+title+`" x 20000; open(F, ">>$ARGV[0]"); print F "$$\n"; close F; sleep 300' "$1" &`, 1)
		got, doubt := found(t, job)
		remains := job.Remains()
		job.Uncounted = true
		if len(got) != 0 || doubt != pids[0] || !remains || !errors.Is(job.Survived(), ErrUncounted) {
			t.Errorf("%s: found %v, in doubt %d, of %v", title, got, doubt, pids)
		}
	}
}

func TestLeftoverProcessesAreUnknownIfProcCannotBeRead(t *testing.T) {
	job, pids := left(t, `ADLOCK_MARK="1 $3 f" `+sleeper+` &`, 1)
	if left, err := job.Left(); !left || err != nil {
		t.Errorf("left %v, %v, of %v", left, err, pids)
	}
	actor.Set(t, &here, func() (Identity, error) { return Identity{}, unix.EMFILE })
	if _, err := job.Left(); !errors.Is(err, unix.EMFILE) {
		t.Error(err)
	}
	if marked, err := job.Marked(); !errors.Is(err, unix.EMFILE) || Passing() != err {
		t.Error(marked, err, Passing())
	}
	here = func() (Identity, error) { return Identity{}, fault.New(fault.Unavailable, "/proc", "is not mounted") }
	if Passing() != nil || Readable() == nil {
		t.Error(Passing(), Readable())
	}
}

// The session has processes that start and end all the time, and none of them is the job's.
func TestShortLivedStrangersAreNotTakenForTheJob(t *testing.T) {
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
func TestASlowReadOfAnEnvironmentIsNotRepeated(t *testing.T) {
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
func TestAnExecveIsNotTakenForAnOverwrittenEnvironment(t *testing.T) {
	gate := fifo(t)
	a := actor.Shell(t, actor.Apart, `read -r x <"$1"; exec sleep 100`, gate)
	actor.Eventually(t, "it waits", func() bool { return entryOf(a).Command == "sh" && actor.State(a.PID()) == "S" })
	e := entryOf(a)
	must.Do(t, os.WriteFile(gate, []byte("go\n"), 0))
	actor.Eventually(t, "it has another program", func() bool { return entryOf(a).Command == "sleep" })
	if text, err := environ(e); err != nil || len(text) == 0 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	e.Start++
	if text, err := environ(e); err != errGone {
		t.Errorf("of another process: %d bytes, %v", len(text), err)
	}
}

func TestAnEnvironmentThatStartsWithNoNameCountsAsOverwritten(t *testing.T) {
	a, zombie := actor.Sleeper(t, actor.Leads), actor.Sleeper(t, actor.Leads)
	for env, want := range map[string]bool{"": false, "A=b\x00": false, "A=\x00x\x00": false, "=b\x00": true, "b\x00A=b\x00": true} {
		if got := isOverwritten(entryOf(a), []byte(env)); got != want {
			t.Errorf("%q is written over: %v", env, got)
		}
	}
	unix.Kill(zombie.PID(), unix.SIGKILL)
	actor.Eventually(t, "a zombie", func() bool { return entryOf(zombie).Exited })
	if isOverwritten(entryOf(zombie), nil) {
		t.Error("a zombie has arguments")
	}
}

func TestRandomAddressesNeedTheSysctlAndThePersonality(t *testing.T) {
	for mode, want := range map[string]bool{"0\n": false, "1\n": true, "2\n": true, "": false} {
		if got := randomises(treeOf(t, map[string]string{"mode": mode}) + "mode"); got != want {
			t.Errorf("mode %q: %v", mode, got)
		}
	}
	runtime.LockOSThread() // and the thread ends with the test
	const addrNoRandomize = 0x0040000
	if _, _, failed := unix.RawSyscall(unix.SYS_PERSONALITY, addrNoRandomize, 0, 0); failed == 0 && randomises("/proc/sys/kernel/randomize_va_space") {
		t.Error("addresses are random, though this thread has asked for others")
	}
}

// On a busy machine, an execve outlasts many looks.
func TestASlowExecveIsWaitedFor(t *testing.T) {
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
func TestAnOwnerWhoseFirstThreadHasExitedIsAlive(t *testing.T) {
	ready := actor.File(t, "ready")
	a := actor.Play(t, actor.Apart, "leaderless", ready)
	actor.Eventually(t, "its first thread has exited", func() bool { return actor.Exists(ready) && actor.State(a.PID()) == "Z" })
	e, id := entryOf(a), idOf(a)
	if id.Life() != Alive || !PIDLives(a.PID()) || !remains(id) {
		t.Errorf("life %v, pid lives %v, group lives %v", id.Life(), PIDLives(a.PID()), remains(id))
	}
	want := errChanging
	if os.Geteuid() != 0 {
		want = errUnreadable
	}
	if _, err := environ(e); !errors.Is(err, want) {
		t.Error(err)
	}
	a.Process.Kill()
	actor.Eventually(t, "it is gone", func() bool { _, err := environ(e); return errors.Is(err, errGone) && id.Life() == Dead })
}
