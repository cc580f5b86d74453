package atom

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

	"adlock/lib/exit"
	"adlock/lib/lock"
	"adlock/lib/name"
	"adlock/lib/policy"
	"adlock/lib/process"
	"adlock/lib/runlog"
)

var motd = name.Atom{Program: "cfengine.conf", Host: "dax", Operator: "editfile", Operand: "/etc/motd"}

const motdFiles = "cfengine_conf.dax.editfile._etc_motd"

func newKeeper(t *testing.T) *Keeper {
	t.Helper()
	path := t.TempDir()
	if err := os.Chmod(path, 0o700); err != nil {
		t.Fatal(err)
	}
	dir, err := lock.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dir.Close() })
	return &Keeper{Dir: dir, Log: &runlog.Log{Dir: path, Host: "dax"}}
}

// start runs a process for the length of the test and returns its identity.
func start(t *testing.T, script string) process.Identity {
	t.Helper()
	command := exec.Command("sh", "-c", script)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
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

// dead returns the identity of a process that is gone.
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
	for deadline := time.Now().Add(20 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("not so within 20 s: " + claim)
		}
	}
}

func ask(owner process.Identity) Request {
	return Request{
		Atom: motd, Owner: owner, Pause: 100 * time.Millisecond,
		Limits: policy.Limits{ExpireAfter: time.Hour, Explicit: true},
	}
}

func wantVerdict(t *testing.T, k *Keeper, r Request, want Verdict) Outcome {
	t.Helper()
	outcome, err := k.Take(r)
	if err != nil && want != Stuck {
		t.Fatalf("Take: %v", err)
	}
	if outcome.Verdict != want {
		t.Fatalf("verdict is %q (%s), want %q", outcome.Verdict, outcome.Reason, want)
	}
	return outcome
}

func release(t *testing.T, k *Keeper, o Outcome) {
	t.Helper()
	if err := k.Release(Return{Files: motdFiles, Token: o.Token}); err != nil {
		t.Fatal(err)
	}
}

func plant(t *testing.T, k *Keeper, content string, age time.Duration) {
	t.Helper()
	path := k.Dir.Path("lock." + motdFiles)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	then := time.Now().Add(-age)
	if err := os.Chtimes(path, then, then); err != nil {
		t.Fatal(err)
	}
}

func lastStamp(t *testing.T, k *Keeper) time.Time {
	t.Helper()
	info, err := os.Stat(k.Dir.Path("last." + motdFiles))
	if err != nil {
		t.Fatal(err)
	}
	return info.ModTime()
}

func setLast(t *testing.T, k *Keeper, at time.Time) {
	t.Helper()
	if err := os.Chtimes(k.Dir.Path("last."+motdFiles), at, at); err != nil {
		t.Fatal(err)
	}
}

func TestALockHoldsItsOwnersPidOnTheFirstLine(t *testing.T) {
	k, owner := newKeeper(t), start(t, "exec sleep 60")
	outcome := wantVerdict(t, k, ask(owner), Acquired)
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
	k, owner, other := newKeeper(t), start(t, "exec sleep 60"), start(t, "exec sleep 60")
	held := wantVerdict(t, k, ask(owner), Acquired)
	wantVerdict(t, k, ask(other), Busy)
	release(t, k, held)
	again := ask(other)
	again.Limits.IfElapsed = time.Hour
	wantVerdict(t, k, again, TooSoon)
	setLast(t, k, time.Now().Add(-time.Hour-time.Minute))
	wantVerdict(t, k, again, Acquired)
}

func TestADeadOwnersLockIsReclaimedAtOnceAndStamped(t *testing.T) {
	k, gone := newKeeper(t), start(t, "exec sleep 60")
	wantVerdict(t, k, ask(gone), Acquired)
	end(t, gone)
	wantVerdict(t, k, ask(start(t, "exec sleep 60")), Acquired)
	if time.Since(lastStamp(t, k)) > time.Minute {
		t.Error("the last lock was not stamped")
	}
}

func TestAnExpiredOwnerIsEndedAndReplaced(t *testing.T) {
	k, hung := newKeeper(t), start(t, "trap '' INT TERM; sleep 60 & wait; sleep 60")
	wantVerdict(t, k, ask(hung), Acquired)
	newcomer := ask(start(t, "exec sleep 60"))
	newcomer.Limits.ExpireAfter = 0
	wantVerdict(t, k, newcomer, Acquired)
	if hung.Life() != process.Dead {
		t.Error("the owner lives")
	}
}

func TestAnExpiredOwnerIsLeftToTheSecondStepOfTheLibrary(t *testing.T) {
	k, hung := newKeeper(t), start(t, "exec sleep 60")
	wantVerdict(t, k, ask(hung), Acquired)
	newcomer := ask(start(t, "exec sleep 60"))
	newcomer.Limits.ExpireAfter, newcomer.LeaveExpired = 0, true
	wantVerdict(t, k, newcomer, Expired)
	if hung.Life() != process.Alive {
		t.Error("the owner was ended")
	}
}

func TestAnAtomThatCallsItselfIsBusyWhateverItsAge(t *testing.T) {
	k := newKeeper(t)
	self, err := process.Of(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	wantVerdict(t, k, ask(self), Acquired)
	again := ask(self)
	again.Limits.ExpireAfter = 0
	wantVerdict(t, k, again, Busy)
}

func TestAnOwnerThatCannotBeCheckedIsBusyThenStuck(t *testing.T) {
	k, elsewhere := newKeeper(t), start(t, "exec sleep 60")
	elsewhere.PIDNS++
	wantVerdict(t, k, ask(elsewhere), Acquired)
	newcomer := ask(start(t, "exec sleep 60"))
	wantVerdict(t, k, newcomer, Busy)
	newcomer.Limits.ExpireAfter = 0
	_, err := k.Take(newcomer)
	if exit.Code(err) != exit.NotPermitted || !strings.Contains(err.Error(), "adlock clear "+motdFiles) {
		t.Errorf("stuck says %v", err)
	}
	if err := k.Clear(motdFiles); err != nil {
		t.Errorf("clear: %v", err)
	}
	wantVerdict(t, k, newcomer, Acquired)
}

func TestTheLivingAreNotCleared(t *testing.T) {
	k := newKeeper(t)
	wantVerdict(t, k, ask(start(t, "exec sleep 60")), Acquired)
	if err := k.Clear(motdFiles); exit.Code(err) != exit.NotPermitted {
		t.Errorf("clear: %v", err)
	}
}

func TestAReleaseWithAnothersTokenChangesNothing(t *testing.T) {
	k := newKeeper(t)
	wantVerdict(t, k, ask(start(t, "exec sleep 60")), Acquired)
	err := k.Release(Return{Files: motdFiles, Token: lock.Token()})
	if exit.Code(err) != exit.Denied {
		t.Errorf("release: %v", err)
	}
	wantVerdict(t, k, ask(start(t, "exec sleep 60")), Busy)
	if lastStamp(t, k).Unix() != 0 {
		t.Error("the last lock was stamped")
	}
}

func TestAReleaseWhoseGuardIsTakenChangesNothing(t *testing.T) {
	k := newKeeper(t)
	held := wantVerdict(t, k, ask(start(t, "exec sleep 60")), Acquired)
	guard, err := k.Dir.Active(motdFiles)
	if err != nil {
		t.Fatal(err)
	}
	if err := guard.Guard(0); err != nil {
		t.Fatal(err)
	}
	if err := k.Release(Return{Files: motdFiles, Token: held.Token}); exit.Code(err) != exit.Denied {
		t.Errorf("release: %v", err)
	}
	guard.Close()
	release(t, k, held)
}

func TestAnEmptyLockIsBusyForAMinuteThenCleared(t *testing.T) {
	k, r := newKeeper(t), ask(start(t, "exec sleep 60"))
	plant(t, k, "", 50*time.Second)
	wantVerdict(t, k, r, Busy)
	plant(t, k, "", 70*time.Second)
	wantVerdict(t, k, r, Acquired)
}

func TestALockWithOnlyAPidIsBusyWhileItLivesAndNeverSignalled(t *testing.T) {
	k, owner, r := newKeeper(t), start(t, "exec sleep 60"), ask(start(t, "exec sleep 60"))
	r.Limits.ExpireAfter = 0
	plant(t, k, strconv.Itoa(owner.PID)+"\n", time.Hour)
	wantVerdict(t, k, r, Busy)
	if owner.Life() != process.Alive {
		t.Fatal("the owner was ended")
	}
	end(t, owner)
	wantVerdict(t, k, r, Acquired)
}

func TestADamagedLockIsAnErrorAndStays(t *testing.T) {
	k, owner := newKeeper(t), dead(t)
	wantVerdict(t, k, ask(owner), Acquired)
	whole, err := os.ReadFile(k.Dir.Path("lock." + motdFiles))
	if err != nil {
		t.Fatal(err)
	}
	newcomer := ask(start(t, "exec sleep 60"))
	for size := 1; size < len(whole); size++ {
		content := string(whole[:size])
		if _, got := lock.Parse([]byte(content)); got == lock.PIDOnly {
			continue // the pid is whole: busy while it lives
		}
		plant(t, k, content, time.Hour)
		if _, err := k.Take(newcomer); exit.Code(err) != exit.IO {
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
			k := newKeeper(t)
			if err := make(k.Dir.Path(which + motdFiles)); err != nil {
				t.Fatal(err)
			}
			if _, err := k.Take(ask(start(t, "exec sleep 60"))); exit.Code(err) != exit.NotPermitted {
				t.Errorf("%s as %s: %v", kind, which, err)
			}
		}
	}
}

func TestAnotherAtomOfTheSameNameIsAnErrorNamingBoth(t *testing.T) {
	k, r := newKeeper(t), ask(start(t, "exec sleep 60"))
	wantVerdict(t, k, r, Acquired)
	path := k.Dir.Path("lock." + motdFiles)
	content, _ := os.ReadFile(path)
	plant(t, k, strings.Replace(string(content), `"/etc/motd"`, `"/etc/other"`, 1), 0)
	_, err := k.Take(r)
	if err == nil || !strings.Contains(err.Error(), "/etc/other") || !strings.Contains(err.Error(), "/etc/motd") {
		t.Errorf("Take: %v", err)
	}
}

func TestTheIdentityOfAChecksummedNameSurvivesInItsLastLock(t *testing.T) {
	k, r := newKeeper(t), ask(start(t, "exec sleep 60"))
	r.Atom.Operand = "my_db"
	held := wantVerdict(t, k, r, Acquired)
	for range 2 {
		if err := k.Release(Return{Files: r.Atom.Name(), Token: held.Token}); err != nil {
			t.Fatal(err)
		}
		last, err := k.Dir.Last(r.Atom.Name())
		if err != nil || last.Memory.Atom != r.Atom {
			t.Fatalf("remembered %v, %v", last.Memory.Atom, err)
		}
		os.Remove(k.Dir.Path("last." + r.Atom.Name()))
		held = wantVerdict(t, k, r, Acquired)
	}
}

func TestALastLockInTheFutureIsNotBelieved(t *testing.T) {
	k, r := newKeeper(t), ask(start(t, "exec sleep 60"))
	release(t, k, wantVerdict(t, k, r, Acquired))
	setLast(t, k, time.Now().Add(time.Hour))
	r.Limits.IfElapsed = time.Minute
	held := wantVerdict(t, k, r, Acquired)
	release(t, k, held)
	if time.Until(lastStamp(t, k)) > 0 {
		t.Error("the release left it in the future")
	}
}

func TestAStepOfTheWallClockDoesNotExpireAnOwner(t *testing.T) {
	k, owner := newKeeper(t), start(t, "exec sleep 60")
	wantVerdict(t, k, ask(owner), Acquired)
	long := time.Now().Add(-100 * time.Hour)
	if err := os.Chtimes(k.Dir.Path("lock."+motdFiles), long, long); err != nil {
		t.Fatal(err)
	}
	wantVerdict(t, k, ask(start(t, "exec sleep 60")), Busy)
}

func TestAPassClockReplacesNowInBothDecisions(t *testing.T) {
	k, owner := newKeeper(t), start(t, "exec sleep 60")
	r := ask(owner)
	r.Limits.IfElapsed = time.Minute
	r.Now = time.Now().Add(-time.Minute)
	held := wantVerdict(t, k, r, Acquired)
	release(t, k, held)
	wantVerdict(t, k, r, TooSoon) // stamped after the pass began
	r.Limits.IfElapsed = 0
	wantVerdict(t, k, r, Acquired)
	newcomer := ask(start(t, "exec sleep 60"))
	newcomer.Now = time.Now().Add(2 * time.Hour)
	wantVerdict(t, k, newcomer, Acquired) // an hour has passed on the pass's clock
	if owner.Life() != process.Dead {
		t.Error("the owner lives")
	}
}

func TestFromStartCountsFromTheStartOfTheLastRun(t *testing.T) {
	k, r := newKeeper(t), ask(start(t, "exec sleep 60"))
	r.FromStart, r.Limits.IfElapsed = true, time.Hour
	held := wantVerdict(t, k, r, Acquired)
	began := time.Now().Add(-time.Hour)
	if err := os.Chtimes(k.Dir.Path("lock."+motdFiles), began, began); err != nil {
		t.Fatal(err)
	}
	release(t, k, held)
	fromEnd := r
	fromEnd.FromStart = false
	wantVerdict(t, k, fromEnd, TooSoon)
	wantVerdict(t, k, r, Acquired)
}

func TestSlotsBoundTheProgramAndRecoverFromACrash(t *testing.T) {
	k := newKeeper(t)
	in := func(owner process.Identity, operand string) Request {
		r := ask(owner)
		r.Atom.Operand, r.Slots = operand, 2
		return r
	}
	first, second := start(t, "exec sleep 60"), start(t, "exec sleep 60")
	one := wantVerdict(t, k, in(first, "a"), Acquired)
	nested := wantVerdict(t, k, in(first, "nested"), Acquired) // shares its owner's slot
	wantVerdict(t, k, in(second, "b"), Acquired)
	third := start(t, "exec sleep 60")
	wantVerdict(t, k, in(third, "c"), Full)
	if _, err := os.Stat(k.Dir.Path("lock.cfengine_conf.dax.editfile.c")); err == nil {
		t.Error("a full program keeps the atom's lock")
	}
	end(t, second)
	wantVerdict(t, k, in(third, "c"), Acquired)
	letGo(t, k, in(first, "a"), one)
	letGo(t, k, in(first, "nested"), nested)
	wantVerdict(t, k, in(start(t, "exec sleep 60"), "d"), Acquired)
}

func TestADamagedSlotIsAnErrorAndNotFull(t *testing.T) {
	k, r := newKeeper(t), ask(start(t, "exec sleep 60"))
	r.Slots = 1
	slot := k.Dir.Path("lock." + r.Atom.Slot(1))
	if err := os.WriteFile(slot, []byte("12"), 0o600); err != nil {
		t.Fatal(err)
	}
	if o, err := k.Take(r); exit.Code(err) != exit.IO || !strings.Contains(err.Error(), slot) {
		t.Errorf("verdict %q, %v", o.Verdict, err)
	}
	if _, err := os.Stat(k.Dir.Path("lock." + motdFiles)); err == nil {
		t.Error("the atom's lock was kept")
	}
}

func TestOfManyNewcomersExactlyOneTakesTheAtom(t *testing.T) {
	for name, prepare := range map[string]func(*testing.T, *Keeper){
		"free":   func(*testing.T, *Keeper) {},
		"corpse": func(t *testing.T, k *Keeper) { wantVerdict(t, k, ask(dead(t)), Acquired) },
		"hung":   func(t *testing.T, k *Keeper) { wantVerdict(t, k, ask(start(t, "exec sleep 60")), Acquired) },
	} {
		t.Run(name, func(t *testing.T) {
			for range 20 {
				k := newKeeper(t)
				prepare(t, k)
				if taken := race(t, k, 8, name == "hung"); taken != 1 {
					t.Fatalf("%d took the atom", taken)
				}
			}
		})
	}
}

func race(t *testing.T, k *Keeper, newcomers int, expired bool) (taken int) {
	var gate, done sync.WaitGroup
	var count sync.Mutex
	gate.Add(1)
	for range newcomers {
		r := ask(start(t, "exec sleep 60"))
		if expired {
			// Those who come second must not end the one who came first.
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
			if outcome.Verdict == Acquired && r.Owner.Life() == process.Alive {
				taken++
			}
		})
	}
	if expired {
		time.Sleep(2 * time.Millisecond)
	}
	gate.Done()
	done.Wait()
	if expired { // those replaced in turn are dead: one living owner is left
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
	k, owner := newKeeper(t), start(t, "exec sleep 60")
	held := wantVerdict(t, k, ask(owner), Acquired)
	r := ask(start(t, "exec sleep 60"))
	r.Wait = time.Minute
	verdict := make(chan Verdict)
	go func() { outcome, _ := k.Take(r); verdict <- outcome.Verdict }()
	select {
	case v := <-verdict:
		t.Fatalf("did not wait: %s", v)
	case <-time.After(50 * time.Millisecond):
	}
	release(t, k, held)
	if v := <-verdict; v != Acquired {
		t.Errorf("verdict is %s", v)
	}
}

func TestAWaitingNewcomerWakesWhenTheOwnerDies(t *testing.T) {
	k, owner := newKeeper(t), start(t, "exec sleep 60")
	wantVerdict(t, k, ask(owner), Acquired)
	r := ask(start(t, "exec sleep 60"))
	r.Wait = time.Minute
	verdict := make(chan Verdict)
	go func() { outcome, _ := k.Take(r); verdict <- outcome.Verdict }()
	time.Sleep(20 * time.Millisecond)
	end(t, owner)
	if v := <-verdict; v != Acquired {
		t.Errorf("verdict is %s", v)
	}
}

func TestWaitingGivesUpInTime(t *testing.T) {
	k := newKeeper(t)
	wantVerdict(t, k, ask(start(t, "exec sleep 60")), Acquired)
	r := ask(start(t, "exec sleep 60"))
	r.Wait = 200 * time.Millisecond
	began := time.Now()
	wantVerdict(t, k, r, Busy)
	if took := time.Since(began); took < r.Wait || took > 10*time.Second {
		t.Errorf("gave up after %v", took)
	}
}

func TestTooSoonIsWaitedForOnlyWhenAsked(t *testing.T) {
	k, r := newKeeper(t), ask(start(t, "exec sleep 60"))
	release(t, k, wantVerdict(t, k, r, Acquired))
	r.Limits.IfElapsed, r.Wait = time.Second, time.Minute
	wantVerdict(t, k, r, TooSoon)
	r.WaitElapsed = true
	wantVerdict(t, k, r, Acquired)
}

func TestPruneRemovesWhatNobodyUses(t *testing.T) {
	k, r := newKeeper(t), ask(start(t, "exec sleep 60"))
	release(t, k, wantVerdict(t, k, r, Acquired))
	other := r
	other.Atom.Operand = "held"
	wantVerdict(t, k, other, Acquired)
	if names, err := k.Prune(time.Hour); err != nil || len(names) != 0 {
		t.Errorf("pruned %v, %v", names, err)
	}
	if names, err := k.Prune(0); err != nil || len(names) != 1 || names[0] != motdFiles {
		t.Errorf("pruned %v, %v", names, err)
	}
}

func TestForetellTouchesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none")
	r := ask(process.Identity{})
	granted, reason, err := Foretell(path, &r)
	if err != nil || !granted || reason == "" {
		t.Errorf("%v %q %v", granted, reason, err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Error("the directory was made")
	}
}

func TestNoDraftIsLeftBehind(t *testing.T) {
	k := newKeeper(t)
	for range 3 {
		wantVerdict(t, k, ask(dead(t)), Acquired)
	}
	names, err := k.Dir.Names("temp.")
	if err != nil || len(names) != 0 {
		t.Errorf("%v %v", names, err)
	}
}
