package lockdir

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/locker"
	"adlock/lib/policy"
	"adlock/lib/process"
	"adlock/lib/record"
	"adlock/test/support/must"
)

func TestADryRunForeseesTheVerdictOfARequest(t *testing.T) {
	owner, gone, newcomer := sleeper(t), dead(t), sleeper(t)
	elsewhere := owner
	elsewhere.PIDNS++
	other, third, mine := slotted(owner, "other", 1), slotted(owner, "third", 2), slotted(newcomer, "other", 1)
	one, two := slotted(newcomer, "x", 1), slotted(newcomer, "x", 2)
	busy, free, never := "busy: running for ", "free: the owner is dead", "free: never completed"
	outer := slotted(sleeper(t), "outer", 1)
	inner := slotted(outer.Owner, "inner", 1)
	tooSoon := ask(newcomer)
	tooSoon.Limits.IfElapsed = time.Hour
	nothing := func(*Locker) {}
	empty := func(k *Locker) { plant(t, k, "", time.Hour) }
	completes := func(k *Locker) { plantFile(t, k, "last."+motdFiles, "", 0) }
	paused := func(k *Locker) {
		must.Do(t, k.Dir.Remember(motdFiles, time.Time{}, record.Memory{Pause: record.NewPause(time.Hour, "disk")}))
	}
	type all = []locker.Request
	for claim, c := range map[string]struct {
		taken  all
		then   func(k *Locker)
		ask    locker.Request
		reason string // its beginning
	}{
		"free":                           {nil, nothing, ask(newcomer), never},
		"held":                           {all{ask(owner)}, nothing, ask(newcomer), busy},
		"an expired owner":               {all{ask(sleeper(t))}, nothing, hasty(newcomer), "expired"},
		"a dead owner":                   {all{ask(gone)}, nothing, ask(newcomer), free},
		"an owner elsewhere":             {all{ask(elsewhere)}, nothing, ask(newcomer), "busy"},
		"an expired owner elsewhere":     {all{ask(elsewhere)}, nothing, hasty(newcomer), "stuck"},
		"held, and full":                 {all{ask(owner), other}, nothing, slotted(newcomer, motd.Operand, 1), busy},
		"an empty lock":                  {nil, empty, ask(newcomer), "free: the lock is empty"},
		"too soon":                       {nil, completes, tooSoon, "too soon"},
		"a paused atom":                  {nil, paused, ask(newcomer), "paused"},
		"a reader":                       {all{read(owner)}, nothing, ask(newcomer), busy},
		"a dead reader":                  {all{read(gone)}, nothing, ask(newcomer), free},
		"a reader beside a reader":       {all{read(owner)}, nothing, read(newcomer), never},
		"a dead reader and a living one": {all{read(owner), read(gone)}, nothing, ask(newcomer), busy},
		"a slot":                         {all{other}, nothing, one, "full: an atom of cfengine.conf is running"},
		"one slot of two":                {all{other}, nothing, two, never},
		"two slots of two": {all{other, slotted(self(t), "third", 2)}, nothing, two,
			"full: 2 atoms of cfengine.conf are running"},
		"a dead owner's slot":     {all{slotted(gone, "other", 1)}, nothing, one, never},
		"one's own slot":          {all{mine}, nothing, one, never},
		"one's own slot of two":   {all{mine, third}, nothing, two, never},
		"one's own is the second": {all{other, slotted(newcomer, "third", 2)}, nothing, two, never},
		"an unused slot": {all{other}, func(k *Locker) {
			must.Do(t, os.Remove(k.Dir.Path(other.Atom.Name().ActiveLock())))
		}, one, never},
		"a slot of a dead owner's inner job": {all{outer, inner}, func(k *Locker) {
			must.Do(t, os.Remove(k.Dir.Path(outer.Atom.Name().ActiveLock())))
			must.Do(t, openActive(t, k.Dir.Active, inner.Atom.Name()).AppendCommand(owner))
			end(t, outer.Owner)
		}, one, "full: an atom of cfengine.conf is running"},
	} {
		k := newLocker(t)
		for _, r := range c.taken {
			wantVerdict(t, k, r, locker.Acquired)
		}
		c.then(k)
		open, before := openFiles(t, k), wholeOf(t, k)
		granted, reason, err := inWords(k.DryRun(&c.ask))
		if err != nil || !strings.HasPrefix(reason, c.reason) {
			t.Errorf("%s: %s, %v; want %s", claim, reason, err, c.reason)
		}
		if left := openFiles(t, k) - open; left != 0 || wholeOf(t, k) != before {
			t.Errorf("%s: %d files are left open; there were\n%s, there are\n%s", claim, left, before, wholeOf(t, k))
		}
		kept := false
		c.ask.Keep = func(leave func()) { kept = true; leave() }
		outcome, err := k.Take(c.ask)
		if want := outcome.Verdict == locker.Acquired && !c.ask.Shared; kept != want {
			t.Errorf("%s: its place in the queue is kept: %v, want %v", claim, kept, want)
		}
		if (err != nil) != (outcome.Verdict == locker.Stuck) || granted != (outcome.Verdict == locker.Acquired) {
			t.Errorf("%s: granted is %v, and then %s, %v", claim, granted, outcome.Verdict, err)
		}
	}
}

func TestADryRunNamesAGuardsStoppedHolderAfterTheGraceTime(t *testing.T) {
	for lock, owner := range map[atom.Kind]locker.Request{atom.ActiveLock: ask(sleeper(t)), atom.ReaderLock: read(sleeper(t))} {
		k, newcomer := newLocker(t), ask(sleeper(t))
		wantVerdict(t, k, owner, locker.Acquired)
		holder := guards(t, must.Get(k.Dir.Lock(atom.File{Kind: lock, Name: motdFiles, Number: owner.Owner.PID}))(t))
		stop(t, holder)
		newcomer.Limits.ExpireAfter, newcomer.Pause = time.Nanosecond, 0
		for grace, want := range map[time.Duration]string{
			time.Hour: "^busy: " + locker.ErrGuarded.Error() + "$",
			0:         `^stuck: running for \S+, ExpireAfter is 0s, and process ` + strconv.Itoa(holder.PID) + ", which is changing the lock, is stopped$",
		} {
			withGrace(t, grace)
			if granted, reason, err := inWords(k.DryRun(&newcomer)); granted || !regexp.MustCompile(want).MatchString(reason) || err != nil {
				t.Errorf("%v: %s, %v; want %s", granted, reason, err, want)
			}
		}
	}
}

func TestADryRunReportsADamagedSlotExactlyIfARunWould(t *testing.T) {
	nothing := func(*Locker, locker.Request) {}
	has := func(owner process.Identity) func(*Locker, locker.Request) {
		return func(k *Locker, _ locker.Request) { wantVerdict(t, k, slotted(owner, "other", 1), locker.Acquired) }
	}
	own := func(k *Locker, r locker.Request) { has(r.Owner)(k, r) }
	secondOwn := func(k *Locker, r locker.Request) { ownsSecondSlot(t, k, r.Owner) }
	for claim, c := range map[string]struct {
		slots   int
		first   func(k *Locker, asks locker.Request)
		damaged int
		fails   bool
	}{
		"the only one":         {1, nothing, 1, true},
		"behind a free one":    {2, nothing, 2, false},
		"behind a taken one":   {2, has(sleeper(t)), 2, true},
		"behind a dead one's":  {2, has(dead(t)), 2, false},
		"behind its own":       {2, own, 2, false},
		"before a free one":    {2, nothing, 1, true},
		"before its own":       {2, secondOwn, 1, false},
		"two, and the one too": {2, func(k *Locker, _ locker.Request) { damage(t, k, 2) }, 1, true},
	} {
		k, r := newLocker(t), slotted(sleeper(t), motd.Operand, c.slots)
		c.first(k, r)
		damage(t, k, c.damaged)
		granted, reason, err := inWords(k.DryRun(&r))
		if failed := fault.KindOf(err) == fault.IO; failed != c.fails || granted == c.fails {
			t.Errorf("%s: %s, %v", claim, reason, err)
		}
		outcome, ran := k.Take(r)
		runs := ran == nil && outcome.Verdict == locker.Acquired
		if runs != granted || (err == nil) != (ran == nil) || err != nil && err.Error() != ran.Error() {
			t.Errorf("%s: a run says %s, %v; a dry run %v", claim, outcome.Verdict, ran, err)
		}
		if isThere(k, motdLock.String()) != runs {
			t.Errorf("%s: the run was granted is %v, and the atom's lock is there or not", claim, runs)
		}
	}
}

func damage(t *testing.T, k *Locker, slot int) {
	t.Helper()
	must.Do(t, os.WriteFile(k.Dir.Path(motd.Slot(slot).ActiveLock()), []byte("damaged\n"), 0o600))
}

// ownsSecondSlot makes the owner hold the second slot.
func ownsSecondSlot(t *testing.T, k *Locker, owner process.Identity) {
	t.Helper()
	other := slotted(sleeper(t), "other", 1)
	held := wantVerdict(t, k, other, locker.Acquired)
	wantVerdict(t, k, slotted(owner, "third", 2), locker.Acquired)
	letGo(t, k, other, held)
}

// inWords returns what a dry run found: whether the atom would be taken, and why.
func inWords(d policy.Decision, err error) (granted bool, reason string, _ error) {
	if err != nil {
		return false, "", err
	}
	return d.Step.Granted(), d.Reason(), nil
}
