package lease

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/lease/watchdog"
	"adlock/lib/limit"
	"adlock/lib/locker"
	"adlock/lib/process"
	"adlock/lib/record"
	"adlock/test/support/actor"
	"adlock/test/support/helper"
	"adlock/test/support/must"
)

// sleeper starts a process that sleeps, for an owner other than this process.
func sleeper(t *testing.T) (process.Identity, *actor.Actor) {
	t.Helper()
	a := actor.Sleeper(t, actor.Leads)
	return must.Get(process.Of(a.PID()))(t), a
}

// The lease may be nearly over when the atom becomes free: this process stood still, or the store
// was silent, during the wait.
func TestANewOwnerRenewsANearlySpentLeaseBeforeItsJobBegins(t *testing.T) {
	p := &scriptedPlace{renew: func() error {
		time.Sleep(100 * time.Millisecond) // time for a job to begin that does not wait for the renewal
		return nil
	}}
	l, r := behind(p, heldElsewhere()), newcomer(time.Minute)
	p.await = func() { l.stands.Load().renewed.Add(-int64(l.Lease * 11 / 12)) }
	l.Lease, r.End = time.Hour, make(chan time.Duration, 1)
	r.Owner, _ = sleeper(t)
	defer take(t, l, r)()
	if l.held.dueIn(5) == 0 {
		t.Error("it begins with a lease that is nearly over")
	}
	time.Sleep(time.Second) // a watchdog that is armed for a past moment ends the owner at once
	if r.Owner.Life() != process.Alive {
		t.Error("its watchdog ended it before it had begun")
	}
	l.held.renewed.Add(-int64(l.Lease * 11 / 12)) // a release after a stop is no loss if the watchdog has not acted
}

func TestAReleaseAfterTheWholeLeaseIsALoss(t *testing.T) {
	l, r := behind(&scriptedPlace{}, heldElsewhere()), newcomer(time.Minute)
	r.End = make(chan time.Duration, 1)
	r.Owner, _ = sleeper(t)
	take(t, l, r)
	l.held.renewed.Add(-int64(2 * l.Lease))
	if err := l.Release(locker.ReleaseRequest{}); fault.KindOf(err) != fault.Denied {
		t.Error(err)
	}
}

// A watchdog that is started ahead may be killed while its owner waits, or may never have started.
func TestANewOwnerReplacesADeadWatchdog(t *testing.T) {
	me := must.Get(process.Of(os.Getpid()))(t)
	watchdogs := func(claim string, want int) (pids []int) {
		helper.Eventually(t, claim, func() bool {
			pids = helper.WatchdogsOf(me.PID)
			return len(pids) == want
		})
		return pids
	}
	p := &scriptedPlace{await: func() {
		first := watchdogs("the watchdog is there", 1)
		must.Do(t, syscall.Kill(first[0], syscall.SIGKILL))
		// A process that dies loses its command line first, and its end of the socket pair later.
		helper.Eventually(t, "it is gone", func() bool { return !helper.Alive(first[0]) })
	}}
	r := newcomer(time.Minute)
	r.Owner = me
	giveBack := take(t, behind(p, heldElsewhere()), r)
	watchdogs("another is there", 1)
	giveBack()
	watchdogs("it has ended", 0)
	// Process 1 would adopt its watchdog, and wait for it as for a process of its job.
	if w := watchdog.Start(locker.Recorder{}, record.Record{Owner: process.Identity{PID: 1}}); w.Ready() != nil || w.IsThere() {
		t.Error("process 1 has a watchdog")
	}
}

// While a newcomer waits for a slot, a request to end its job may arrive between two attempts, or its place
// may be lost. Neither concerns the job that begins under a later place.
func TestARequestOrLossOfAnEarlierPlaceDoesNotEndTheJob(t *testing.T) {
	for way, ask := range map[string]func() (time.Duration, error){
		"a newcomer asked for its end": func() (time.Duration, error) { return time.Second, nil },
		"its place was removed":        func() (time.Duration, error) { return 0, ErrGone },
	} {
		t.Run(way, func(t *testing.T) {
			asked := make(chan struct{})
			places := []Place{&scriptedPlace{asked: func() (time.Duration, error) {
				time.Sleep(100 * time.Millisecond) // the newcomer has the atom by now
				defer close(asked)
				return ask()
			}}, &scriptedPlace{}, &scriptedPlace{}}
			full := true
			l := &Locker{Lease: time.Minute, Store: &scripted{
				look: func(_ context.Context, name atom.Name, _ int) (Snapshot, error) {
					if !name.IsSlot() || !full {
						return free(), nil
					}
					full = false
					<-asked
					time.Sleep(100 * time.Millisecond) // the request has arrived by now
					return heldElsewhere(), nil
				},
				enter: func(atom.Name) (Place, Snapshot) {
					next := places[0]
					places = places[1:]
					return next, free()
				},
			}}
			end := make(chan time.Duration, 1)
			r := newcomer(time.Minute)
			r.Slots, r.End = 1, end
			defer take(t, l, r)()
			select {
			case <-end:
				t.Error("it is ended")
			default:
			}
		})
	}
}

// The signal that ends a waiter also removes its place at once: the waiters behind it would otherwise have to
// wait until its lease has run out.
func TestAWaiterThatGaveUpLeavesAndDoesNotGetTheFreedAtom(t *testing.T) {
	for _, signalled := range []bool{false, true} {
		waiting, giveUp := context.WithCancel(context.Background())
		p := &scriptedPlace{inLine: signalled}
		l, r := behind(p, heldElsewhere()), newcomer(limit.Never)
		l.Context = waiting
		p.await = func() {
			if signalled {
				l.Cancelled(&r, "TERM", 0)
			}
			if p.left != signalled {
				t.Errorf("it left at once: %v", p.left)
			}
			giveUp()
		}
		if outcome, err := l.Take(r); !errors.Is(err, context.Canceled) || !p.left {
			t.Errorf("%+v, %v; it left: %v", outcome, err, p.left)
		}
	}
}

// Over FTP a place that is being claimed cannot be left meanwhile.
func TestASignalledWaiterWaitsOnlyBrieflyForTheStore(t *testing.T) {
	never := make(chan bool)
	l, r, done := &Locker{}, newcomer(0), make(chan bool)
	l.stands.Store(&heldLease{place: &scriptedPlace{leaves: func() { <-never }}})
	go func() { l.Cancelled(&r, "TERM", 0); close(done) }()
	select {
	case <-done:
	case <-time.After(helper.Patience):
		t.Error("it waits on")
	}
}

func TestTheHeadOfAQueueOwnsTheAtomBeforeItsRecordSaysSo(t *testing.T) {
	var tries atomic.Int64
	taken, noted := make(chan bool), make(chan bool)
	// A failed write of the record is repeated after a thirtieth of the lease.
	p := &scriptedPlace{inLine: true, note: func(own Record) error {
		switch {
		case own.Taken.IsZero(): // it waits
			return nil
		case tries.Add(1) == 1:
			<-taken
			return fault.New(fault.Unavailable, "store", NoAnswer)
		}
		close(noted)
		return nil
	}}
	l := behind(p, heldElsewhere())
	l.Lease = 15 * time.Second
	defer take(t, l, newcomer(time.Minute))()
	close(taken)
	select {
	case <-noted:
	case <-time.After(helper.Patience):
		t.Error("its record never says so")
	}
}

// The run of a dead owner counts for IfElapsed only if the owner's record says that it ran.
func TestAJobWaitsForItsRecordIfNewcomersRelyOnIt(t *testing.T) {
	for why, test := range map[string]struct {
		inLine    bool
		ifElapsed time.Duration
	}{
		"newcomers do not see the order of the places": {false, 0},
		"a crashed run counts for IfElapsed":           {true, time.Minute},
	} {
		t.Run(why, func(t *testing.T) {
			var noted atomic.Bool
			p := &scriptedPlace{inLine: test.inLine, note: func(own Record) error {
				if !own.Taken.IsZero() {
					time.Sleep(100 * time.Millisecond)
					noted.Store(true)
				}
				return nil
			}}
			r := newcomer(time.Minute)
			r.Limits.IfElapsed = test.ifElapsed
			defer take(t, behind(p, heldElsewhere()), r)()
			if !noted.Load() {
				t.Error("the record says that it waits")
			}
		})
	}
}

// If a renewal fails, the store may answer again before the job has to be ended, at two thirds of the lease.
func TestALeaseIsRenewedAfterAThirdOrSoonAfterAFailure(t *testing.T) {
	for answer, next := range map[error]time.Duration{nil: 20 * time.Minute, errors.New("no answer"): 2 * time.Minute} {
		var asked []time.Duration
		ctx, cancel := context.WithCancel(context.Background())
		held := &heldLease{place: &scriptedPlace{renew: func() error { return answer }}, record: Record{Lease: time.Hour}, ctx: ctx, cancel: cancel}
		held.renewed.Store(int64(process.Boottime()))
		held.after = func(d time.Duration) <-chan time.Time {
			if asked = append(asked, d); len(asked) == 4 {
				cancel()
				return nil
			}
			return time.After(0)
		}
		held.running.Add(1)
		held.refresh()
		for i, most := range []time.Duration{20 * time.Minute, next, next, next} {
			if asked[i] > most || asked[i] < most-time.Minute {
				t.Errorf("%v: trial %d comes after %v", answer, i+1, asked[i])
			}
		}
	}
}
