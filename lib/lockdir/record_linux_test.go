package lockdir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/killer"
	"adlock/lib/learn"
	"adlock/lib/limit"
	"adlock/lib/lockdir/lockfile"
	"adlock/lib/locker"
	"adlock/lib/policy"
	"adlock/lib/process"
	"adlock/lib/record"
	"adlock/lib/runlog"
	"adlock/test/support/helper"
)

// openActive opens a lock until the test ends.
func openActive[by atom.Name | atom.File](t *testing.T, open func(by) (*lockfile.Active, error), name by) *lockfile.Active {
	t.Helper()
	active, err := open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { active.Close() })
	return active
}

func TestWhatIsRecordedOfAJobIsInItsLockAndItsSlot(t *testing.T) {
	for _, shared := range []bool{false, true} {
		k, owner, command, member := newLocker(t), sleeper(t), sleeper(t), sleeper(t)
		r := slotted(owner, motd.Operand, 1)
		r.Shared = shared
		held := wantVerdict(t, k, r, locker.Acquired)
		for range 2 { // the second time changes nothing
			if err := k.RecordCommand(motdFiles, held.Token, command); err != nil {
				t.Fatal(err)
			}
			if err := k.RecordMembers(motdFiles, held.Token, []process.Identity{owner, command, member}); err != nil {
				t.Fatal(err)
			}
		}
		if err := k.RecordCommand(motdFiles, record.NewToken(), member); err != nil {
			t.Errorf("for a lock that is gone: %v", err)
		}
		own := openActive(t, k.Dir.Active, motd.Slot(1))
		locks := []*lockfile.Active{own}
		if shared {
			locks = append(locks, openActive(t, k.Dir.Lock, readerLock(owner)))
		} else {
			locks = append(locks, openActive(t, k.Dir.Active, atom.Name(motdFiles)))
		}
		for _, active := range locks {
			a := active.Appended
			if !a.Command.Same(command) || len(a.Survivors) != 1 || !a.Survivors[0].Same(member) {
				t.Errorf("%s has %+v", active.File, a)
			}
		}
		if own.Record.ExpireAfter != limit.Never || own.Record.Patience != 0 || own.Record.Slots != 0 || own.Record.FromStart {
			t.Errorf("the slot's record is %+v", own.Record)
		}
	}
}

func TestAGuardedLockIsReportedByEachRecordingCall(t *testing.T) {
	k, owner := newLocker(t), sleeper(t)
	held := wantVerdict(t, k, slotted(owner, motd.Operand, 1), locker.Acquired)
	for _, files := range []atom.Name{motdFiles, motd.Slot(1)} {
		guard := takeGuard(t, k, files)
		if err := k.RecordCommand(motdFiles, held.Token, owner); !errors.Is(err, locker.ErrGuarded) {
			t.Errorf("a command, %s guarded: %v", files, err)
		}
		if err := k.RecordMembers(motdFiles, held.Token, nil); !errors.Is(err, locker.ErrGuarded) {
			t.Errorf("members, %s guarded: %v", files, err)
		}
		guard.Close()
	}
	guard := takeGuard(t, k, motdFiles)
	defer guard.Close()
	for what, do := range map[string]func() error{
		"clear":  func() error { return k.Clear(motdLock) },
		"end":    func() error { return endOwner(k, motdFiles, 0) },
		"forget": func() error { return k.Forget(motdFiles) },
	} {
		if err := do(); fault.KindOf(err) != fault.Denied || !strings.Contains(err.Error(), locker.ErrGuarded.Error()) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if owner.Life() != process.Alive {
		t.Error("the owner was ended")
	}
	if outcome, err := k.Take(ask(owner)); err != nil || outcome.Verdict != locker.Busy {
		t.Errorf("%v, %v", outcome, err)
	}
}

func TestASlotDoesNotRecordItsOwnerAsASurvivor(t *testing.T) {
	k, hung := newLocker(t), sleeper(t)
	wantVerdict(t, k, slotted(hung, "outer", 1), locker.Acquired)
	wantVerdict(t, k, slotted(hung, motd.Operand, 1), locker.Acquired)
	newcomer := slotted(sleeper(t), motd.Operand, 2)
	newcomer.Limits.ExpireAfter = 0
	wantVerdict(t, k, newcomer, locker.Acquired)
	slot := openActive(t, k.Dir.Active, motd.Slot(1))
	if len(slot.Appended.Survivors) > 0 {
		t.Errorf("the owner is recorded as one of its survivors: %+v", slot.Appended)
	}
}

// A helper that is stopped while it guards the owner's slot does not block the owner's other atoms.
func TestAnOwnerWhoseSlotIsGuardedTakesAnother(t *testing.T) {
	k, owner := newLocker(t), sleeper(t)
	wantVerdict(t, k, slotted(owner, "outer", 2), locker.Acquired)
	guard := takeGuard(t, k, motd.Slot(1))
	defer guard.Close()
	wantVerdict(t, k, slotted(owner, "inner", 2), locker.Acquired)
	if n := slotsLeft(k); n != 2 {
		t.Errorf("%d slots are taken", n)
	}
}

func TestALockWithoutAnOwnerIsNeitherReleasedNorEnded(t *testing.T) {
	k, self := newLocker(t), self(t)
	for _, content := range []string{"", strconv.Itoa(self.PID) + "\n", "12"} {
		plant(t, k, content, 0)
		if err := k.Release(locker.ReleaseRequest{Name: motdFiles}); fault.KindOf(err) != fault.Denied {
			t.Errorf("%q: released: %v", content, err)
		}
		if err := endOwner(k, motdFiles, 0); fault.KindOf(err) != fault.NotPermitted || !strings.Contains(err.Error(), "does not name its owner") {
			t.Errorf("%q: ended: %v", content, err)
		}
		wantLocks(t, k, 1)
	}
}

func TestALockIsClearedOnlyIfNoProcessOfItsJobLives(t *testing.T) {
	k, living := newLocker(t), sleeper(t)
	path := k.Dir.Path("lock." + motdFiles)
	if err := k.Clear(motdLock); fault.KindOf(err) != fault.Usage || !strings.Contains(err.Error(), path+": no such lock") {
		t.Errorf("no lock: %v", err)
	}
	for content, may := range map[string]bool{
		"": true, "12": true, strconv.Itoa(living.PID) + "\n": false, strconv.Itoa(dead(t).PID) + "\n": true,
	} {
		plant(t, k, content, 0)
		if err := k.Clear(motdLock); (err == nil) != may || !may && fault.KindOf(err) != fault.NotPermitted {
			t.Errorf("%q: %v", content, err)
		}
	}
	os.Remove(path)
	held := wantVerdict(t, k, ask(dead(t)), locker.Acquired)
	if err := k.RecordMembers(motdFiles, held.Token, []process.Identity{living}); err != nil {
		t.Fatal(err)
	}
	if err := k.Clear(motdLock); fault.KindOf(err) != fault.NotPermitted {
		t.Errorf("a survivor lives: %v", err)
	}
	end(t, living)
	if err := k.Clear(motdLock); err != nil {
		t.Errorf("no member lives: %v", err)
	}
}

// endOwner ends the owner of the lock, and leaves the lock.
func endOwner(k *Locker, name atom.Name, pause time.Duration) error {
	return k.Stop(&locker.Request{Pause: pause}, atom.File{Kind: atom.ActiveLock, Name: name}, true)
}

func TestTheOwnerIsEndedAndItsLockStays(t *testing.T) {
	k, owner := newLocker(t), sleeper(t)
	if err := endOwner(k, motdFiles, 0); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no lock: %v", err)
	}
	wantVerdict(t, k, ask(owner), locker.Acquired)
	if err := endOwner(k, motdFiles, time.Second); err != nil || owner.Life() != process.Dead {
		t.Errorf("%v; the owner's life is %v", err, owner.Life())
	}
	wantLocks(t, k, 1)
	wantVerdict(t, k, ask(self(t)), locker.Acquired)
	if err := endOwner(k, motdFiles, 0); fault.KindOf(err) != fault.NotPermitted || !errors.Is(err, killer.ErrAncestor) {
		t.Errorf("this very process: %v", err)
	}
}

func TestAReleaseWithNoStampStampsNothing(t *testing.T) {
	k := newLocker(t)
	held := wantVerdict(t, k, ask(sleeper(t)), locker.Acquired)
	if err := k.Release(locker.ReleaseRequest{Name: motdFiles, Token: held.Token, NoStamp: true}); err != nil {
		t.Fatal(err)
	}
	if lastStamp(t, k).Unix() != 0 {
		t.Error("a run that does not count was stamped")
	}
}

func TestTheListHoldsEachAtomOnce(t *testing.T) {
	k, owner := newLocker(t), sleeper(t)
	put := func(operand string) locker.Request {
		r := slotted(owner, operand, 1)
		wantVerdict(t, k, r, locker.Acquired)
		return r
	}
	in := func(operand string) atom.Atom { return put(operand).Atom }
	running, finished, broken, unread := in("b"), in("a"), in("c"), in("d")
	held := openActive(t, k.Dir.Active, finished.Name()).Record.Token
	if err := k.Release(locker.ReleaseRequest{Name: finished.Name(), Token: held}); err != nil {
		t.Fatal(err)
	}
	done := time.Now().Add(-3 * time.Hour)
	began := done.Add(-2 * time.Hour)
	if err := k.Dir.Remember(finished.Name(), done, record.Memory{Started: began}); err != nil {
		t.Fatal(err)
	}
	plantFile(t, k, broken.Name().ActiveLock(), "12", 0)
	if err := errors.Join(os.Remove(k.Dir.Path(unread.Name().LastLock())), os.Mkdir(k.Dir.Path(unread.Name().LastLock()), 0o700)); err != nil {
		t.Fatal(err)
	}
	plantFile(t, k, "lock.no name", "", 0)
	plantFile(t, k, "last.cfengine_conf.dax.slot-1", "", 0)

	entries, err := k.List()
	if err != nil || len(entries) != 4 {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	for i, name := range []atom.Name{finished.Name(), running.Name(), broken.Name(), unread.Name()} {
		if entries[i].Name != name {
			t.Errorf("entry %d is %s, want %s", i, entries[i].Name, name)
		}
	}
	a, b, c, d := entries[0], entries[1], entries[2], entries[3]
	if a.Err != nil || a.Active.Held || !a.Completed.Equal(done) || !a.Memory.Started.Equal(began) || a.Last.Age.Truncate(time.Hour) != 3*time.Hour {
		t.Errorf("the atom that completed is %+v", a)
	}
	if b.Err != nil || !b.Active.Held || b.Record.Owner.PID != owner.PID || !b.Completed.IsZero() || b.Last.Completed {
		t.Errorf("the atom that runs is %+v", b)
	}
	if fault.KindOf(c.Err) != fault.IO || fault.KindOf(d.Err) != fault.NotPermitted {
		t.Errorf("the atoms that cannot be read: %v, %v", c.Err, d.Err)
	}
	if a.Decide(policy.Terms{}).Step != policy.Acquire || b.Decide(policy.Terms{Limits: policy.Limits{ExpireAfter: time.Hour, Source: policy.Said}}).Step != policy.Busy {
		t.Error("the steps are not those of a newcomer")
	}
}

func TestADryRunSaysWhatARunWouldDo(t *testing.T) {
	k, living, gone := newLocker(t), sleeper(t), dead(t)
	elsewhere := living
	elsewhere.PIDNS++
	foretold := func(r locker.Request) (bool, string) {
		t.Helper()
		granted, reason, err := DryRun(k.Dir.Path(), &r)
		if err != nil {
			t.Fatal(err)
		}
		return granted, reason
	}
	r, hasty := ask(self(t)), ask(self(t))
	hasty.Limits.ExpireAfter = 0
	for _, c := range []struct {
		owner   process.Identity
		r       locker.Request
		granted bool
		reason  string
	}{
		{living, r, false, "busy"}, {living, hasty, true, "expired"}, {gone, r, true, "free: the owner is dead"},
		{elsewhere, r, false, "busy"}, {elsewhere, hasty, false, "stuck"},
	} {
		os.Remove(k.Dir.Path("lock." + motdFiles))
		wantVerdict(t, k, ask(c.owner), locker.Acquired)
		before := contentOf(t, k, "lock."+motdFiles)
		if granted, reason := foretold(c.r); granted != c.granted || !strings.HasPrefix(reason, c.reason) {
			t.Errorf("%v %q, want %v %q", granted, reason, c.granted, c.reason)
		}
		if contentOf(t, k, "lock."+motdFiles) != before {
			t.Error("the lock was changed")
		}
	}
	plant(t, k, "", time.Hour)
	if granted, reason := foretold(r); !granted || !strings.HasPrefix(reason, "free: the lock is empty") {
		t.Errorf("%v %q", granted, reason)
	}
	os.Remove(k.Dir.Path("lock." + motdFiles))
	if granted, reason := foretold(r); !granted || !strings.HasPrefix(reason, "free: never completed") {
		t.Errorf("%v %q", granted, reason)
	}
	setLast(t, k, time.Now())
	r.Limits.IfElapsed = time.Hour
	if granted, reason := foretold(r); granted || !strings.HasPrefix(reason, "too soon") {
		t.Errorf("%v %q", granted, reason)
	}
}

func TestADryRunFailsWhereALockCannotBeRead(t *testing.T) {
	k, r := newLocker(t), ask(process.Identity{})
	plant(t, k, "12", 0)
	plantFile(t, k, "file", "", 0)
	for _, path := range []string{k.Dir.Path(), k.Dir.Path("file")} {
		if granted, _, err := DryRun(path, &r); granted || err == nil {
			t.Errorf("%s: %v, %v", path, granted, err)
		}
	}
}

func TestADryRunWithoutADirectoryHasLearnedLimits(t *testing.T) {
	r := learner(process.Identity{})
	granted, reason, err := DryRun(filepath.Join(t.TempDir(), "none"), &r)
	if err != nil || !granted || !strings.Contains(reason, "IfElapsed is "+limit.Format(learn.LeastIfElapsed)) {
		t.Errorf("%v %q %v", granted, reason, err)
	}
	if r.Limits.ExpireAfter != limit.Never {
		t.Errorf("ExpireAfter is %v", r.Limits.ExpireAfter)
	}
}

func TestALastLocksAgeIsTheLeastThatRoundingAllows(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		age, cut, want time.Duration
		future         bool
	}{
		{time.Hour, 0, time.Hour, false},
		{time.Hour, time.Second, time.Hour - time.Second, false},
		{time.Millisecond, time.Second, 0, false},
		{1, time.Second, 0, false},
		{0, time.Second, 0, false},
		{-time.Second, time.Second, -time.Second, false},
		{-policy.FutureSlack, 0, -policy.FutureSlack, false},
		{-policy.FutureSlack - 1, 0, -policy.FutureSlack - 1, true},
	} {
		v := locker.LastView(record.Last{Completed: now.Add(-c.age), Cut: c.cut}, false, locker.Moment{Real: now})
		if v.Age != c.want || v.Future != c.future || !v.Completed {
			t.Errorf("%v, cut by %v: %+v", c.age, c.cut, v)
		}
	}
	if v := locker.LastView(record.Last{}, true, locker.Moment{Real: now}); v != (policy.Last{}) {
		t.Errorf("never completed: %+v", v)
	}
}

func TestTheViewHasWhatTheLastLockSays(t *testing.T) {
	k, r := newLocker(t), ask(process.Identity{})
	began := time.Now().Add(-time.Hour)
	if err := k.Dir.Remember(motdFiles, time.Now(), record.Memory{Started: began}); err != nil {
		t.Fatal(err)
	}
	v := view{}
	_, err := k.look(&v, &r, r.Atom.Name(), r.Clock(time.Now()), first)
	if err != nil || !v.Memory.Started.Equal(began) {
		t.Errorf("%+v, %v", v.Memory, err)
	}
	last := record.Last{Completed: began, Memory: v.Memory}
	r = learner(process.Identity{})
	if err := v.SeeLast(&r, "the last lock", last, r.Clock(began.Add(time.Minute)), nil); err != nil || !v.Memory.Started.Equal(began) || v.Last.Age != time.Minute || r.Limits.ExpireAfter != limit.Never {
		t.Errorf("from a store's last lock: %+v, under %+v", v, r.Limits)
	}
}

// A process inside the job that it waits for would wait for ever: the job does not end before it.
func TestAJobDoesNotWaitForItselfWithoutEnd(t *testing.T) {
	k, parent := newLocker(t), self(t)
	refused := func(r locker.Request, want locker.Verdict) {
		t.Helper()
		r.Wait = limit.Never
		outcome := make(chan locker.Outcome, 1)
		go func() {
			o, err := k.Take(r)
			if err != nil {
				t.Error(err)
			}
			outcome <- o
		}()
		select {
		case o := <-outcome:
			if o.Verdict != want {
				t.Errorf("%s: %s", o.Verdict, o.Reason)
			}
		case <-time.After(helper.Patience):
			t.Fatal("it waits for itself")
		}
	}
	held := wantVerdict(t, k, ask(parent), locker.Acquired)
	refused(ask(sleeper(t)), locker.Busy)
	release(t, k, held)

	r := ask(dead(t)) // of a dead owner, whose command is this process
	held = wantVerdict(t, k, r, locker.Acquired)
	if err := k.RecordCommand(motdFiles, held.Token, parent); err != nil {
		t.Fatal(err)
	}
	refused(ask(sleeper(t)), locker.Busy)
	os.Remove(k.Dir.Path("lock." + motdFiles))

	// Beside another's slot the newcomer could wait for that one.
	wantVerdict(t, k, slotted(parent, "b", 1), locker.Acquired)
	refused(slotted(sleeper(t), "c", 1), locker.Full)
}

func TestAProcessOutsideTheJobMayWaitWithoutEnd(t *testing.T) {
	k, owner := newLocker(t), sleeper(t)
	held := wantVerdict(t, k, ask(dead(t)), locker.Acquired)
	if err := k.RecordCommand(motdFiles, held.Token, owner); err != nil {
		t.Fatal(err)
	}
	inside := ask(self(t))
	for _, wait := range []time.Duration{limit.Never, time.Hour, 0} {
		r := ask(self(t))
		r.Wait = wait
		v := view{}
		_, err := k.look(&v, &r, r.Atom.Name(), r.Clock(time.Now()), first)
		if err != nil {
			t.Fatal(err)
		}
		if o := r.Denied(policy.Decision{Step: policy.Busy}, &v.View); o.Endless || strings.Contains(o.Reason, "inside") {
			t.Errorf("behind a stranger's job: %+v", o)
		}
		v.close()
		own := locker.View{Active: policy.Active{Held: true, Owner: policy.Ancestor}}
		if o := r.Denied(policy.Decision{Step: policy.Busy}, &own); o.Endless != (wait == limit.Never) {
			t.Errorf("inside the job, waiting %v: %+v", wait, o)
		}
	}
	orphaned := locker.View{Active: policy.Active{Held: true, Owner: policy.Orphaned}}
	if inside.Wait = limit.Never; inside.Denied(policy.Decision{Step: policy.Busy}, &orphaned).Endless {
		t.Error("a job that cannot be looked at counts as its own") // a store's lock has no file
	}
}

// The denial says when to look again, and which owner is in the way.
func TestADenialNamesTheOwnerInTheWayAndForHowLong(t *testing.T) {
	r := ask(process.Identity{})
	v := locker.View{Record: record.Record{Owner: process.Identity{PID: 4711}}, Active: policy.Active{Held: true, Age: 20 * time.Minute}}
	o := r.Denied(policy.Decision{Step: policy.Busy}, &v)
	if o.Blocker != 4711 || o.Recheck != 40*time.Minute {
		t.Errorf("blocked by %d, to look again after %v", o.Blocker, o.Recheck)
	}
	r.Limits.IfElapsed = time.Hour
	v = locker.View{Last: policy.Last{Completed: true, Age: 20 * time.Minute}}
	if o := r.Denied(policy.Decision{Step: policy.TooSoon}, &v); o.Verdict != locker.TooSoon || o.Recheck != 40*time.Minute {
		t.Errorf("%+v", o)
	}
	if o := r.Denied(policy.Decision{Step: policy.Busy}, &v); o.Verdict != locker.Busy {
		t.Errorf("%+v", o)
	}
}

func TestWhatIsStuckInAStoreIsAnErrorThatNamesTheLock(t *testing.T) {
	r := ask(process.Identity{})
	o, err := r.Stuck("etcd://a/b", &locker.View{}, errors.New("its owner is deaf"), "")
	if o.Verdict != locker.Stuck || o.Reason != "its owner is deaf" {
		t.Errorf("%+v", o)
	}
	if fault.KindOf(err) != fault.NotPermitted || err.Error() != "etcd://a/b: stuck: its owner is deaf" {
		t.Errorf("%v", err)
	}
}

func TestTheOwnerInAStoresRecordIsLookedUp(t *testing.T) {
	if o := locker.OwnerOf(process.Job{Owner: sleeper(t), FileUID: -1}); o != policy.Lives {
		t.Errorf("a living one's is %v", o)
	}
	if o := locker.OwnerOf(process.Job{Owner: dead(t), FileUID: -1}); o != policy.Gone {
		t.Errorf("a dead one's is %v", o)
	}
}

func TestTheWaitingOfAStoresNewcomerIsCounted(t *testing.T) {
	r := locker.Request{Wait: 2 * time.Hour, WaitSince: process.Boottime() - 90*time.Minute}
	w := locker.NewWaiting(&r)
	if left, spent := w.Left().Round(time.Minute), w.Spent().Round(time.Minute); left != 30*time.Minute || spent != 90*time.Minute {
		t.Errorf("%v are left, %v spent", left, spent)
	}
	if !w.Worthwhile(locker.Outcome{Verdict: locker.Busy}) || w.Worthwhile(locker.Outcome{Verdict: locker.TooSoon}) {
		t.Error("waiting is worthwhile when too soon, or not when busy")
	}
	r = locker.Request{WaitSince: r.WaitSince}
	if w := locker.NewWaiting(&r); w.Left() != 0 || w.Spent() != 0 || w.Worthwhile(locker.Outcome{Verdict: locker.Busy}) {
		t.Errorf("a newcomer that does not wait: %v left, %v spent", w.Left(), w.Spent())
	}
	r = locker.Request{Wait: 1, WaitSince: process.Boottime() - time.Hour}
	if w := locker.NewWaiting(&r); w.Left() >= 0 || w.Spent() < time.Hour {
		t.Errorf("a newcomer that waits for a nanosecond: %v left, %v spent", w.Left(), w.Spent())
	}
}

func TestEveryEventIsRecordedWithWhatItIsAbout(t *testing.T) {
	k, r := newLocker(t), ask(process.Identity{PID: 7})
	s := k.Recorder
	own := record.Record{Atom: motd, Owner: process.Identity{PID: 8}, Token: record.NewToken(), Monotonic: process.Monotonic() - 3*time.Hour}
	v := locker.View{Record: own, Active: policy.Active{Held: true, Age: 2 * time.Hour}, Last: policy.Last{Age: -5 * time.Hour}}
	found := func(kind runlog.Kind) runlog.Event {
		return finding(with(about(kind, 7), r.Limits), own.Owner, own.Token, 2)
	}

	s.Acquired(&r, own)
	wantEvents(t, k, acquired(r, locker.Outcome{Token: own.Token}))

	s.Denied(&r, r.Denied(policy.Decision{Step: policy.Busy}, &v), nil, 5*time.Hour)
	busy := found(runlog.Deny)
	busy.Verdict, busy.Reason, busy.Wait, busy.Count = "busy", "busy", 5*time.Hour, 1
	wantEvents(t, k, busy)

	s.Expiring(&r, &v)
	s.Replaced(&r, policy.Expire, &v)
	s.Replaced(&r, policy.Reclaim, &v)
	wantEvents(t, k, found(runlog.Expire), found(runlog.Takeover), found(runlog.Reclaim))

	s.Emptied(&r, &v)
	s.FutureStamp(&r, v.Last)
	s.RecordSignal(&r, killer.Signalled{PID: 9, Signal: "INT"})
	empty, clock, signal := about(runlog.Empty, 7), about(runlog.Clock, 7), about(runlog.Signal, 7)
	empty.Age, clock.Age, clock.Reason = runlog.Some(2*time.Hour), runlog.Some(-5*time.Hour), "in the future"
	signal.Signal, signal.Target = "INT", 9
	wantEvents(t, k, empty, clock, signal)

	s.Released(locker.ReleaseRequest{Status: runlog.Some(1)}, own, nil)
	released := about(runlog.Release, 8)
	released.Token, released.Status, released.Duration = own.Token, runlog.Some(1), runlog.Some(3*time.Hour)
	wantEvents(t, k, released)

	err := s.Lost("etcd://a/b", locker.ReleaseRequest{Token: own.Token}, motd, &own, fs.ErrNotExist)
	if fault.KindOf(err) != fault.Denied || !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), "etcd://a/b: lost") {
		t.Errorf("lost: %v", err)
	}
	lost := about(runlog.Lost, 8)
	lost.Token, lost.Reason = own.Token, fs.ErrNotExist.Error()
	wantEvents(t, k, lost)
}

func TestAnAtomWithAnEmptyPartIsAUsageErrorAndLeavesNothing(t *testing.T) {
	k, r := newLocker(t), ask(process.Identity{})
	r.Atom.Operand = ""
	if outcome, err := k.Take(r); fault.KindOf(err) != fault.Usage || outcome.Verdict != "" {
		t.Errorf("%v, %v", outcome.Verdict, err)
	}
	if left, _ := filepath.Glob(k.Dir.Path("*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestALastLockOfAnotherAtomOfTheSameNameIsAnErrorNamingBoth(t *testing.T) {
	k, r := newLocker(t), ask(process.Identity{})
	r.Atom.Operand = "my_db"
	other := r.Atom
	other.Operand = "your_db"
	if err := k.Dir.MakeLast(r.Atom.Name(), record.Memory{Atom: other}); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Take(r); fault.KindOf(err) != fault.System || !strings.Contains(err.Error(), "my_db") || !strings.Contains(err.Error(), "your_db") {
		t.Errorf("taken: %v", err)
	}
}

func TestALockThatIsLostIsRecordedByItsIdentity(t *testing.T) {
	k, r := newLocker(t), ask(sleeper(t))
	r.Atom.Operand = "my_db" // NAME has only a checksum of this operand
	held := wantVerdict(t, k, r, locker.Acquired)
	os.Remove(k.Dir.Path("program.dax.runlog"))
	if err := k.Release(locker.ReleaseRequest{Name: r.Atom.Name(), Token: record.NewToken()}); fault.KindOf(err) != fault.Denied {
		t.Errorf("released: %v", err)
	}
	for e := range k.Log.Newest(1 << 20) {
		if e.Kind != runlog.Lost || e.Operand != "my_db" || e.OwnerToken != held.Token {
			t.Errorf("the runlog has %+v", e)
		}
	}
}
