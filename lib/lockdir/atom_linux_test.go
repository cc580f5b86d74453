package lockdir

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/flock"
	"adlock/lib/lockdir/lockfile"
	"adlock/lib/locker"
	"adlock/lib/policy"
	"adlock/lib/process"
	"adlock/lib/runlog"
	"adlock/lib/sysfile"
	"adlock/test/support/helper"
	"adlock/test/support/must"
)

var motd = atom.Atom{Program: "cfengine.conf", Host: "dax", Operator: "editfile", Operand: "/etc/motd"}

const motdFiles = "cfengine_conf.dax.editfile._etc_motd"

var motdLock = atom.File{Kind: atom.ActiveLock, Name: motdFiles}

func readerLock(owner process.Identity) atom.File {
	return atom.File{Kind: atom.ReaderLock, Name: motdFiles, Number: owner.PID}
}

func newLocker(t *testing.T) *Locker {
	t.Helper()
	path := t.TempDir()
	must.Do(t, os.Chmod(path, 0o700))
	dir := must.Get(lockfile.Open(path))(t)
	t.Cleanup(func() { dir.Close() })
	return &Locker{Dir: dir, Recorder: locker.Recorder{Log: &runlog.Log{Dir: path, Host: "dax"}}}
}

// unlogged is a locker without a runlog.
func unlogged(t *testing.T) *Locker {
	t.Helper()
	k := newLocker(t)
	k.Log = nil
	return k
}

// start runs a process until the test ends and returns its identity.
func start(t *testing.T, script string) process.Identity {
	t.Helper()
	command := exec.Command("sh", "-c", script)
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	must.Do(t, command.Start())
	reaped := make(chan struct{})
	go func() { command.Wait(); close(reaped) }()
	t.Cleanup(func() {
		syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
		<-reaped
	})
	return must.Get(process.Of(command.Process.Pid))(t)
}

func sleeper(t *testing.T) process.Identity {
	t.Helper()
	return start(t, "exec sleep 60")
}

// dead returns the identity of a process that has ended.
func dead(t *testing.T) process.Identity {
	t.Helper()
	id := sleeper(t)
	end(t, id)
	return id
}

func end(t *testing.T, id process.Identity) {
	t.Helper()
	syscall.Kill(id.PID, syscall.SIGKILL)
	eventually(t, "the process is gone", func() bool { return id.Life() == process.Dead })
}

func wantLife(t *testing.T, id process.Identity, want process.Life) {
	t.Helper()
	if got := id.Life(); got != want {
		t.Errorf("process %d is %v, want %v", id.PID, got, want)
	}
}

func eventually(t *testing.T, claim string, holds func() bool) {
	t.Helper()
	helper.Eventually(t, claim, holds)
}

func ask(owner process.Identity) locker.Request {
	return locker.Request{
		Atom: motd, Owner: owner, Pause: 100 * time.Millisecond,
		Limits: policy.Limits{ExpireAfter: time.Hour, Source: policy.Said},
	}
}

// hasty is a request for motd with a limit that any owner has passed.
func hasty(owner process.Identity) locker.Request {
	r := ask(owner)
	r.Limits.ExpireAfter = 0
	return r
}

func wantVerdict(t *testing.T, k *Locker, r locker.Request, want locker.Verdict) locker.Outcome {
	t.Helper()
	outcome, err := k.Take(r)
	if want != locker.Stuck {
		must.Do(t, err)
	}
	if outcome.Verdict != want {
		t.Fatalf("verdict is %q (%s), want %q", outcome.Verdict, outcome.Reason, want)
	}
	return outcome
}

// takes makes the request in a goroutine.
func takes(t *testing.T, k *Locker, r locker.Request) <-chan locker.Outcome {
	t.Helper()
	took := make(chan locker.Outcome, 1)
	go func() {
		outcome, err := k.Take(r)
		if err != nil {
			t.Error(err)
		}
		took <- outcome
	}()
	return took
}

// wantTaken waits for the outcome of takes, which must have one of these verdicts.
func wantTaken(t *testing.T, took <-chan locker.Outcome, want ...locker.Verdict) locker.Outcome {
	t.Helper()
	select {
	case o := <-took:
		if !slices.Contains(want, o.Verdict) {
			t.Errorf("%s (%s), want %v", o.Verdict, o.Reason, want)
		}
		return o
	case <-time.After(3 * helper.Patience):
		t.Fatal("no answer")
		return locker.Outcome{}
	}
}

// letGo releases an acquisition of that request.
func letGo(t *testing.T, k *Locker, r locker.Request, o locker.Outcome) {
	t.Helper()
	must.Do(t, k.Release(locker.ReleaseRequest{Name: r.Atom.Name(), Token: o.Token}))
}

// release releases an acquisition of motd.
func release(t *testing.T, k *Locker, o locker.Outcome) {
	t.Helper()
	must.Do(t, releaseOf(k, o))
}

func releaseOf(k *Locker, o locker.Outcome) error {
	return k.Release(locker.ReleaseRequest{Name: motdFiles, Token: o.Token})
}

// lockOf is the active lock of motd, open until the test ends.
func lockOf(t *testing.T, k *Locker) *lockfile.Active {
	t.Helper()
	return openActive(t, k.Dir.Active, atom.Name(motdFiles))
}

func plant(t *testing.T, k *Locker, content string, age time.Duration) {
	t.Helper()
	plantFile(t, k, "lock."+motdFiles, content, age)
}

func plantFile(t *testing.T, k *Locker, file, content string, age time.Duration) {
	t.Helper()
	path := k.Dir.Path(file)
	must.Do(t, os.WriteFile(path, []byte(content), 0o600))
	then := time.Now().Add(-age)
	must.Do(t, os.Chtimes(path, then, then))
}

func lastStamp(t *testing.T, k *Locker) time.Time {
	t.Helper()
	info := must.Get(os.Stat(k.Dir.Path("last." + motdFiles)))(t)
	return info.ModTime()
}

func setLast(t *testing.T, k *Locker, at time.Time) {
	t.Helper()
	must.Do(t, os.Chtimes(k.Dir.Path("last."+motdFiles), at, at))
}

func TestAReleaseOfAGuardedLockIsDeniedAfterAShortWait(t *testing.T) {
	k := newLocker(t)
	held := wantVerdict(t, k, ask(sleeper(t)), locker.Acquired)
	guard := takeGuard(t, k, motdFiles)
	began := time.Now()
	if err := releaseOf(k, held); fault.KindOf(err) != fault.Denied {
		t.Errorf("release: %v", err)
	}
	if waited := time.Since(began); waited < 200*time.Millisecond {
		t.Errorf("it waited %v for a newcomer that may only be looking", waited)
	}
	guard.Close()
	release(t, k, held)
}

// After a crash of the machine, a file that was not synced may be empty.
func TestAnEmptyLockIsClearedAfterAMinute(t *testing.T) {
	k, r := newLocker(t), slotted(sleeper(t), motd.Operand, 1)
	must.Do(t, k.Dir.MarkRead(motdFiles))
	files := []string{"lock." + motdFiles, motd.Slot(1).ActiveLock(), motd.Name().ReaderLock(4711)}
	for _, young := range files {
		for _, file := range files {
			must.Do(t, sysfile.IgnoreMissing(os.Remove(k.Dir.Path(file))))
		}
		plantFile(t, k, young, "", 50*time.Second)
		want := locker.Busy
		if young == motd.Slot(1).ActiveLock() {
			want = locker.Full
		}
		wantVerdict(t, k, r, want)
		plantFile(t, k, young, "", 70*time.Second)
		letGo(t, k, r, wantVerdict(t, k, r, locker.Acquired))
	}
}

func TestALockWithOnlyAPidIsBusyAndItsOwnerNeverEnded(t *testing.T) {
	k, owner, r := newLocker(t), sleeper(t), hasty(sleeper(t))
	plant(t, k, pidLine(owner), time.Hour)
	wantVerdict(t, k, r, locker.Busy)
	wantLife(t, owner, process.Alive)
	end(t, owner)
	wantVerdict(t, k, r, locker.Acquired)
}

func TestALastLockNamesTheAtomOfAChecksummedName(t *testing.T) {
	k, r := newLocker(t), learner(sleeper(t))
	r.Atom.Operand = "my_db"
	for _, missing := range []bool{false, true} {
		held := wantVerdict(t, k, r, locker.Acquired)
		if missing {
			must.Do(t, os.Remove(k.Dir.Path(r.Atom.Name().LastLock())))
		}
		letGo(t, k, r, held)
		if last, err := k.Dir.Last(r.Atom.Name()); err != nil || last.Memory.Atom != r.Atom || last.Memory.Learned.Runs != 1 {
			t.Fatalf("missing %v: remembered %+v, %v", missing, last.Memory, err)
		}
		must.Do(t, os.Remove(k.Dir.Path(r.Atom.Name().LastLock())))
	}
}

func TestAStepOfTheWallClockDoesNotExpireAnOwner(t *testing.T) {
	k := newLocker(t)
	wantVerdict(t, k, ask(sleeper(t)), locker.Acquired)
	long := time.Now().Add(-100 * time.Hour)
	must.Do(t, os.Chtimes(k.Dir.Path("lock."+motdFiles), long, long))
	wantVerdict(t, k, ask(sleeper(t)), locker.Busy)
}

func TestThePassClockCountsForIfElapsedAndExpireAfter(t *testing.T) {
	k, owner := newLocker(t), sleeper(t)
	r := ask(owner)
	r.Limits.IfElapsed = time.Minute
	r.Now = time.Now().Add(-time.Minute)
	held := wantVerdict(t, k, r, locker.Acquired)
	release(t, k, held)
	wantVerdict(t, k, r, locker.TooSoon) // stamped after the pass began
	r.Limits.IfElapsed = 0
	wantVerdict(t, k, r, locker.Acquired)
	newcomer := ask(sleeper(t))
	newcomer.Now = time.Now().Add(2 * time.Hour)
	wantVerdict(t, k, newcomer, locker.Acquired) // an hour has passed on the pass's clock
	wantLife(t, owner, process.Dead)
}

func TestNoOwnerIsEndedOrReplacedWhileTheFlockFileIsHeld(t *testing.T) {
	holder := must.Get(os.Create(filepath.Join(t.TempDir(), "file")))(t)
	defer holder.Close()
	must.Do(t, unix.Flock(int(holder.Fd()), unix.LOCK_EX))
	for _, owner := range []locker.Request{ask(dead(t)), read(dead(t)), ask(sleeper(t)), read(sleeper(t))} {
		k, r := newLocker(t), hasty(sleeper(t))
		wantVerdict(t, k, owner, locker.Acquired)
		r.Flock = must.Get(flock.Open(holder.Name(), false, false))(t)
		before := locksOf(t, k)
		wantVerdict(t, k, r, locker.Busy)
		wantSame(t, k, before)
	}
}

func TestAReaderThatHoldsTheFlockFileIsEndedDespiteDeadOnes(t *testing.T) {
	k, r, file, dies := newLocker(t), hasty(sleeper(t)), filepath.Join(t.TempDir(), "file"), dead(t)
	r.Flock = must.Get(flock.Open(file, false, true))(t)
	wantVerdict(t, k, read(start(t, "exec flock '"+file+"' sleep 60")), locker.Acquired)
	eventually(t, "the reader has the file", r.Flock.IsTaken)
	wantVerdict(t, k, read(dies), locker.Acquired)
	for _, lock := range []string{motd.Name().ReaderLock(1), motd.Name().ActiveLock()} {
		plantFile(t, k, lock, contentOf(t, k, motd.Name().ReaderLock(dies.PID)), 0)
	}
	if granted, reason, err := inWords(k.DryRun(&r)); !granted {
		t.Errorf("a dry run says %s, %v", reason, err)
	}
	wantVerdict(t, k, r, locker.Acquired)
}

func TestFromStartCountsTheLastRunIncludingItsWait(t *testing.T) {
	k, r := newLocker(t), ask(sleeper(t))
	r.FromStart, r.Limits.IfElapsed = true, time.Hour
	r.WaitSince = process.Boottime() - 10*time.Minute
	held := wantVerdict(t, k, r, locker.Acquired)
	began := time.Now().Add(-50 * time.Minute)
	must.Do(t, os.Chtimes(k.Dir.Path("lock."+motdFiles), began, began))
	release(t, k, held)
	fromEnd := r
	fromEnd.FromStart = false
	wantVerdict(t, k, fromEnd, locker.TooSoon)
	wantVerdict(t, k, r, locker.Acquired)
}

func TestAWaitingNewcomerWakesWhenTheAtomIsFree(t *testing.T) {
	dies := func(t *testing.T, _ *Locker, r locker.Request, _ locker.Outcome) { end(t, r.Owner) }
	for claim, c := range map[string]struct {
		held func(process.Identity) locker.Request
		ends func(t *testing.T, k *Locker, r locker.Request, held locker.Outcome)
	}{
		"the lock is released":    {ask, letGo},
		"the last reader's is":    {read, letGo},
		"the owner dies with it":  {ask, dies},
		"the last reader dies so": {read, dies},
	} {
		k, owner, newcomer := newLocker(t), c.held(sleeper(t)), ask(sleeper(t))
		held := wantVerdict(t, k, owner, locker.Acquired)
		newcomer.Wait = time.Hour
		took := takes(t, k, newcomer)
		select {
		case o := <-took:
			t.Fatalf("%s: it did not wait: %s", claim, o.Verdict)
		case <-time.After(50 * time.Millisecond):
		}
		c.ends(t, k, owner, held)
		wantTaken(t, took, locker.Acquired)
	}
}

func TestPruneRemovesUnusedLastLocks(t *testing.T) {
	k, r := newLocker(t), ask(sleeper(t))
	release(t, k, wantVerdict(t, k, r, locker.Acquired))
	release(t, k, wantVerdict(t, k, read(r.Owner), locker.Acquired))
	for _, other := range []locker.Request{r, read(r.Owner)} {
		other.Atom.Operand = fmt.Sprint("held shared ", other.Shared)
		wantVerdict(t, k, other, locker.Acquired)
	}
	if names, err := k.Prune(time.Hour); err != nil || len(names) != 0 {
		t.Errorf("pruned %v, %v", names, err)
	}
	names, err := k.Prune(0)
	if _, left := os.Stat(k.Dir.Path(motd.Name().ReadersMark())); err != nil || len(names) != 1 || names[0] != motdFiles || left == nil {
		t.Errorf("pruned %v, %v; the readers' mark: %v", names, err, left)
	}
}

func TestPruneListsTheDirectoryOnceForAllAtoms(t *testing.T) {
	k, r, reads := unlogged(t), ask(sleeper(t)), 0
	for _, r.Atom.Operand = range []string{"a", "b", "c"} {
		letGo(t, k, r, wantVerdict(t, k, r, locker.Acquired))
	}
	var pruned []atom.Name
	var err error
	watched(t, k, unix.SYS_GETDENTS64, func() { pruned, err = k.Prune(0) }, func() unix.Errno { reads++; return 0 })
	if err != nil || len(pruned) != 3 || reads > 2 { // the second read finds the end
		t.Errorf("pruned %v in %d reads, %v", pruned, reads, err)
	}
}

func TestATakeoversLockIsMadeAfterTheOwnersDeath(t *testing.T) {
	k, ready := newLocker(t), filepath.Join(t.TempDir(), "ready")
	deaf := start(t, `trap "" INT TERM; : >'`+ready+`'; while :; do sleep 1; done`)
	eventually(t, "the owner ignores signals", func() bool { _, err := os.Stat(ready); return err == nil })
	wantVerdict(t, k, ask(deaf), locker.Acquired)
	newcomer := hasty(sleeper(t))
	newcomer.Pause = time.Second / 2
	began := process.Boottime()
	wantVerdict(t, k, newcomer, locker.Acquired)
	if into := lockOf(t, k).Record.Boottime - began; into < 2*newcomer.Pause {
		t.Errorf("the lock is from %v after the first signal, when the owner lived", into)
	}
}

func TestARunWithoutFromStartReplacesTheOldStart(t *testing.T) {
	k, owner := newLocker(t), sleeper(t)
	r := ask(owner)
	r.FromStart = true
	release(t, k, wantVerdict(t, k, r, locker.Acquired))
	last := must.Get(k.Dir.Last(motdFiles))(t)
	last.Memory.Started = time.Now().Add(-2 * time.Hour)
	must.Do(t, k.Dir.Remember(motdFiles, time.Now().Add(-time.Hour), last.Memory))
	release(t, k, wantVerdict(t, k, ask(owner), locker.Acquired))
	r.Limits.IfElapsed = 30 * time.Minute
	wantVerdict(t, k, r, locker.TooSoon)
}

func self(t *testing.T) process.Identity {
	t.Helper()
	return must.Get(process.Of(os.Getpid()))(t)
}

func wantLocks(t *testing.T, k *Locker, want int) {
	t.Helper()
	got := slices.DeleteFunc(locksOf(t, k), func(file string) bool { return atom.ParseFile(file).Name != motdFiles })
	if len(got) != want {
		t.Errorf("%q are in place, want %d", got, want)
	}
}

func TestANewcomerDoesNotWithdrawTheLockOfAnotherOwner(t *testing.T) {
	for _, owner := range []process.Identity{sleeper(t), dead(t)} {
		k := newLocker(t)
		taken := wantVerdict(t, k, ask(owner), locker.Acquired)
		must.Do(t, k.Release(locker.ReleaseRequest{Name: motdFiles, Token: taken.Token, Withdraw: true}))
		wantLocks(t, k, 1)
	}
}

func TestARepeatedReleaseOfALostLockIsNoError(t *testing.T) {
	k := newLocker(t)
	taken := wantVerdict(t, k, ask(self(t)), locker.Acquired)
	release(t, k, taken)
	wantVerdict(t, k, ask(sleeper(t)), locker.Acquired)
	for again, want := range map[bool]fault.Kind{true: 0, false: fault.Denied} {
		err := k.Release(locker.ReleaseRequest{Name: motdFiles, Token: taken.Token, Again: again})
		if fault.KindOf(err) != want {
			t.Errorf("begun before %v: %v", again, err)
		}
	}
	wantLocks(t, k, 1)
}

func TestAReaderThatHoldsBothItsLocksReleasesBoth(t *testing.T) {
	k, owner := newLocker(t), self(t)
	taken := wantVerdict(t, k, read(owner), locker.Acquired)
	plant(t, k, contentOf(t, k, readerLock(owner).String()), 0)
	release(t, k, taken)
	wantLocks(t, k, 0)
}

// asked is a variable that makes this test a program: it prints what OwnedBy returns for that pid.
const asked = "ADLOCK_TEST_OWNER"

func TestOnlyThisProcessOrAnAncestorCanBeTheOwner(t *testing.T) {
	if pid := os.Getenv(asked); pid != "" {
		n, _ := strconv.Atoi(pid)
		id, err := locker.OwnedBy(n)
		_, untold := err.(fault.Untold)
		fmt.Println(id.PID, fault.KindOf(err), err, untold)
		os.Exit(0)
	}
	answer := func(pid int) string {
		t.Helper()
		command := exec.Command(os.Args[0], "-test.run=^TestOnlyThisProcessOrAnAncestorCanBeTheOwner$")
		command.Env = append(os.Environ(), asked+"="+strconv.Itoa(pid))
		out := must.Get(command.Output())(t)
		return strings.TrimSpace(string(out))
	}
	self, stranger := os.Getpid(), sleeper(t).PID
	refused := "0 " + strconv.Itoa(int(fault.Usage)) + " --owner: is not an ancestor of this process "
	for pid, want := range map[int]string{
		self:        strconv.Itoa(self) + " 0 <nil> false",
		stranger:    refused + "false",
		dead(t).PID: refused + "true",
	} {
		if got := answer(pid); got != want {
			t.Errorf("owner %d: %s, want %s", pid, got, want)
		}
	}
	for _, pid := range []int{self, os.Getppid()} { // in a pid namespace the parent may be process 1
		if id, err := locker.OwnedBy(pid); err != nil || id.PID != pid {
			t.Errorf("process %d, named: %v, %v", pid, id.PID, err)
		}
	}
}
