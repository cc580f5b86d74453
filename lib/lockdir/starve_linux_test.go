package lockdir

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"adlock/lib/atom"
	"adlock/lib/learn"
	"adlock/lib/locker"
	"adlock/lib/policy"
	"adlock/lib/process"
	"adlock/lib/record"
	"adlock/lib/runlog"
	"adlock/test/support/helper"
)

// denied writes that number of denials into the runlog.
func denied(t *testing.T, k *Locker, a atom.Atom, verdict locker.Verdict, times int) {
	t.Helper()
	for range times {
		e := aboutAtom(a, runlog.Deny, 7)
		e.Verdict = string(verdict)
		if err := k.Log.Append(e); err != nil {
			t.Fatal(err)
		}
	}
}

// counted writes a denial that says how many there were in a row.
func counted(t *testing.T, k *Locker, inARow int) {
	t.Helper()
	e := aboutAtom(motd, runlog.Deny, 7)
	e.Verdict, e.Count = string(locker.Busy), inARow
	if err := k.Log.Append(e); err != nil {
		t.Fatal(err)
	}
}

// starves makes one more denial, and returns the number of denials in a row that it reports; 0: no
// report.
func starves(t *testing.T, k *Locker, verdict locker.Verdict, starving int) (count int) {
	t.Helper()
	r := ask(process.Identity{PID: 7})
	r.Starving = starving
	said := helper.Stderr(t, func() { k.Denied(&r, locker.Outcome{Verdict: verdict, Reason: "some reason"}, nil, 0) })
	for e := range k.Log.Newest(1 << 20) {
		if e.Kind == runlog.Starved {
			count = e.Count
			if e.Verdict != string(verdict) || e.Reason != "some reason" || e.PID != 7 {
				t.Errorf("starved: %+v", e)
			}
		}
		break
	}
	want := ""
	if count > 0 {
		want = fmt.Sprintf("adlock: editfile /etc/motd: starving: denied %d times in a row; some reason; let it wait (--wait, ADLOCK_WAIT), or raise --slots (ADLOCK_SLOTS)\n", count)
	}
	if said != want {
		t.Errorf("said %q, want %q", said, want)
	}
	return count
}

func TestAStarvingWaiterIsAdvisedToWaitLonger(t *testing.T) {
	k := newLocker(t)
	r := ask(process.Identity{PID: 7})
	r.Starving = 1
	said := helper.Stderr(t, func() { k.Denied(&r, locker.Outcome{Verdict: locker.Full, Reason: "full"}, nil, time.Second) })
	if !strings.HasSuffix(said, "; let it wait longer (--wait, ADLOCK_WAIT), or raise --slots (ADLOCK_SLOTS)\n") {
		t.Errorf("said %q", said)
	}
}

func TestDenialsOfOneAtomInARowAreCounted(t *testing.T) {
	changed := func(change func(*atom.Atom)) atom.Atom {
		a := motd
		change(&a)
		return a
	}
	for _, c := range []struct {
		claim    string
		before   func(t *testing.T, k *Locker)
		verdict  locker.Verdict
		starving int
		want     int
	}{
		{"full", func(t *testing.T, k *Locker) { denied(t, k, motd, locker.Full, 2) }, locker.Full, 3, 3},
		{"busy, which is reported as overdue instead", func(t *testing.T, k *Locker) { denied(t, k, motd, locker.Busy, 2) }, locker.Busy, 3, 0},
		{"both", func(t *testing.T, k *Locker) { denied(t, k, motd, locker.Busy, 1); denied(t, k, motd, locker.Full, 1) }, locker.Full, 3, 3},
		{"more than the first report needs", func(t *testing.T, k *Locker) { denied(t, k, motd, locker.Full, 4) }, locker.Full, 3, 0},
		{"ten times as many", func(t *testing.T, k *Locker) { denied(t, k, motd, locker.Full, 29) }, locker.Full, 3, 30},
		{"a hundred times as many", func(t *testing.T, k *Locker) { counted(t, k, 998); denied(t, k, motd, locker.Busy, 1) }, locker.Full, 10, 1000},
		{"nearly as many", func(t *testing.T, k *Locker) { counted(t, k, 98) }, locker.Full, 10, 0},
		{"a number between two reports", func(t *testing.T, k *Locker) { counted(t, k, 49) }, locker.Full, 10, 0},
		{"too few", func(t *testing.T, k *Locker) { denied(t, k, motd, locker.Full, 1) }, locker.Full, 3, 0},
		{"the first", func(*testing.T, *Locker) {}, locker.Full, 1, 1},
		{"no report is asked for", func(t *testing.T, k *Locker) { denied(t, k, motd, locker.Full, 9) }, locker.Full, 0, 0},
		{"this one is too soon", func(t *testing.T, k *Locker) { denied(t, k, motd, locker.Full, 9) }, locker.TooSoon, 3, 0},
		{"too soon between", func(t *testing.T, k *Locker) {
			denied(t, k, motd, locker.Full, 1)
			denied(t, k, motd, locker.TooSoon, 9)
		}, locker.Full, 3, 0},
		{"no denials", func(t *testing.T, k *Locker) {
			for range 9 {
				e := about(runlog.Lost, 7)
				e.Verdict = string(locker.Full)
				if err := k.Log.Append(e); err != nil {
					t.Fatal(err)
				}
			}
		}, locker.Full, 3, 0},
		{"said already", func(t *testing.T, k *Locker) {
			denied(t, k, motd, locker.Full, 9)
			if err := k.Log.Append(about(runlog.Starved, 7)); err != nil {
				t.Fatal(err)
			}
			denied(t, k, motd, locker.Full, 2)
		}, locker.Full, 3, 0},
		{"taken between", func(t *testing.T, k *Locker) {
			denied(t, k, motd, locker.Full, 9)
			if err := k.Log.Append(about(runlog.Acquire, 7)); err != nil {
				t.Fatal(err)
			}
			denied(t, k, motd, locker.Full, 1)
		}, locker.Full, 3, 0},
		{"another operand", func(t *testing.T, k *Locker) {
			denied(t, k, changed(func(a *atom.Atom) { a.Operand = "x" }), locker.Full, 9)
		}, locker.Full, 3, 0},
		{"another operator", func(t *testing.T, k *Locker) {
			denied(t, k, changed(func(a *atom.Atom) { a.Operator = "x" }), locker.Full, 9)
		}, locker.Full, 3, 0},
		{"another program", func(t *testing.T, k *Locker) {
			denied(t, k, changed(func(a *atom.Atom) { a.Program = "x" }), locker.Full, 9)
		}, locker.Full, 3, 0},
		{"another host", func(t *testing.T, k *Locker) {
			denied(t, k, changed(func(a *atom.Atom) { a.Host = "x" }), locker.Full, 9)
		}, locker.Full, 3, 0},
		{"another atom between", func(t *testing.T, k *Locker) {
			denied(t, k, motd, locker.Full, 1)
			denied(t, k, changed(func(a *atom.Atom) { a.Operand = "x" }), locker.Full, 9)
			denied(t, k, motd, locker.Full, 1)
		}, locker.Full, 3, 3},
		{"so far back that it is not looked at", func(t *testing.T, k *Locker) {
			denied(t, k, motd, locker.Full, 9)
			other := changed(func(a *atom.Atom) { a.Operand = strings.Repeat("x", 3000) })
			denied(t, k, other, locker.Full, 256<<10/3000)
		}, locker.Full, 3, 0},
	} {
		k := newLocker(t)
		c.before(t, k)
		if got := starves(t, k, c.verdict, c.starving); got != c.want {
			t.Errorf("%s: %d in a row are reported, want %d", c.claim, got, c.want)
		}
	}
}

func TestWithoutARunlogStarvingIsNotReported(t *testing.T) {
	k, r := newLocker(t), ask(process.Identity{PID: 7})
	k.Log, r.Starving = nil, 1
	if said := helper.Stderr(t, func() { k.Denied(&r, locker.Outcome{Verdict: locker.Busy}, nil, 0) }); said != "" {
		t.Errorf("said %q", said)
	}
}

func TestOnlyRequestsTooSoonStretchIfElapsed(t *testing.T) {
	owner := sleeper(t)
	for _, c := range []struct {
		verdict locker.Verdict
		kind    runlog.Kind
		times   int
		auto    locker.Auto
		want    bool
	}{
		{locker.TooSoon, runlog.Deny, 20, locker.Auto{IfElapsed: true}, true},
		{locker.TooSoon, runlog.Deny, 19, locker.Auto{IfElapsed: true}, false},
		{locker.Busy, runlog.Deny, 40, locker.Auto{IfElapsed: true}, false},
		{locker.TooSoon, runlog.Lost, 40, locker.Auto{IfElapsed: true}, false},
		{locker.TooSoon, runlog.Deny, 40, locker.Auto{ExpireAfter: true}, false},
	} {
		for _, reclaimed := range []bool{false, true} {
			k := newLocker(t)
			if reclaimed {
				wantVerdict(t, k, ask(dead(t)), locker.Acquired)
			}
			for range c.times {
				e := about(c.kind, 7)
				e.Verdict = string(c.verdict)
				if err := k.Log.Append(e); err != nil {
					t.Fatal(err)
				}
			}
			r := learner(owner)
			r.Auto = c.auto
			if reclaimed {
				setLast(t, k, time.Now().Add(-time.Hour))
			}
			wantVerdict(t, k, r, locker.Acquired)
			if s := memoryOf(t, k); s.Spammed() != c.want {
				t.Errorf("%+v, reclaimed %v: stretched is %v", c, reclaimed, s.Spammed())
			}
		}
	}
	k := newLocker(t)
	k.Log = nil
	wantVerdict(t, k, learner(owner), locker.Acquired)
}

func TestWhatIsLearnedIsExplainedLimitByLimit(t *testing.T) {
	for _, auto := range []locker.Auto{{}, {IfElapsed: true}, {ExpireAfter: true}, {IfElapsed: true, ExpireAfter: true}} {
		r := ask(process.Identity{})
		r.Auto = auto
		r.Resolve(learn.State{})
		text := r.Explanation()
		if strings.Contains(text, "IfElapsed 1m: ") != auto.IfElapsed || strings.Contains(text, "ExpireAfter never: ") != auto.ExpireAfter || auto.Any() != (text != "") {
			t.Errorf("%+v: %q", auto, text)
		}
	}
}

func TestAnEndedRunTeachesAndAWithdrawnOneDoesNot(t *testing.T) {
	k, owner := newLocker(t), self(t)
	for _, c := range []struct {
		end  locker.ReleaseRequest
		want int
	}{
		{locker.ReleaseRequest{Withdraw: true}, 0},
		{locker.ReleaseRequest{Status: runlog.Some(1)}, 0},
		{locker.ReleaseRequest{Signal: "TERM"}, 0},
		{locker.ReleaseRequest{}, 1},
		{locker.ReleaseRequest{Status: runlog.Some(0)}, 2},
	} {
		held := wantVerdict(t, k, learner(owner), locker.Acquired)
		backdate(t, k, 10*time.Minute)
		c.end.Name, c.end.Token = motdFiles, held.Token
		if err := k.Release(c.end); err != nil {
			t.Fatal(err)
		}
		setLast(t, k, time.Now().Add(-24*time.Hour))
		if s := memoryOf(t, k); s.Runs != c.want {
			t.Errorf("%+v: %d runs are known, want %d", c.end, s.Runs, c.want)
		}
	}
	complete(t, k, owner, 30, 10*time.Minute)
	before := memoryOf(t, k)
	held := wantVerdict(t, k, learner(owner), locker.Acquired)
	backdate(t, k, 2*time.Hour)
	if err := k.Release(locker.ReleaseRequest{Name: motdFiles, Token: held.Token, Expired: true, Status: runlog.Some(137)}); err != nil {
		t.Fatal(err)
	}
	if after := memoryOf(t, k); after.Runs != before.Runs || after.ExpireAfter(0) < before.ExpireAfter(0)*3/2 {
		t.Errorf("ExpireAfter went from %v to %v", before.ExpireAfter(0), after.ExpireAfter(0))
	}
}

func TestAnOwnerEndedAtExactlyItsLimitTeaches(t *testing.T) {
	k := newLocker(t)
	for age, want := range map[time.Duration]bool{time.Hour - 1: false, time.Hour: true} {
		r := ask(process.Identity{})
		if err := k.Dir.Remember(motdFiles, time.Now(), record.Memory{}); err != nil {
			t.Fatal(err)
		}
		v := view{View: locker.View{Record: record.Record{Atom: motd, Learn: true, ExpireAfter: time.Hour}, Active: policy.Active{Held: true, Age: age}}}
		k.learnFromEnd(&r, motdFiles, &v)
		if taught := memoryOf(t, k) != (learn.State{}); taught != want {
			t.Errorf("ended after %v of an hour: taught is %v", age, taught)
		}
	}
}

func TestALessonThatCannotBeWrittenIsReported(t *testing.T) {
	k := newLocker(t)
	held := wantVerdict(t, k, learner(sleeper(t)), locker.Acquired)
	path := k.Dir.Path("last." + motdFiles)
	err := os.Truncate(path, 1<<40) // too large to be read
	if err != nil {
		t.Fatal(err)
	}
	said := helper.Stderr(t, func() { err = k.Release(locker.ReleaseRequest{Name: motdFiles, Token: held.Token}) })
	if !strings.HasPrefix(said, "adlock: "+path) || strings.Count(said, "\n") != 1 || err == nil {
		t.Errorf("said %q, %v", said, err)
	}
	wantLocks(t, k, 0)
}

func TestAnAtomWithoutALastLockLearnsInANewOne(t *testing.T) {
	k, r := newLocker(t), learner(sleeper(t))
	r.Atom.Operand = "my_db" // a checksummed name, whose last lock holds the identity
	held := wantVerdict(t, k, r, locker.Acquired)
	if err := os.Remove(k.Dir.Path(r.Atom.Name().LastLock())); err != nil {
		t.Fatal(err)
	}
	if err := k.Release(locker.ReleaseRequest{Name: r.Atom.Name(), Token: held.Token}); err != nil {
		t.Fatal(err)
	}
	last, err := k.Dir.Last(r.Atom.Name())
	if err != nil || last.Memory.Atom != r.Atom || last.Memory.Learned.Runs != 1 {
		t.Errorf("%+v, %v", last.Memory, err)
	}
}

func TestToForgetAMissingAtomIsAnError(t *testing.T) {
	k := newLocker(t)
	if err := k.Forget(motdFiles); !os.IsNotExist(err) {
		t.Errorf("forgotten: %v", err)
	}
	if left, _ := filepath.Glob(k.Dir.Path("*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
