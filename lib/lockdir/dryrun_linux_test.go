package lockdir

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/fault"
	"adlock/lib/locker"
	"adlock/lib/process"
)

// A dry run asks the same question as a request, and says why.
func TestADryRunAnswersAsARequestDoes(t *testing.T) {
	owner, gone, newcomer := sleeper(t), dead(t), sleeper(t)
	taken := func(t *testing.T, k *Locker, requests ...locker.Request) {
		for _, r := range requests {
			wantVerdict(t, k, r, locker.Acquired)
		}
	}
	for claim, c := range map[string]struct {
		prepare func(t *testing.T, k *Locker)
		ask     locker.Request
		reason  string // its beginning
	}{
		"free":         {func(*testing.T, *Locker) {}, ask(newcomer), "free: never completed"},
		"held":         {func(t *testing.T, k *Locker) { taken(t, k, ask(owner)) }, ask(newcomer), "busy: running for "},
		"a dead owner": {func(t *testing.T, k *Locker) { taken(t, k, ask(gone)) }, ask(newcomer), "free: the owner is dead"},
		"held, and full": {func(t *testing.T, k *Locker) { taken(t, k, ask(owner), slotted(owner, "other", 1)) },
			slotted(newcomer, motd.Operand, 1), "busy: running for "},
		"a reader":                 {func(t *testing.T, k *Locker) { taken(t, k, sharing(ask(owner))) }, ask(newcomer), "busy: running for "},
		"a dead reader":            {func(t *testing.T, k *Locker) { taken(t, k, sharing(ask(gone))) }, ask(newcomer), "free: the owner is dead"},
		"a reader beside a reader": {func(t *testing.T, k *Locker) { taken(t, k, sharing(ask(owner))) }, sharing(ask(newcomer)), "free: never completed"},
		"a dead reader and a living one": {func(t *testing.T, k *Locker) { taken(t, k, sharing(ask(owner)), sharing(ask(gone))) },
			ask(newcomer), "busy: running for "},
		"a slot":                  {func(t *testing.T, k *Locker) { taken(t, k, slotted(owner, "other", 1)) }, slotted(newcomer, "x", 1), "full: an atom of cfengine.conf is running"},
		"one slot of two":         {func(t *testing.T, k *Locker) { taken(t, k, slotted(owner, "other", 1)) }, slotted(newcomer, "x", 2), "free: never completed"},
		"two slots of two":        {func(t *testing.T, k *Locker) { taken(t, k, slotted(owner, "other", 1), slotted(self(t), "third", 2)) }, slotted(newcomer, "x", 2), "full: 2 atoms of cfengine.conf are running"},
		"a dead owner's slot":     {func(t *testing.T, k *Locker) { taken(t, k, slotted(gone, "other", 1)) }, slotted(newcomer, "x", 1), "free: never completed"},
		"one's own slot":          {func(t *testing.T, k *Locker) { taken(t, k, slotted(newcomer, "other", 1)) }, slotted(newcomer, "x", 1), "free: never completed"},
		"one's own slot of two":   {func(t *testing.T, k *Locker) { taken(t, k, slotted(newcomer, "other", 1), slotted(owner, "third", 2)) }, slotted(newcomer, "x", 2), "free: never completed"},
		"one's own is the second": {func(t *testing.T, k *Locker) { taken(t, k, slotted(owner, "other", 1), slotted(newcomer, "third", 2)) }, slotted(newcomer, "x", 2), "free: never completed"},
		"an unused slot": {func(t *testing.T, k *Locker) {
			other := slotted(owner, "other", 1)
			taken(t, k, other)
			if err := os.Remove(k.Dir.Path(other.Atom.Name().ActiveLock())); err != nil {
				t.Fatal(err)
			}
		}, slotted(newcomer, "x", 1), "free: never completed"},
	} {
		t.Run(claim, func(t *testing.T) {
			k := newLocker(t)
			c.prepare(t, k)
			before := openFiles(t, k)
			granted, reason, err := k.DryRun(&c.ask)
			if err != nil || !strings.HasPrefix(reason, c.reason) {
				t.Errorf("%s, %v; want %s", reason, err, c.reason)
			}
			if left := openFiles(t, k) - before; left != 0 {
				t.Errorf("%d files are left open", left)
			}
			outcome, err := k.Take(c.ask)
			if err != nil || granted != (outcome.Verdict == locker.Acquired) {
				t.Errorf("granted is %v, and then %s, %v", granted, outcome.Verdict, err)
			}
		})
	}
}

func TestADryRunNamesTheProcessInTheWay(t *testing.T) {
	k, owner := newLocker(t), sleeper(t)
	wantVerdict(t, k, ask(owner), locker.Acquired)
	holder := standsAt(t, k, motdFiles)
	newcomer := ask(sleeper(t))
	newcomer.Limits.ExpireAfter, newcomer.Pause = time.Nanosecond, 0
	for grace, want := range map[time.Duration]string{
		time.Hour: "^busy: " + locker.ErrGuarded.Error() + "$",
		0:         `^stuck: running for \S+, ExpireAfter is 0s, and process ` + strconv.Itoa(holder.PID) + ", which is changing the lock, is stopped$",
	} {
		withGrace(t, grace)
		if granted, reason, err := k.DryRun(&newcomer); granted || !regexp.MustCompile(want).MatchString(reason) || err != nil {
			t.Errorf("%v: %s, %v; want %s", granted, reason, err, want)
		}
	}
}

func TestADryRunSaysThatASlotCannotBeRead(t *testing.T) {
	k := newLocker(t)
	wantVerdict(t, k, slotted(sleeper(t), "other", 1), locker.Acquired)
	r := slotted(sleeper(t), "x", 1)
	met, err := failing(t, k, unix.SYS_OPENAT, 1, func() error {
		granted, _, err := k.DryRun(&r)
		if granted {
			t.Error("it is granted")
		}
		return err
	})
	if !met || fault.KindOf(err) != fault.IO {
		t.Errorf("met %v: %v", met, err)
	}
}

// A damaged slot fails a run that comes to it, and no other.
func TestADryRunSaysThatASlotIsDamagedWhereARunWouldComeToIt(t *testing.T) {
	for claim, c := range map[string]struct {
		first   func(t *testing.T, k *Locker, asks locker.Request)
		damaged int
		fails   bool
	}{
		"the only one":      {func(*testing.T, *Locker, locker.Request) {}, 1, true},
		"behind a free one": {func(*testing.T, *Locker, locker.Request) {}, 2, false},
		"behind a taken one": {func(t *testing.T, k *Locker, _ locker.Request) {
			wantVerdict(t, k, slotted(sleeper(t), "other", 1), locker.Acquired)
		}, 2, true},
		"behind a dead one's": {func(t *testing.T, k *Locker, _ locker.Request) {
			wantVerdict(t, k, slotted(dead(t), "other", 1), locker.Acquired)
		}, 2, false},
		"behind its own": {func(t *testing.T, k *Locker, r locker.Request) {
			wantVerdict(t, k, slotted(r.Owner, "other", 1), locker.Acquired)
		}, 2, false},
		"before a free one":    {func(*testing.T, *Locker, locker.Request) {}, 1, true},
		"before its own":       {func(t *testing.T, k *Locker, r locker.Request) { ownsSecondSlot(t, k, r.Owner) }, 1, false},
		"two, and the one too": {func(t *testing.T, k *Locker, _ locker.Request) { damage(t, k, 2) }, 1, true},
	} {
		k, r := newLocker(t), slotted(sleeper(t), "x", 2)
		if claim == "the only one" {
			r.Slots = 1
		}
		c.first(t, k, r)
		damage(t, k, c.damaged)
		granted, reason, err := k.DryRun(&r)
		if failed := fault.KindOf(err) == fault.IO; failed != c.fails || granted == c.fails {
			t.Errorf("%s: %s, %v", claim, reason, err)
		}
		outcome, ran := k.Take(r)
		if (ran == nil && outcome.Verdict == locker.Acquired) != granted || (err == nil) != (ran == nil) || err != nil && err.Error() != ran.Error() {
			t.Errorf("%s: a run says %s, %v; a dry run %v", claim, outcome.Verdict, ran, err)
		}
	}
}

func damage(t *testing.T, k *Locker, slot int) {
	t.Helper()
	if err := os.WriteFile(k.Dir.Path(motd.Slot(slot).ActiveLock()), []byte("damaged\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// ownsSecondSlot makes the owner hold the second slot.
func ownsSecondSlot(t *testing.T, k *Locker, owner process.Identity) {
	t.Helper()
	other := slotted(sleeper(t), "other", 1)
	held := wantVerdict(t, k, other, locker.Acquired)
	wantVerdict(t, k, slotted(owner, "third", 2), locker.Acquired)
	letGo(t, k, other, held)
}
