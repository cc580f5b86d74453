package lease

import (
	"context"
	"errors"
	"testing"
	"time"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/limit"
	"adlock/lib/locker"
	"adlock/lib/process"
	"adlock/lib/runlog"
	"adlock/test/support/helper"
)

// forgotten is a place whose renewal reports ErrGone, and whose Look gets no answer.
type forgotten struct{ scriptedPlace }

func (*forgotten) Renew(context.Context) error        { return ErrGone }
func (*forgotten) Leave(context.Context, *Last) error { return ErrGone }

func (*forgotten) Look(ctx context.Context) (Snapshot, error) {
	<-ctx.Done()
	return Snapshot{}, fault.New(fault.Unavailable, "store", ctx.Err().Error())
}

var errNoAnswer = fault.New(fault.Unavailable, "store", NoAnswer)

// faltering is a Locker of a store that forgets the place of the first newcomer that finds the atom
// held. The answers to its looks are those of the test.
func faltering(look func(ctx context.Context, n int) (Snapshot, error)) *Locker {
	s := &scripted{look: func(ctx context.Context, _ atom.Name, n int) (Snapshot, error) { return look(ctx, n) }}
	s.enter = func(atom.Name) (Place, Snapshot) {
		if s.looks == 1 {
			return &forgotten{}, heldElsewhere()
		}
		return &scriptedPlace{}, free()
	}
	return &Locker{Lease: 100 * time.Millisecond, Store: s}
}

func TestAWaiterThatLostItsPlaceOutlastsASilentStore(t *testing.T) {
	for _, wait := range []time.Duration{time.Minute, limit.Never} {
		take(t, faltering(func(_ context.Context, n int) (Snapshot, error) {
			switch n {
			case 1:
				return heldElsewhere(), nil
			case 2:
				return Snapshot{}, errNoAnswer
			}
			return free(), nil
		}), newcomer(wait))()
	}
}

func TestOnlyAWaitingNewcomerRetriesAStoreThatMayReturn(t *testing.T) {
	for why, test := range map[string]struct {
		wait  time.Duration
		away  error
		looks int // how many times the newcomer asks; 0: until its time is up
	}{
		"it does not wait":              {0, errNoAnswer, 1},
		"its time is up":                {300 * time.Millisecond, errNoAnswer, 0},
		"it waits without end":          {limit.Never, errNoAnswer, 3},
		"the store is started":          {time.Minute, Unreachable("store", Reason{"connection refused", Certain}), 3},
		"no TLS is there":               {time.Minute, Unreachable("store", Reason{"does not speak TLS", Hopeless}), 1},
		"the store is not fit for that": {limit.Never, fault.Wrap("store", ErrUnfit), 1},
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			l := faltering(func(_ context.Context, n int) (Snapshot, error) {
				if n > 2 && test.looks > 2 {
					return free(), nil
				}
				return Snapshot{}, test.away
			})
			began := time.Now()
			if test.looks > 2 {
				take(t, l, newcomer(test.wait))()
			} else if outcome, err := l.Take(newcomer(test.wait)); !errors.Is(err, test.away) {
				t.Errorf("%+v, %v", outcome, err)
			}
			if test.looks == 0 && time.Since(began) < test.wait {
				t.Errorf("it gave up after %v", time.Since(began))
			}
			if asked := l.Store.(*scripted).looks; test.looks > 0 && asked != test.looks {
				t.Errorf("it asked %d times", asked)
			}
		})
	}
}

// The time for the answer passed while the process stood still, so it proves nothing about the store.
func TestAProcessThatWasSuspendedAsksTheStoreAgain(t *testing.T) {
	t.Parallel() // the test takes as long as an answer of the store may take
	l := faltering(func(ctx context.Context, n int) (Snapshot, error) {
		if n > 1 {
			return heldElsewhere(), nil
		}
		<-ctx.Done()
		time.Sleep(1100 * time.Millisecond)
		return Snapshot{}, errNoAnswer
	})
	if outcome, err := l.Take(newcomer(0)); err != nil || outcome.Verdict != locker.Busy {
		t.Errorf("%+v, %v", outcome, err)
	}
}

func TestAWaiterSleepsLongUnderAnIfElapsedOfNever(t *testing.T) {
	wait := locker.NewWaiting(&locker.Request{Wait: limit.Never})
	if nap := (&Locker{}).nap(wait, locker.Outcome{Verdict: locker.TooSoon, Recheck: limit.Never}); nap < time.Hour {
		t.Error(nap)
	}
}

// A locksmith that goes on after a stop finds its job ended by the watchdog, which alone can print that.
func TestALossDuringAStopIsReportedOnceByTheWatchdog(t *testing.T) {
	t.Parallel() // a watchdog waits for 5 s
	for _, inTime := range []bool{false, true} {
		log, p := &runlog.Log{Dir: t.TempDir(), Host: "h"}, &scriptedPlace{}
		l, r := behind(p, free()), newcomer(0)
		r.Owner, _ = sleeper(t)
		l.Recorder.Log = log
		take(t, l, r)
		l.held.renewed.Store(0)
		l.held.watchdog.Arm(1, time.Millisecond)
		reports := func() (n int) {
			for _, k := range recorded(log) {
				n += map[runlog.Kind]int{runlog.Lost: 1, runlog.Release: 10}[k]
			}
			return n
		}
		helper.Eventually(t, "the watchdog ends the job", func() bool {
			return r.Owner.Life() == process.Dead && (inTime || reports() > 0)
		})
		if err := l.Release(locker.ReleaseRequest{}); fault.KindOf(err) != fault.Denied {
			t.Errorf("released in time: %v: %v", inTime, err)
		}
		helper.Eventually(t, "the watchdog is gone", func() bool { return len(helper.WatchdogsOf(r.Owner.PID)) == 0 })
		if n := reports(); n != 1 {
			t.Errorf("released in time: %v: the runlog has %s", inTime, recorded(log))
		}
	}
}
