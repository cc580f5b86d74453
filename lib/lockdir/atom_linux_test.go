package lockdir

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/lockdir/lockfile"
	"adlock/lib/locker"
	"adlock/lib/policy"
	"adlock/lib/process"
	"adlock/lib/record"
	"adlock/lib/runlog"
	"adlock/test/support/helper"
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
	if err := os.Chmod(path, 0o700); err != nil {
		t.Fatal(err)
	}
	dir, err := lockfile.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dir.Close() })
	return &Locker{Dir: dir, Recorder: locker.Recorder{Log: &runlog.Log{Dir: path, Host: "dax"}}}
}

// start runs a process until the test ends and returns its identity.
func start(t *testing.T, script string) process.Identity {
	t.Helper()
	command := exec.Command("sh", "-c", script)
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	reaped := make(chan struct{})
	go func() { command.Wait(); close(reaped) }()
	t.Cleanup(func() {
		syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
		<-reaped
	})
	id, err := process.Of(command.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// dead returns the identity of a process that has ended.
func dead(t *testing.T) process.Identity {
	t.Helper()
	id := start(t, "exec sleep 60")
	end(t, id)
	return id
}

func end(t *testing.T, id process.Identity) {
	t.Helper()
	syscall.Kill(id.PID, syscall.SIGKILL)
	eventually(t, "the process is gone", func() bool { return id.Life() == process.Dead })
}

func eventually(t *testing.T, claim string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(helper.Patience); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("not so in time: " + claim)
		}
	}
}

func ask(owner process.Identity) locker.Request {
	return locker.Request{
		Atom: motd, Owner: owner, Pause: 100 * time.Millisecond,
		Limits: policy.Limits{ExpireAfter: time.Hour, Source: policy.Said},
	}
}

func wantVerdict(t *testing.T, k *Locker, r locker.Request, want locker.Verdict) locker.Outcome {
	t.Helper()
	outcome, err := k.Take(r)
	if err != nil && want != locker.Stuck {
		t.Fatalf("Take: %v", err)
	}
	if outcome.Verdict != want {
		t.Fatalf("verdict is %q (%s), want %q", outcome.Verdict, outcome.Reason, want)
	}
	return outcome
}

func release(t *testing.T, k *Locker, o locker.Outcome) {
	t.Helper()
	if err := k.Release(locker.ReleaseRequest{Name: motdFiles, Token: o.Token}); err != nil {
		t.Fatal(err)
	}
}

func plant(t *testing.T, k *Locker, content string, age time.Duration) {
	t.Helper()
	plantFile(t, k, "lock."+motdFiles, content, age)
}

func plantFile(t *testing.T, k *Locker, file, content string, age time.Duration) {
	t.Helper()
	path := k.Dir.Path(file)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	then := time.Now().Add(-age)
	if err := os.Chtimes(path, then, then); err != nil {
		t.Fatal(err)
	}
}

func lastStamp(t *testing.T, k *Locker) time.Time {
	t.Helper()
	info, err := os.Stat(k.Dir.Path("last." + motdFiles))
	if err != nil {
		t.Fatal(err)
	}
	return info.ModTime()
}

func setLast(t *testing.T, k *Locker, at time.Time) {
	t.Helper()
	if err := os.Chtimes(k.Dir.Path("last."+motdFiles), at, at); err != nil {
		t.Fatal(err)
	}
}

func TestALockHoldsItsOwnersPidOnTheFirstLine(t *testing.T) {
	k, owner := newLocker(t), start(t, "exec sleep 60")
	outcome := wantVerdict(t, k, ask(owner), locker.Acquired)
	content, err := os.ReadFile(k.Dir.Path("lock." + motdFiles))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(content), "\n")
	if lines[0] != strconv.Itoa(owner.PID) || lines[1] != "token="+outcome.Token {
		t.Errorf("lines 1 and 2 are %q", lines[:2])
	}
	if stamp := lastStamp(t, k); stamp.Unix() != 0 {
		t.Errorf("the last lock of an atom that never completed says %v", stamp)
	}
}

func TestABusyAtomIsDeniedAndAReleasedOneIsTooSoonUntilIfElapsed(t *testing.T) {
	k, owner, other := newLocker(t), start(t, "exec sleep 60"), start(t, "exec sleep 60")
	held := wantVerdict(t, k, ask(owner), locker.Acquired)
	wantVerdict(t, k, ask(other), locker.Busy)
	release(t, k, held)
	again := ask(other)
	again.Limits.IfElapsed = time.Hour
	wantVerdict(t, k, again, locker.TooSoon)
	setLast(t, k, time.Now().Add(-time.Hour-time.Minute))
	wantVerdict(t, k, again, locker.Acquired)
}

func TestADeadOwnersLockIsReclaimedAtOnceAndStamped(t *testing.T) {
	k, gone := newLocker(t), start(t, "exec sleep 60")
	wantVerdict(t, k, ask(gone), locker.Acquired)
	end(t, gone)
	wantVerdict(t, k, ask(start(t, "exec sleep 60")), locker.Acquired)
	if time.Since(lastStamp(t, k)) > time.Minute {
		t.Error("the last lock was not stamped")
	}
}

func TestAnExpiredOwnerIsEndedAndReplaced(t *testing.T) {
	k, hung := newLocker(t), start(t, "trap '' INT TERM; sleep 60 & wait; sleep 60")
	wantVerdict(t, k, ask(hung), locker.Acquired)
	newcomer := ask(start(t, "exec sleep 60"))
	newcomer.Limits.ExpireAfter = 0
	wantVerdict(t, k, newcomer, locker.Acquired)
	if hung.Life() != process.Dead {
		t.Error("the owner lives")
	}
}

func TestAnExpiredOwnerIsNotEndedWithLeaveExpired(t *testing.T) {
	k, hung := newLocker(t), start(t, "exec sleep 60")
	wantVerdict(t, k, ask(hung), locker.Acquired)
	newcomer := ask(start(t, "exec sleep 60"))
	newcomer.Limits.ExpireAfter, newcomer.LeaveExpired = 0, true
	wantVerdict(t, k, newcomer, locker.Expired)
	if hung.Life() != process.Alive {
		t.Error("the owner was ended")
	}
}

func TestAnAtomThatCallsItselfIsBusyWhateverItsAge(t *testing.T) {
	k := newLocker(t)
	self, err := process.Of(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	wantVerdict(t, k, ask(self), locker.Acquired)
	again := ask(self)
	again.Limits.ExpireAfter = 0
	wantVerdict(t, k, again, locker.Busy)
}

func TestAnOwnerThatCannotBeCheckedIsBusyThenStuck(t *testing.T) {
	k, elsewhere := newLocker(t), start(t, "exec sleep 60")
	elsewhere.PIDNS++
	wantVerdict(t, k, ask(elsewhere), locker.Acquired)
	newcomer := ask(start(t, "exec sleep 60"))
	wantVerdict(t, k, newcomer, locker.Busy)
	newcomer.Limits.ExpireAfter = 0
	_, err := k.Take(newcomer)
	if fault.KindOf(err) != fault.NotPermitted || !strings.Contains(err.Error(), "adlock clear "+motdFiles) {
		t.Errorf("stuck says %v", err)
	}
	if err := k.Clear(motdLock); err != nil {
		t.Errorf("clear: %v", err)
	}
	wantVerdict(t, k, newcomer, locker.Acquired)
}

func TestALivingOwnersLockIsNotCleared(t *testing.T) {
	k := newLocker(t)
	wantVerdict(t, k, ask(start(t, "exec sleep 60")), locker.Acquired)
	if err := k.Clear(motdLock); fault.KindOf(err) != fault.NotPermitted {
		t.Errorf("clear: %v", err)
	}
}

func TestAReleaseWithAnothersTokenChangesNothing(t *testing.T) {
	k := newLocker(t)
	wantVerdict(t, k, ask(start(t, "exec sleep 60")), locker.Acquired)
	err := k.Release(locker.ReleaseRequest{Name: motdFiles, Token: record.NewToken()})
	if fault.KindOf(err) != fault.Denied {
		t.Errorf("release: %v", err)
	}
	wantVerdict(t, k, ask(start(t, "exec sleep 60")), locker.Busy)
	if lastStamp(t, k).Unix() != 0 {
		t.Error("the last lock was stamped")
	}
}

func TestAReleaseWhoseGuardIsTakenChangesNothing(t *testing.T) {
	k := newLocker(t)
	held := wantVerdict(t, k, ask(start(t, "exec sleep 60")), locker.Acquired)
	guard, err := k.Dir.Active(motdFiles)
	if err != nil {
		t.Fatal(err)
	}
	if err := guard.Guard(0); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := k.Release(locker.ReleaseRequest{Name: motdFiles, Token: held.Token}); fault.KindOf(err) != fault.Denied {
		t.Errorf("release: %v", err)
	}
	if waited := time.Since(began); waited < 200*time.Millisecond {
		t.Errorf("it waited %v for a newcomer that may only be looking", waited)
	}
	guard.Close()
	release(t, k, held)
}

func TestAnEmptyLockIsBusyForAMinuteThenCleared(t *testing.T) {
	k, r := newLocker(t), ask(start(t, "exec sleep 60"))
	plant(t, k, "", 50*time.Second)
	wantVerdict(t, k, r, locker.Busy)
	plant(t, k, "", 70*time.Second)
	wantVerdict(t, k, r, locker.Acquired)
}

func TestALockWithOnlyAPidIsBusyWhileItLivesAndNeverSignalled(t *testing.T) {
	k, owner, r := newLocker(t), start(t, "exec sleep 60"), ask(start(t, "exec sleep 60"))
	r.Limits.ExpireAfter = 0
	plant(t, k, strconv.Itoa(owner.PID)+"\n", time.Hour)
	wantVerdict(t, k, r, locker.Busy)
	if owner.Life() != process.Alive {
		t.Fatal("the owner was ended")
	}
	end(t, owner)
	wantVerdict(t, k, r, locker.Acquired)
}

func TestADamagedLockIsAnErrorAndStays(t *testing.T) {
	k, owner := newLocker(t), dead(t)
	wantVerdict(t, k, ask(owner), locker.Acquired)
	whole, err := os.ReadFile(k.Dir.Path("lock." + motdFiles))
	if err != nil {
		t.Fatal(err)
	}
	newcomer := ask(start(t, "exec sleep 60"))
	for size := 1; size < len(whole); size++ {
		content := string(whole[:size])
		if _, got := record.Parse([]byte(content)); got == record.PIDOnly {
			continue // the line of the pid is whole, so the lock is not damaged
		}
		plant(t, k, content, 0)
		if _, err := k.Take(newcomer); fault.KindOf(err) != fault.IO {
			t.Fatalf("cut to %d bytes: %v", size, err)
		}
		if kept, _ := os.ReadFile(k.Dir.Path("lock." + motdFiles)); string(kept) != content {
			t.Fatalf("cut to %d bytes: the lock was changed", size)
		}
	}
}

func TestNothingButAPlainFileIsTakenForALock(t *testing.T) {
	for kind, make := range map[string]func(path string) error{
		"symbolic link": func(path string) error { return os.Symlink("/etc/passwd", path) },
		"dangling link": func(path string) error { return os.Symlink("nowhere", path) },
		"FIFO":          func(path string) error { return unix.Mkfifo(path, 0o600) },
		"directory":     func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		for _, which := range []string{"lock.", "last."} {
			k := newLocker(t)
			if err := make(k.Dir.Path(which + motdFiles)); err != nil {
				t.Fatal(err)
			}
			if _, err := k.Take(ask(start(t, "exec sleep 60"))); fault.KindOf(err) != fault.NotPermitted {
				t.Errorf("%s as %s: %v", kind, which, err)
			}
		}
	}
}

func TestAnotherAtomOfTheSameNameIsAnErrorNamingBoth(t *testing.T) {
	k, r := newLocker(t), ask(start(t, "exec sleep 60"))
	wantVerdict(t, k, r, locker.Acquired)
	path := k.Dir.Path("lock." + motdFiles)
	content, _ := os.ReadFile(path)
	plant(t, k, strings.Replace(string(content), `"/etc/motd"`, `"/etc/other"`, 1), 0)
	_, err := k.Take(r)
	if err == nil || !strings.Contains(err.Error(), "/etc/other") || !strings.Contains(err.Error(), "/etc/motd") {
		t.Errorf("Take: %v", err)
	}
}

func TestTheIdentityOfAChecksummedNameSurvivesInItsLastLock(t *testing.T) {
	k, r := newLocker(t), ask(start(t, "exec sleep 60"))
	r.Atom.Operand = "my_db"
	held := wantVerdict(t, k, r, locker.Acquired)
	for range 2 {
		if err := k.Release(locker.ReleaseRequest{Name: r.Atom.Name(), Token: held.Token}); err != nil {
			t.Fatal(err)
		}
		last, err := k.Dir.Last(r.Atom.Name())
		if err != nil || last.Memory.Atom != r.Atom {
			t.Fatalf("remembered %v, %v", last.Memory.Atom, err)
		}
		os.Remove(k.Dir.Path(r.Atom.Name().LastLock()))
		held = wantVerdict(t, k, r, locker.Acquired)
	}
}

func TestALastLockInTheFutureIsNotBelieved(t *testing.T) {
	k, r := newLocker(t), ask(start(t, "exec sleep 60"))
	release(t, k, wantVerdict(t, k, r, locker.Acquired))
	setLast(t, k, time.Now().Add(time.Hour))
	r.Limits.IfElapsed = time.Minute
	held := wantVerdict(t, k, r, locker.Acquired)
	release(t, k, held)
	if time.Until(lastStamp(t, k)) > 0 {
		t.Error("the release left it in the future")
	}
}

func TestAStepOfTheWallClockDoesNotExpireAnOwner(t *testing.T) {
	k, owner := newLocker(t), start(t, "exec sleep 60")
	wantVerdict(t, k, ask(owner), locker.Acquired)
	long := time.Now().Add(-100 * time.Hour)
	if err := os.Chtimes(k.Dir.Path("lock."+motdFiles), long, long); err != nil {
		t.Fatal(err)
	}
	wantVerdict(t, k, ask(start(t, "exec sleep 60")), locker.Busy)
}

func TestAPassClockReplacesNowInBothDecisions(t *testing.T) {
	k, owner := newLocker(t), start(t, "exec sleep 60")
	r := ask(owner)
	r.Limits.IfElapsed = time.Minute
	r.Now = time.Now().Add(-time.Minute)
	held := wantVerdict(t, k, r, locker.Acquired)
	release(t, k, held)
	wantVerdict(t, k, r, locker.TooSoon) // stamped after the pass began
	r.Limits.IfElapsed = 0
	wantVerdict(t, k, r, locker.Acquired)
	newcomer := ask(start(t, "exec sleep 60"))
	newcomer.Now = time.Now().Add(2 * time.Hour)
	wantVerdict(t, k, newcomer, locker.Acquired) // an hour has passed on the pass's clock
	if owner.Life() != process.Dead {
		t.Error("the owner lives")
	}
}

func TestFromStartCountsFromTheStartOfTheLastRun(t *testing.T) {
	k, r := newLocker(t), ask(start(t, "exec sleep 60"))
	r.FromStart, r.Limits.IfElapsed = true, time.Hour
	held := wantVerdict(t, k, r, locker.Acquired)
	began := time.Now().Add(-time.Hour)
	if err := os.Chtimes(k.Dir.Path("lock."+motdFiles), began, began); err != nil {
		t.Fatal(err)
	}
	release(t, k, held)
	fromEnd := r
	fromEnd.FromStart = false
	wantVerdict(t, k, fromEnd, locker.TooSoon)
	wantVerdict(t, k, r, locker.Acquired)
}

func TestSlotsBoundTheProgramAndRecoverFromACrash(t *testing.T) {
	k := newLocker(t)
	in := func(owner process.Identity, operand string) locker.Request {
		r := ask(owner)
		r.Atom.Operand, r.Slots = operand, 2
		return r
	}
	first, second := start(t, "exec sleep 60"), start(t, "exec sleep 60")
	one := wantVerdict(t, k, in(first, "a"), locker.Acquired)
	nested := wantVerdict(t, k, in(first, "nested"), locker.Acquired) // shares its owner's slot
	wantVerdict(t, k, in(second, "b"), locker.Acquired)
	third := start(t, "exec sleep 60")
	wantVerdict(t, k, in(third, "c"), locker.Full)
	if _, err := os.Stat(k.Dir.Path("lock.cfengine_conf.dax.editfile.c")); err == nil {
		t.Error("a full program keeps the atom's lock")
	}
	end(t, second)
	wantVerdict(t, k, in(third, "c"), locker.Acquired)
	letGo(t, k, in(first, "a"), one)
	letGo(t, k, in(first, "nested"), nested)
	wantVerdict(t, k, in(start(t, "exec sleep 60"), "d"), locker.Acquired)
}

func TestADamagedSlotIsAnErrorAndNotFull(t *testing.T) {
	k, r := newLocker(t), ask(start(t, "exec sleep 60"))
	r.Slots = 1
	slot := k.Dir.Path(r.Atom.Slot(1).ActiveLock())
	if err := os.WriteFile(slot, []byte("12"), 0o600); err != nil {
		t.Fatal(err)
	}
	if o, err := k.Take(r); fault.KindOf(err) != fault.IO || !strings.Contains(err.Error(), slot) {
		t.Errorf("verdict %q, %v", o.Verdict, err)
	}
	if _, err := os.Stat(k.Dir.Path("lock." + motdFiles)); err == nil {
		t.Error("the atom's lock was kept")
	}
}

func TestOfManyNewcomersExactlyOneTakesTheAtom(t *testing.T) {
	for name, prepare := range map[string]func(*testing.T, *Locker){
		"free":   func(*testing.T, *Locker) {},
		"corpse": func(t *testing.T, k *Locker) { wantVerdict(t, k, ask(dead(t)), locker.Acquired) },
		"hung":   func(t *testing.T, k *Locker) { wantVerdict(t, k, ask(start(t, "exec sleep 60")), locker.Acquired) },
	} {
		t.Run(name, func(t *testing.T) {
			for range 6 {
				k := newLocker(t)
				prepare(t, k)
				if taken := race(t, k, 8, name == "hung"); taken != 1 {
					t.Fatalf("%d took the atom", taken)
				}
			}
		})
	}
}

func race(t *testing.T, k *Locker, newcomers int, expired bool) (taken int) {
	var gate, done sync.WaitGroup
	var count sync.Mutex
	gate.Add(1)
	for range newcomers {
		r := ask(start(t, "exec sleep 60"))
		if expired {
			// The later newcomers must not end the first one.
			r.Limits.ExpireAfter = time.Millisecond
		}
		done.Go(func() {
			gate.Wait()
			outcome, err := k.Take(r)
			if err != nil {
				t.Errorf("Take: %v", err)
			}
			count.Lock()
			defer count.Unlock()
			if outcome.Verdict == locker.Acquired && r.Owner.Life() == process.Alive {
				taken++
			}
		})
	}
	if expired {
		time.Sleep(2 * time.Millisecond)
	}
	gate.Done()
	done.Wait()
	if expired { // the replaced owners are dead: one living owner is left
		active, err := k.Dir.Active(motdFiles)
		if err != nil {
			t.Fatal(err)
		}
		defer active.Close()
		if active.Record.Owner.Life() == process.Alive {
			return 1
		}
		return 0
	}
	return taken
}

func TestAWaitingNewcomerWakesWhenTheLockGoes(t *testing.T) {
	k, owner := newLocker(t), start(t, "exec sleep 60")
	held := wantVerdict(t, k, ask(owner), locker.Acquired)
	r := ask(start(t, "exec sleep 60"))
	r.Wait = time.Minute
	wakesAtRelease(t, k, r, held)
}

// wakesAtRelease makes the newcomer wait until the held lock is released.
func wakesAtRelease(t *testing.T, k *Locker, r locker.Request, held locker.Outcome) {
	t.Helper()
	verdict := make(chan locker.Verdict)
	go func() { outcome, _ := k.Take(r); verdict <- outcome.Verdict }()
	select {
	case v := <-verdict:
		t.Fatalf("did not wait: %s", v)
	case <-time.After(50 * time.Millisecond):
	}
	release(t, k, held)
	if v := <-verdict; v != locker.Acquired {
		t.Errorf("verdict is %s", v)
	}
}

func TestAWaitingNewcomerWakesWhenTheOwnerDies(t *testing.T) {
	k, owner := newLocker(t), start(t, "exec sleep 60")
	wantVerdict(t, k, ask(owner), locker.Acquired)
	r := ask(start(t, "exec sleep 60"))
	r.Wait = time.Minute
	verdict := make(chan locker.Verdict)
	go func() { outcome, _ := k.Take(r); verdict <- outcome.Verdict }()
	time.Sleep(20 * time.Millisecond)
	end(t, owner)
	if v := <-verdict; v != locker.Acquired {
		t.Errorf("verdict is %s", v)
	}
}

func TestWaitingGivesUpInTime(t *testing.T) {
	k := newLocker(t)
	wantVerdict(t, k, ask(start(t, "exec sleep 60")), locker.Acquired)
	r := ask(start(t, "exec sleep 60"))
	r.Wait = time.Second
	began := time.Now()
	wantVerdict(t, k, r, locker.Busy)
	took := time.Since(began)
	if took < r.Wait || took > helper.Patience {
		t.Errorf("gave up after %v", took)
	}
	for e := range k.Log.Newest(1 << 20) {
		if e.Kind == runlog.Deny && (e.Wait < r.Wait || e.Wait > took) {
			t.Errorf("waited %v, the runlog has %v", took, e.Wait)
		}
	}
}

func TestTooSoonIsWaitedForOnlyWhenAsked(t *testing.T) {
	k, r := newLocker(t), ask(start(t, "exec sleep 60"))
	release(t, k, wantVerdict(t, k, r, locker.Acquired))
	r.Limits.IfElapsed, r.Wait = time.Hour, time.Minute
	setLast(t, k, time.Now().Add(30*time.Second-time.Hour))
	wantVerdict(t, k, r, locker.TooSoon)
	r.WaitElapsed = true
	setLast(t, k, time.Now().Add(time.Second-time.Hour))
	wantVerdict(t, k, r, locker.Acquired)
}

func TestPruneRemovesUnusedLastLocks(t *testing.T) {
	k, r := newLocker(t), ask(start(t, "exec sleep 60"))
	release(t, k, wantVerdict(t, k, r, locker.Acquired))
	other := r
	other.Atom.Operand = "held"
	wantVerdict(t, k, other, locker.Acquired)
	if names, err := k.Prune(time.Hour); err != nil || len(names) != 0 {
		t.Errorf("pruned %v, %v", names, err)
	}
	if names, err := k.Prune(0); err != nil || len(names) != 1 || names[0] != motdFiles {
		t.Errorf("pruned %v, %v", names, err)
	}
}

func TestADryRunMakesNoDirectory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none")
	r := ask(process.Identity{})
	granted, reason, err := DryRun(path, &r)
	if err != nil || !granted || reason == "" {
		t.Errorf("%v %q %v", granted, reason, err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Error("the directory was made")
	}
}

func TestNoTemporaryFileIsLeftBehind(t *testing.T) {
	k := newLocker(t)
	for range 3 {
		wantVerdict(t, k, ask(dead(t)), locker.Acquired)
	}
	files, err := k.Dir.Files(atom.TemporaryFile)
	if err != nil || len(files) != 0 {
		t.Errorf("%v %v", files, err)
	}
}
