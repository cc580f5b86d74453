package lockdir

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/lockdir/lockfile"
	"adlock/lib/locker"
	"adlock/lib/policy"
	"adlock/lib/process"
	"adlock/lib/record"
	"adlock/lib/runlog"
	"adlock/test/support/helper"
	"adlock/test/support/must"
)

// about is an event about motd.
func about(kind runlog.Kind, pid int) runlog.Event { return aboutAtom(motd, kind, pid) }

func aboutAtom(a atom.Atom, kind runlog.Kind, pid int) runlog.Event {
	return runlog.Event{Kind: kind, Program: a.Program, Host: a.Host, Operator: a.Operator, Operand: a.Operand, PID: pid}
}

// with returns the event with the limits in force.
func with(e runlog.Event, l policy.Limits) runlog.Event {
	e.IfElapsed, e.ExpireAfter, e.ExpireAfterFrom = runlog.Some(l.IfElapsed), runlog.Some(l.ExpireAfter), string(l.Source)
	return e
}

// finding returns the event with the owner that was found and its age in hours.
func finding(e runlog.Event, owner process.Identity, token string, hours int) runlog.Event {
	e.Owner, e.OwnerToken, e.Age = owner.PID, token, runlog.Some(time.Duration(hours)*time.Hour)
	return e
}

// wantEvents compares the runlog with the wanted events, and empties it. Times are compared in
// whole hours; a reason only has to contain the wanted text.
func wantEvents(t *testing.T, k *Locker, want ...runlog.Event) {
	t.Helper()
	got := slices.Collect(k.Log.Newest(1 << 20))
	slices.Reverse(got)
	for i := range got {
		e := &got[i]
		if time.Since(e.Time).Abs() > time.Minute {
			t.Errorf("event %d is of %v", i, e.Time)
		}
		e.Time, e.Wait = time.Time{}, e.Wait.Truncate(time.Hour)
		e.Age.Value, e.Duration.Value = e.Age.Value.Truncate(time.Hour), e.Duration.Value.Truncate(time.Hour)
		if i < len(want) && strings.Contains(e.Reason, want[i].Reason) && (want[i].Reason != "") == (e.Reason != "") {
			e.Reason = want[i].Reason
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the runlog is\n\t%+v, want\n\t%+v", got, want)
	}
	must.Do(t, os.RemoveAll(k.Dir.Path("program.dax.runlog")))
}

func TestAnAcquisitionAndItsReleaseAreLogged(t *testing.T) {
	k, r := newLocker(t), ask(sleeper(t))
	r.Limits.IfElapsed = 2 * time.Hour
	held := wantVerdict(t, k, r, locker.Acquired)
	began := acquired(r, held)
	began.Reason = "below IfElapsed"
	wantEvents(t, k, began)
	backdate(t, k, 3*time.Hour)
	end := locker.ReleaseRequest{Name: motdFiles, Token: held.Token, Status: runlog.Some(7), Signal: "TERM"}
	must.Do(t, k.Release(end))
	wantEvents(t, k, released(r, held, end, 3))
}

// released is the event of a release, after that many hours.
func released(r locker.Request, held locker.Outcome, end locker.ReleaseRequest, hours int) runlog.Event {
	e := about(runlog.Release, r.Owner.PID)
	e.Token, e.Status, e.Signal = held.Token, end.Status, end.Signal
	e.Duration = runlog.Some(time.Duration(hours) * time.Hour)
	return e
}

// runs takes the atom, and makes its lock that many hours old.
func runs(t *testing.T, k *Locker, r locker.Request, hours int) locker.Outcome {
	t.Helper()
	held := wantVerdict(t, k, r, locker.Acquired)
	lock := motdLock
	if r.Shared {
		lock = readerLock(r.Owner)
	}
	backdateFile(t, k, lock.String(), time.Duration(hours)*time.Hour)
	wantEvents(t, k, acquired(r, held))
	return held
}

func TestAnOwnerThatEndsItsJobLogsTheExpiry(t *testing.T) {
	k, r := newLocker(t), ask(sleeper(t))
	held := runs(t, k, r, 3)
	k.OwnExpires(&r, held.Token, 3*time.Hour, 0)
	end := locker.ReleaseRequest{Name: motdFiles, Token: held.Token, Expired: true}
	must.Do(t, k.Release(end))
	expired := with(finding(about(runlog.Expire, r.Owner.PID), r.Owner, held.Token, 3), r.Limits)
	wantEvents(t, k, expired, released(r, held, end, 3))
}

func acquired(r locker.Request, held locker.Outcome) runlog.Event {
	e := with(about(runlog.Acquire, r.Owner.PID), r.Limits)
	e.Token, e.Shared = held.Token, r.Shared
	return e
}

func TestADenialIsLoggedWithItsReasonAndTheOwner(t *testing.T) {
	k, r := newLocker(t), ask(sleeper(t))
	r.Limits.ExpireAfter = 9 * time.Hour
	held := runs(t, k, r, 3)
	newcomer := r
	newcomer.Owner = sleeper(t)
	newcomer.Wait, newcomer.WaitSince = time.Hour, process.Boottime()-5*time.Hour

	wantVerdict(t, k, newcomer, locker.Busy)
	busy := finding(with(about(runlog.Deny, newcomer.Owner.PID), newcomer.Limits), r.Owner, held.Token, 3)
	busy.Verdict, busy.Reason, busy.Count = "busy", "busy: running for 3h", 1
	wantEvents(t, k, busy)

	newcomer.Wait = 0
	if outcome := wantVerdict(t, k, newcomer, locker.Busy); outcome.ExpireAfter != 9*time.Hour {
		t.Errorf("the limit in force is %v", outcome.ExpireAfter)
	}
	wantEvents(t, k, busy)

	release(t, k, held)
	setLast(t, k, time.Now().Add(-2*time.Hour-time.Minute))
	os.Remove(k.Dir.Path("program.dax.runlog"))
	newcomer.Limits.IfElapsed = 4 * time.Hour
	wantVerdict(t, k, newcomer, locker.TooSoon)
	tooSoon := with(about(runlog.Deny, newcomer.Owner.PID), newcomer.Limits)
	tooSoon.Verdict, tooSoon.Reason, tooSoon.Age = "too-soon", "too soon: ", runlog.Some(2*time.Hour)
	wantEvents(t, k, tooSoon)
}

func TestAWaitIsLoggedOnceAndBeforeItsOutcome(t *testing.T) {
	k, r := newLocker(t), ask(sleeper(t))
	held := runs(t, k, r, 1)
	newcomer := ask(sleeper(t))
	newcomer.Wait, newcomer.Limits.ExpireAfter = time.Second, 9*time.Hour
	began := time.Now()
	wantVerdict(t, k, newcomer, locker.Busy)
	took := time.Since(began)
	if took < newcomer.Wait || took > helper.Patience {
		t.Errorf("gave up after %v", took)
	}
	if e := eventOf(t, k, runlog.Deny); e.Wait < newcomer.Wait || e.Wait > took {
		t.Errorf("waited %v, the runlog has %v", took, e.Wait)
	}
	waits := finding(with(about(runlog.Wait, newcomer.Owner.PID), newcomer.Limits), r.Owner, held.Token, 1)
	waits.Verdict, waits.Reason = "busy", "busy: running for 1h"
	denied := waits
	denied.Kind, denied.Count = runlog.Deny, 1
	wantEvents(t, k, waits, denied)
}

func TestExpiredAndDamagedLocksAreNotLoggedAsDenials(t *testing.T) {
	k, newcomer := newLocker(t), hasty(sleeper(t))
	runs(t, k, ask(sleeper(t)), 0)
	newcomer.LeaveExpired = true
	wantVerdict(t, k, newcomer, locker.Expired)
	wantEvents(t, k)
	plant(t, k, "12", 0)
	if _, err := k.Take(newcomer); err == nil {
		t.Error("a damaged lock is no error")
	}
	wantEvents(t, k)
}

func TestATakeoverIsLoggedWithEachSignal(t *testing.T) {
	for _, shared := range []bool{false, true} {
		k, r, newcomer := newLocker(t), ask(sleeper(t)), ask(sleeper(t))
		r.Shared = shared
		held := runs(t, k, r, 3)
		newcomer.Pause = time.Minute // which the owner's death cuts short
		taken := wantVerdict(t, k, newcomer, locker.Acquired)
		signal := func(name string) runlog.Event {
			e := about(runlog.Signal, newcomer.Owner.PID)
			e.Signal, e.Target, e.OwnerToken = name, r.Owner.PID, held.Token
			return e
		}
		found := func(kind runlog.Kind) runlog.Event {
			return finding(with(about(kind, newcomer.Owner.PID), newcomer.Limits), r.Owner, held.Token, 3)
		}
		wantEvents(t, k, found(runlog.Expire), signal("CONT"), signal("INT"), found(runlog.Takeover),
			acquired(newcomer, taken))
	}
}

func TestAnEndingIsReportedEvenIfTheNextStepFails(t *testing.T) {
	newcomer := sleeper(t)
	take := func(k *Locker) error { return anyhow(k, hasty(newcomer))() }
	stop := func(k *Locker) error { return k.Stop(&locker.Request{Owner: newcomer}, motdLock, false) }
	for _, c := range []struct {
		of   locker.Request
		step string
		do   func(*Locker) error
		want runlog.Kind
	}{
		{ask(sleeper(t)), "renameat", take, runlog.Takeover}, {read(sleeper(t)), "unlinkat", take, runlog.Takeover},
		{ask(sleeper(t)), "unlinkat", stop, runlog.Clear},
	} {
		k, err := newLocker(t), error(nil)
		runs(t, k, c.of, 0)
		said := helper.Stderr(t, func() { _, err = failing(t, k, reaching[c.step], 1, func() error { return c.do(k) }) })
		if err == nil || !strings.Contains(said, "ended process "+strconv.Itoa(c.of.Owner.PID)+" by force") {
			t.Errorf("%v; it says %q", err, said)
		}
		eventOf(t, k, c.want)
	}
}

func TestAReclaimIsLoggedAndStampsNothing(t *testing.T) {
	for _, shared := range []bool{false, true} {
		k, r, newcomer := newLocker(t), ask(dead(t)), ask(sleeper(t))
		r.Shared = shared
		held := runs(t, k, r, 0)
		taken := wantVerdict(t, k, newcomer, locker.Acquired)
		if lastStamp(t, k).Unix() != 0 {
			t.Error("the last lock was stamped")
		}
		reclaim := finding(with(about(runlog.Reclaim, newcomer.Owner.PID), newcomer.Limits), r.Owner, held.Token, 0)
		wantEvents(t, k, reclaim, acquired(newcomer, taken))
	}
}

func TestAStuckLockIsLogged(t *testing.T) {
	k, r, newcomer := newLocker(t), ask(sleeper(t)), hasty(sleeper(t))
	r.Owner.PIDNS++
	held := runs(t, k, r, 0)
	outcome := wantVerdict(t, k, newcomer, locker.Stuck)
	stuck := finding(with(about(runlog.Stuck, newcomer.Owner.PID), newcomer.Limits), r.Owner, held.Token, 0)
	stuck.Verdict, stuck.Reason = "stuck", "its owner cannot be checked from here"
	wantEvents(t, k, stuck)
	if outcome.Reason != stuck.Reason {
		t.Errorf("the outcome says %q", outcome.Reason)
	}
}

func TestALastLockInTheFutureAndAnEmptyLockAreLogged(t *testing.T) {
	k, r := newLocker(t), ask(sleeper(t))
	r.Limits.IfElapsed = time.Minute
	plantFile(t, k, "last."+motdFiles, "", -3*time.Hour-time.Minute)
	cleared := func(file string) (held locker.Outcome) {
		plantFile(t, k, file, "", 2*time.Hour+time.Minute)
		said := helper.Stderr(t, func() { held = wantVerdict(t, k, r, locker.Acquired) })
		if said != "adlock: "+k.Dir.Path(file)+": empty lock cleared\n" {
			t.Errorf("said %q", said)
		}
		return held
	}
	held := cleared("lock." + motdFiles)
	clock, empty := about(runlog.Clock, r.Owner.PID), about(runlog.Empty, r.Owner.PID)
	clock.Age, clock.Reason = runlog.Some(-3*time.Hour), "the last lock lies in the future"
	empty.Age = runlog.Some(2 * time.Hour)
	wantEvents(t, k, clock, empty, acquired(r, held)) // once, though the newcomer looks twice

	r.Slots, r.Atom.Operand, r.Limits.IfElapsed = 1, "other", 0
	cleared(motd.Slot(1).ActiveLock())
	if e := eventOf(t, k, runlog.Empty); e.Age.Value.Truncate(time.Hour) != 2*time.Hour {
		t.Errorf("the runlog has %+v", e)
	}
}

func TestClearingALockIsLogged(t *testing.T) {
	k, r := newLocker(t), ask(dead(t))
	held := runs(t, k, r, 0)
	if said := helper.Stderr(t, func() { must.Do(t, k.Clear(motdLock)) }); said != "" {
		t.Errorf("it says %q", said)
	}
	cleared, empty := about(runlog.Clear, os.Getpid()), about(runlog.Clear, os.Getpid())
	cleared.Owner, cleared.OwnerToken = r.Owner.PID, held.Token
	plant(t, k, "", time.Hour)
	must.Do(t, k.Clear(motdLock))
	wantEvents(t, k, cleared, empty)
}

func TestTheLossOfALockIsLoggedWithItsCause(t *testing.T) {
	k, r := newLocker(t), ask(sleeper(t))
	held := runs(t, k, r, 0)
	lost := func(of locker.ReleaseRequest, reason error) runlog.Event {
		t.Helper()
		if err := k.Release(of); fault.KindOf(err) != fault.Denied || !strings.Contains(err.Error(), "lost: "+reason.Error()) {
			t.Errorf("released: %v", err)
		}
		e := about(runlog.Lost, 0)
		e.Token, e.Reason = of.Token, reason.Error()
		return e
	}
	e := lost(locker.ReleaseRequest{Name: motdFiles, Token: record.NewToken()}, locker.ErrLost)
	e.Owner, e.OwnerToken = r.Owner.PID, held.Token
	wantEvents(t, k, e)
	if wantLocks(t, k, 1); lastStamp(t, k).Unix() != 0 {
		t.Error("with another's token the last lock was stamped")
	}

	guard := takeGuard(t, k, motdFiles)
	err := releaseOf(k, held)
	if !errors.Is(err, locker.ErrGuarded) || fault.KindOf(err) != fault.Denied || locker.IsEnded(err) {
		t.Errorf("released while a newcomer looks: %v", err)
	}
	wantEvents(t, k)
	must.Do(t, guard.AppendSurvivors([]process.Identity{sleeper(t)}))
	k.OwnExpires(&r, held.Token, time.Hour, 0) // its own supervisor has ended and recorded its job
	own := locker.ReleaseRequest{Name: motdFiles, Token: held.Token, Expired: true}
	if err := k.Release(own); !errors.Is(err, locker.ErrGuarded) || locker.IsEnded(err) {
		t.Errorf("released by its own supervisor: %v", err)
	}
	must.Do(t, os.RemoveAll(k.Dir.Path("program.dax.runlog")))
	err = releaseOf(k, held)
	want := "editfile /etc/motd: ended by force by process " + strconv.Itoa(os.Getpid())
	if !errors.Is(err, locker.ErrGuarded) || err.Error() != want {
		t.Errorf("released: %v", err)
	}
	e = about(runlog.Lost, r.Owner.PID)
	e.Token, e.Reason, e.Owner = held.Token, "ended by force by process", os.Getpid()
	e.Duration = runlog.Some(time.Duration(0))
	wantEvents(t, k, e)
	must.Do(t, errors.Join(guard.Remove(), guard.Close()))
	mine := locker.ReleaseRequest{Name: motdFiles, Token: held.Token}
	wantEvents(t, k, lost(mine, errors.New("the lock is gone")))
}

// takeGuard opens an active lock and takes its guard, as another process may.
func takeGuard(t *testing.T, k *Locker, name atom.Name) *lockfile.Active {
	t.Helper()
	active := must.Get(k.Dir.Active(name))(t)
	must.Do(t, active.Guard(time.Second))
	return active
}

func TestAnUnwritableRunlogIsReportedOnceAndTheAtomTaken(t *testing.T) {
	k, r := newLocker(t), ask(sleeper(t))
	k.Log.Dir = k.Dir.Path("none")
	said := helper.Stderr(t, func() { release(t, k, wantVerdict(t, k, r, locker.Acquired)) })
	if lines := strings.Count(said, "\n"); lines != 1 || !strings.Contains(said, k.Log.Dir) {
		t.Errorf("said %q", said)
	}
}
