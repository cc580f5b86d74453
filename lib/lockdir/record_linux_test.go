package lockdir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
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
	"adlock/lib/sysfile"
	"adlock/test/support/helper"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

// openActive opens a lock until the test ends.
func openActive[by atom.Name | atom.File](t *testing.T, open func(by) (*lockfile.Active, error), name by) *lockfile.Active {
	t.Helper()
	active := must.Get(open(name))(t)
	t.Cleanup(func() { active.Close() })
	return active
}

func TestAJobIsRecordedInItsLockAndItsSlot(t *testing.T) {
	for _, shared := range []bool{false, true} {
		k, owner, command, member := newLocker(t), sleeper(t), sleeper(t), sleeper(t)
		r := slotted(owner, motd.Operand, 1)
		r.Shared, r.Patience = shared, time.Minute
		held := wantVerdict(t, k, r, locker.Acquired)
		for range 2 { // the second time changes nothing
			must.Do(t, k.RecordCommand(motdFiles, held.Token, command))
			must.Do(t, k.RecordMembers(motdFiles, held.Token, []process.Identity{owner, command, member}))
		}
		must.Do(t, k.RecordCommand(motdFiles, record.NewToken(), member)) // for a lock that is gone
		own, lock := openActive(t, k.Dir.Active, motd.Slot(1)), motdLock
		if shared {
			lock = readerLock(owner)
		}
		for _, active := range []*lockfile.Active{own, openActive(t, k.Dir.Lock, lock)} {
			if a := active.Appended; !a.Command.Same(command) || len(a.Survivors) != 1 || !a.Survivors[0].Same(member) {
				t.Errorf("%s has %+v", active.File, a)
			}
		}
		if got := own.Record; got.ExpireAfter != r.Limits.ExpireAfter || got.Source != policy.Said || got.Patience != time.Minute || got.Slots != 0 || got.FromStart {
			t.Errorf("the slot's record is %+v", got)
		}
	}
}

func TestEachChangeToAGuardedLockIsRefused(t *testing.T) {
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
	wantLife(t, owner, process.Alive)
	if outcome, err := k.Take(ask(owner)); err != nil || outcome.Verdict != locker.Busy {
		t.Errorf("%v, %v", outcome, err)
	}
}

func TestASlotDoesNotRecordItsOwnerAsASurvivor(t *testing.T) {
	k, hung := newLocker(t), sleeper(t)
	wantVerdict(t, k, slotted(hung, "outer", 1), locker.Acquired)
	wantVerdict(t, k, slotted(hung, motd.Operand, 1), locker.Acquired)
	newcomer := hasty(sleeper(t))
	newcomer.Slots = 2
	wantVerdict(t, k, newcomer, locker.Acquired)
	if slot := openActive(t, k.Dir.Active, motd.Slot(1)); len(slot.Appended.Survivors) > 0 {
		t.Errorf("the owner is recorded as one of its survivors: %+v", slot.Appended)
	}
}

// A helper that is stopped while it guards the owner's slot does not block the owner's other atoms.
func TestAnOwnerWhoseSlotIsGuardedTakesAnotherSlot(t *testing.T) {
	k, owner := newLocker(t), sleeper(t)
	wantVerdict(t, k, slotted(owner, "outer", 2), locker.Acquired)
	guard := takeGuard(t, k, motd.Slot(1))
	defer guard.Close()
	wantVerdict(t, k, slotted(owner, "inner", 2), locker.Acquired)
	wantSlots(t, k, 2)
}

func TestALockWithoutATokenIsNotReleasedNorItsOwnerEnded(t *testing.T) {
	k, self := newLocker(t), self(t)
	why := map[fault.Kind]string{fault.NotPermitted: "does not name its owner", fault.IO: "adlock clear"}
	for content, kind := range map[string]fault.Kind{"": fault.NotPermitted, pidLine(self): fault.NotPermitted, "12": fault.IO} {
		plant(t, k, content, 0)
		if err := k.Release(locker.ReleaseRequest{Name: motdFiles}); fault.KindOf(err) != fault.Denied {
			t.Errorf("%q: released: %v", content, err)
		}
		if err := endOwner(k, motdFiles, 0); fault.KindOf(err) != kind || !strings.Contains(err.Error(), why[kind]) {
			t.Errorf("%q: ended: %v", content, err)
		}
		wantLocks(t, k, 1)
	}
}

func TestALockIsClearedOnlyIfNoProcessOfItsJobLives(t *testing.T) {
	k, living, reader := newLocker(t), sleeper(t), sleeper(t)
	err := k.Clear(motdLock)
	if fault.KindOf(err) != fault.Usage || !strings.Contains(err.Error(), k.Dir.Path(motdLock.String())+": no such lock") {
		t.Errorf("no lock: %v", err)
	}
	for content, may := range map[string]bool{"": true, "12": true, pidLine(living): false, pidLine(dead(t)): true} {
		plant(t, k, content, 0)
		if err := k.Clear(motdLock); (err == nil) != may || !may && fault.KindOf(err) != fault.NotPermitted {
			t.Errorf("%q: %v", content, err)
		}
	}
	must.Do(t, sysfile.IgnoreMissing(os.Remove(k.Dir.Path(motdLock.String()))))
	held := wantVerdict(t, k, ask(dead(t)), locker.Acquired)
	must.Do(t, k.RecordMembers(motdFiles, held.Token, []process.Identity{living}))
	clears := func(lock atom.File, lives process.Identity) {
		t.Helper()
		if err := k.Clear(lock); fault.KindOf(err) != fault.NotPermitted {
			t.Errorf("%s, a process of its job lives: %v", lock, err)
		}
		end(t, lives)
		must.Do(t, k.Clear(lock))
		wantLocks(t, k, 0)
	}
	clears(motdLock, living)
	wantVerdict(t, k, read(reader), locker.Acquired)
	clears(readerLock(reader), reader)
}

// endOwner ends the owner of the lock, and leaves the lock.
func endOwner(k *Locker, name atom.Name, pause time.Duration) error {
	return k.Stop(&locker.Request{Pause: pause}, atom.File{Kind: atom.ActiveLock, Name: name}, true)
}

func TestStopCanEndAnOwnerAndLeaveItsLock(t *testing.T) {
	k, owner := newLocker(t), sleeper(t)
	if err := endOwner(k, motdFiles, 0); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no lock: %v", err)
	}
	wantVerdict(t, k, ask(owner), locker.Acquired)
	must.Do(t, endOwner(k, motdFiles, time.Second))
	wantLife(t, owner, process.Dead)
	wantLocks(t, k, 1)
	wantVerdict(t, k, ask(self(t)), locker.Acquired)
	if err := endOwner(k, motdFiles, 0); fault.KindOf(err) != fault.NotPermitted || !errors.Is(err, killer.ErrAncestor) {
		t.Errorf("this very process: %v", err)
	}
}

func TestNoStampAndWithdrawStampNothing(t *testing.T) {
	k := newLocker(t)
	for _, r := range []locker.ReleaseRequest{{NoStamp: true}, {Withdraw: true}} {
		r.Name, r.Token = motdFiles, wantVerdict(t, k, ask(self(t)), locker.Acquired).Token
		must.Do(t, k.Release(r))
		wantLocks(t, k, 0)
		if lastStamp(t, k).Unix() != 0 {
			t.Errorf("stamped after %+v", r)
		}
	}
}

func TestTheListHasEachAtomOnce(t *testing.T) {
	k, owner := newLocker(t), sleeper(t)
	in := func(operand string) atom.Name {
		r := slotted(owner, operand, 1)
		wantVerdict(t, k, r, locker.Acquired)
		return r.Atom.Name()
	}
	running, finished, broken, unread := in("b"), in("a"), in("c"), in("d")
	token := openActive(t, k.Dir.Active, finished).Record.Token
	must.Do(t, k.Release(locker.ReleaseRequest{Name: finished, Token: token}))
	done := time.Now().Add(-3 * time.Hour)
	began := done.Add(-2 * time.Hour)
	must.Do(t, k.Dir.Remember(finished, done, record.Memory{Started: began}))
	plantFile(t, k, broken.ActiveLock(), "12", 0)
	last := k.Dir.Path(unread.LastLock())
	must.Do(t, errors.Join(os.Remove(last), os.Mkdir(last, 0o700)))
	must.Do(t, os.Remove(k.Dir.Path(running.LastLock())))
	plantFile(t, k, "lock.no name", "", 0)
	plantFile(t, k, "last.cfengine_conf.dax.slot-1", "", 0)

	entries, err := k.List()
	if err != nil || len(entries) != 4 {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	for i, name := range []atom.Name{finished, running, broken, unread} {
		if entries[i].Name != name {
			t.Errorf("entry %d is %s, want %s", i, entries[i].Name, name)
		}
	}
	a, b, c, d := entries[0], entries[1], entries[2], entries[3]
	if a.Err != nil || a.Active.Held || !a.Completed.Equal(done) || !a.Memory.Started.Equal(began) ||
		a.Last.Age.Truncate(time.Hour) != 3*time.Hour {
		t.Errorf("the atom that completed is %+v", a)
	}
	if b.Err != nil || !b.Active.Held || b.Record.Owner.PID != owner.PID || !b.Completed.IsZero() || b.Last.Completed {
		t.Errorf("the atom that runs is %+v", b)
	}
	if fault.KindOf(c.Err) != fault.IO || fault.KindOf(d.Err) != fault.NotPermitted {
		t.Errorf("the atoms that cannot be read: %v, %v", c.Err, d.Err)
	}
	terms := policy.Terms{Limits: ask(owner).Limits}
	if a.Decide(policy.Terms{}).Step != policy.Acquire || b.Decide(terms).Step != policy.Busy {
		t.Error("the steps are not those of a newcomer")
	}
}

func TestADryRunNeedsNoDirectoryAndMakesNone(t *testing.T) {
	path, r := filepath.Join(t.TempDir(), "none"), learner(process.Identity{})
	granted, reason, err := inWords(DryRun(path, &r))
	if err != nil || !granted || !strings.Contains(reason, "IfElapsed is "+limit.Format(learn.LeastIfElapsed)) {
		t.Errorf("%v %q %v", granted, reason, err)
	}
	if r.Limits.ExpireAfter != limit.Never {
		t.Errorf("ExpireAfter is %v", r.Limits.ExpireAfter)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Error("the directory was made")
	}
}

func TestARoundedStampGivesTheLeastPossibleAge(t *testing.T) {
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

func TestAJobDoesNotWaitForItselfForever(t *testing.T) {
	k, parent := newLocker(t), self(t)
	refused := func(r locker.Request, want locker.Verdict) {
		t.Helper()
		r.Wait = limit.Never
		wantTaken(t, takes(t, k, r), want)
	}
	held := wantVerdict(t, k, ask(parent), locker.Acquired)
	refused(ask(sleeper(t)), locker.Busy)
	release(t, k, held)

	held = wantVerdict(t, k, ask(dead(t)), locker.Acquired) // its command is this process
	must.Do(t, k.RecordCommand(motdFiles, held.Token, parent))
	refused(ask(sleeper(t)), locker.Busy)
	must.Do(t, os.Remove(k.Dir.Path("lock."+motdFiles)))

	// Beside another's slot the newcomer could wait for that one.
	wantVerdict(t, k, slotted(parent, "b", 1), locker.Acquired)
	refused(slotted(sleeper(t), "c", 1), locker.Full)
}

func TestAProcessOutsideTheJobMayWaitForever(t *testing.T) {
	k, owner, r := newLocker(t), sleeper(t), ask(self(t))
	held := wantVerdict(t, k, ask(dead(t)), locker.Acquired)
	must.Do(t, k.RecordCommand(motdFiles, held.Token, owner))
	v := view{}
	defer v.close()
	must.Get(k.look(&v, &r, r.Atom.Name(), r.Clock(time.Now()), first))(t)
	busy := policy.Decision{Step: policy.Busy}
	own := locker.View{Active: policy.Active{Held: true, Owner: policy.Ancestor}}
	for _, wait := range []time.Duration{limit.Never, time.Hour, 0} {
		r.Wait = wait
		if o := r.Denied(busy, &v.View); o.Endless || strings.Contains(o.Reason, "inside") {
			t.Errorf("behind a stranger's job: %+v", o)
		}
		if o := r.Denied(busy, &own); o.Endless != (wait == limit.Never) {
			t.Errorf("inside the job, waiting %v: %+v", wait, o)
		}
	}
	orphaned := locker.View{Active: policy.Active{Held: true, Owner: policy.Orphaned}}
	if r.Wait = limit.Never; r.Denied(busy, &orphaned).Endless {
		t.Error("a job that cannot be looked at counts as its own") // a store's lock has no file
	}
}

// The denial has the owner's pid, and when to check again.
func TestADenialNamesTheOwnerAndWhenToCheckAgain(t *testing.T) {
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
	r.Now = time.Now() // the pass clock stands still, and so do ages
	soon, busy := r.Denied(policy.Decision{Step: policy.TooSoon}, &v), r.Denied(policy.Decision{Step: policy.Busy}, &v)
	if !soon.Endless || busy.Endless || busy.Recheck != 0 {
		t.Errorf("by the pass clock: %+v, %+v", soon, busy)
	}
}

func TestWaitingCountsFromWaitSince(t *testing.T) {
	since := func(d time.Duration) time.Duration { return process.Boottime() - d }
	for _, c := range []struct {
		r           locker.Request
		left, spent time.Duration
	}{
		{locker.Request{Wait: 2 * time.Hour, WaitSince: since(90 * time.Minute)}, 30 * time.Minute, 90 * time.Minute},
		{locker.Request{WaitSince: since(90 * time.Minute)}, 0, 0}, // it does not wait
		{locker.Request{Wait: time.Hour}, time.Hour, 0},
		{locker.Request{Wait: 1, WaitSince: since(time.Hour)}, -time.Hour, time.Hour},
	} {
		w := locker.NewWaiting(&c.r)
		if left, spent := w.Left().Round(time.Minute), w.Spent().Round(time.Minute); left != c.left || spent != c.spent {
			t.Errorf("%+v: %v are left, %v spent", c.r, left, spent)
		}
	}
}

func TestAnEmptyOperandIsAUsageErrorAndLeavesNoFile(t *testing.T) {
	k, r := newLocker(t), ask(process.Identity{})
	r.Atom.Operand = ""
	if outcome, err := k.Take(r); fault.KindOf(err) != fault.Usage || outcome.Verdict != "" {
		t.Errorf("%v, %v", outcome.Verdict, err)
	}
	if left, _ := filepath.Glob(k.Dir.Path("*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestALastLockOfAnotherAtomIsAnErrorThatNamesBoth(t *testing.T) {
	k, r := newLocker(t), ask(process.Identity{})
	r.Atom.Operand = "my_db"
	other := r.Atom
	other.Operand = "your_db"
	must.Do(t, k.Dir.MakeLast(r.Atom.Name(), record.Memory{Atom: other}))
	if _, err := k.Take(r); fault.KindOf(err) != fault.System || !strings.Contains(err.Error(), "my_db") || !strings.Contains(err.Error(), "your_db") {
		t.Errorf("taken: %v", err)
	}
}

func TestALostLockIsLoggedWithTheWholeOperand(t *testing.T) {
	k, r := newLocker(t), ask(sleeper(t))
	r.Atom.Operand = "my_db" // NAME has only a checksum of this operand
	held := wantVerdict(t, k, r, locker.Acquired)
	err := k.Release(locker.ReleaseRequest{Name: r.Atom.Name(), Token: record.NewToken()})
	if fault.KindOf(err) != fault.Denied {
		t.Errorf("released: %v", err)
	}
	if e := eventOf(t, k, runlog.Lost); e.Operand != "my_db" || e.OwnerToken != held.Token {
		t.Errorf("the runlog has %+v", e)
	}
}

func TestIndependentFindsOnlyALivingProcessOfTheOwnersImage(t *testing.T) {
	gone, other, third := dead(t), self(t), sleeper(t)
	gone.Image, other.Image, third.Image = 5, 5, 5
	for claim, c := range map[string]struct {
		change func(owner, other *process.Identity)
		want   bool
	}{
		"both may be subshells":  {func(_, _ *process.Identity) {}, true},
		"the image is unknown":   {func(owner, other *process.Identity) { owner.Image, other.Image = 0, 0 }, false},
		"the owner lives":        {func(owner, _ *process.Identity) { *owner = third }, false},
		"it runs another image":  {func(_, other *process.Identity) { other.Image++ }, false},
		"the owner's group":      {func(owner, other *process.Identity) { other.PGID = owner.PID }, false},
		"the owner's session":    {func(owner, other *process.Identity) { other.SID = owner.PID }, false},
		"it is dead":             {func(owner, other *process.Identity) { other.PID, other.Start = owner.PID, owner.Start+1 }, false},
		"the owner's other lock": {func(owner, other *process.Identity) { *other = *owner }, false},
	} {
		owner, o := gone, other
		c.change(&owner, &o)
		e := ending{active: &lockfile.Active{Record: record.Record{Owner: owner}}}
		if lock := e.independent([]*lockfile.Active{{Record: record.Record{Owner: o}}}); (lock != nil) != c.want {
			t.Errorf("%s: %v, want %v", claim, lock, c.want)
		}
	}
}

// longAgo is before this boot.
const longAgo = 20 * 365 * 24 * time.Hour

// wrecks returns what a loss of power may leave of a lock.
func wrecks(t *testing.T, k *Locker) map[string]string {
	t.Helper()
	wantVerdict(t, k, ask(dead(t)), locker.Acquired)
	path := k.Dir.Path("lock." + motdFiles)
	whole := must.Get(os.ReadFile(path))(t)
	must.Do(t, os.Remove(path))
	zeros := strings.Repeat("\x00", len(whole))
	return map[string]string{
		"zeros": zeros, "cut short": string(whole[:100]), "zeros after a block": string(whole[:100]) + zeros[100:],
		"a block of zeros": zeros[:100] + string(whole[100:]),
	}
}

func needKnownBoot(t *testing.T) {
	t.Helper()
	if !process.BeforeBoot(time.Now().Add(-longAgo)) {
		need.Skip(t, "in a time namespace")
	}
}

func TestALockDamagedBeforeThisBootDoesNotDenyANewcomer(t *testing.T) {
	needKnownBoot(t)
	k := newLocker(t)
	newcomer := ask(sleeper(t))
	slotted := newcomer
	slotted.Slots = 1
	for claim, content := range wrecks(t, k) {
		for file, r := range map[string]locker.Request{
			"lock." + motdFiles: newcomer, motd.Slot(1).ActiveLock(): slotted, motd.Name().ReaderLock(4711): newcomer,
		} {
			must.Do(t, k.Dir.MarkRead(motdFiles))
			plantFile(t, k, file, content, 0)
			if _, _, err := inWords(k.DryRun(&r)); fault.KindOf(err) != fault.IO {
				t.Errorf("%s, %s of this boot: %v", claim, file, err)
			}
			plantFile(t, k, file, content, longAgo)
			if free, reason, err := inWords(k.DryRun(&r)); !free || err != nil {
				t.Errorf("%s, %s: a dry run says %q, %v", claim, file, reason, err)
			}
			if entries, err := k.List(); err != nil || len(entries) == 0 || entries[0].Err != nil {
				t.Errorf("%s, %s: %+v, %v", claim, file, entries, err)
			}
			release(t, k, wantVerdict(t, k, r, locker.Acquired))
			if _, err := os.Stat(k.Dir.Path(file)); !os.IsNotExist(err) {
				t.Errorf("%s, %s: it is still there (%v)", claim, file, err)
			}
		}
	}
}

// A later version may have written such a lock, and its owner may live.
func TestAWholeLockOfAnUnknownFormatIsAnError(t *testing.T) {
	k := newLocker(t)
	for _, content := range []string{"4711\ntoken=x\nformat=2\nend=\n", "4711\ntoken=x\nformat=1\nend=\nunknown\n"} {
		plant(t, k, content, longAgo)
		if _, err := k.Take(ask(sleeper(t))); fault.KindOf(err) != fault.IO {
			t.Errorf("%q: %v", content, err)
		}
	}
}

func TestADamagedLastLockMakesTheAtomDueAndIsReplaced(t *testing.T) {
	k, owner := newLocker(t), sleeper(t)
	r := ask(owner)
	r.Limits.IfElapsed, r.Atom.Operand = time.Hour, "my_db" // its name does not identify it
	name := r.Atom.Name()
	for claim, content := range map[string]string{"zeros": strings.Repeat("\x00", 200), "cut short": "start", "forgotten": "start"} {
		plantFile(t, k, name.LastLock(), content, time.Minute)
		if free, reason, err := inWords(k.DryRun(&r)); !free || err != nil || !strings.Contains(reason, "the last lock is damaged") {
			t.Errorf("%s: a dry run says %v %q, %v", claim, free, reason, err)
		}
		if claim == "forgotten" { // which makes it anew, without the identity
			must.Do(t, k.Forget(name))
		}
		letGo(t, k, r, wantVerdict(t, k, r, locker.Acquired))
		if last, err := k.Dir.Last(name); err != nil || last.Damaged || last.Memory.Atom != r.Atom || time.Since(last.Completed) > time.Minute {
			t.Errorf("%s: %+v, %v", claim, last, err)
		}
		wantVerdict(t, k, r, locker.TooSoon)
	}
}

func TestALockFromABackupIsReportedOnceAndStays(t *testing.T) {
	k := newLocker(t)
	k.Log = &runlog.Log{Dir: t.TempDir(), Host: "dax"}
	held := wantVerdict(t, k, ask(sleeper(t)), locker.Acquired)
	lock, err := k.Dir.Active(motdFiles)
	if err != nil || lock.Record.File == 0 || lock.Restored() {
		t.Fatalf("made here: %+v, %v", lock, err)
	}
	lock.Close()
	path := k.Dir.Path("lock." + motdFiles)
	text := must.Get(os.ReadFile(path))(t)
	must.Do(t, os.Rename(path, path+".old")) // the old file keeps its inode
	of := strings.NewReplacer("machine="+lock.Record.Owner.Machine, "machine=another", "boot="+lock.Record.Owner.Boot, "boot=another")
	plant(t, k, of.Replace(string(text)), 0)
	r := ask(sleeper(t))
	for _, want := range []string{"a backup has brought this lock back: ", ""} {
		said := helper.Stderr(t, func() { wantVerdict(t, k, r, locker.Busy) })
		if want == "" && said != "" || !strings.Contains(said, want) || want != "" && !strings.Contains(said, "adlock clear ") {
			t.Errorf("said %q", said)
		}
	}
	if found, err := k.Dir.Active(motdFiles); err != nil || found.Record.Token != held.Token {
		t.Errorf("%+v, %v", found, err)
	}
}
