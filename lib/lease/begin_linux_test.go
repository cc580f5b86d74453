package lease

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/lease/watchdog"
	"adlock/lib/limit"
	"adlock/lib/locker"
	"adlock/lib/orphan"
	"adlock/lib/process"
	"adlock/test/support/helper"
)

// A watchdog is another process of this test binary.
func TestMain(m *testing.M) {
	orphan.Main()
	watchdog.Main()
	os.Exit(m.Run())
}

// scripted is a store whose answers come from a test.
type scripted struct {
	Store
	look  func(name atom.Name) Snapshot
	enter func(name atom.Name) (Place, Snapshot)
}

func (s *scripted) String() string { return "store" }

func (s *scripted) Look(_ context.Context, name atom.Name, _ bool) (Snapshot, error) {
	return s.look(name), nil
}

func (s *scripted) Enter(_ context.Context, name atom.Name, _ Record, _ time.Duration, _ bool) (Place, Snapshot, error) {
	place, seen := s.enter(name)
	return place, seen, nil
}

func (s *scripted) Elapsed(context.Context, *Snapshot) (time.Duration, error) { return time.Hour, nil }

// scriptedPlace is a place in a scripted store; it is silent unless the test says otherwise.
type scriptedPlace struct {
	Place
	lease  time.Duration
	inLine bool
	left   bool
	await  func()
	note   func(Record) error
	renew  func() error
	asked  func() (time.Duration, error)
}

func (p *scriptedPlace) Lease() time.Duration { return p.lease }
func (p *scriptedPlace) Fence() uint64        { return 1 }
func (p *scriptedPlace) InLine() bool         { return p.inLine }

func (p *scriptedPlace) Leave(context.Context, *Last) error {
	p.left = true
	return nil
}

func (p *scriptedPlace) Note(_ context.Context, record Record) error {
	if p.note == nil {
		return nil
	}
	return p.note(record)
}

func (p *scriptedPlace) Await(_ context.Context, next func()) error {
	next()
	if p.await != nil {
		p.await()
	}
	return nil
}

func (p *scriptedPlace) Look(context.Context) (Snapshot, error) {
	return Snapshot{Now: time.Now()}, nil
}

func (p *scriptedPlace) Renew(context.Context) error {
	if p.renew == nil {
		return nil
	}
	return p.renew()
}

func (p *scriptedPlace) Asked(ctx context.Context) (time.Duration, error) {
	if p.asked != nil {
		return p.asked()
	}
	<-ctx.Done()
	return 0, ctx.Err()
}

// heldElsewhere is what a newcomer finds if another machine holds the atom or the slot.
func heldElsewhere() Snapshot {
	other := Record{Node: "elsewhere", Taken: time.Now()}
	other.Atom, other.Owner = odd, process.Identity{PID: 1, Boot: "another"}
	return Snapshot{Now: time.Now(), Held: true, Owner: other}
}

// The lease may be nearly over when the atom becomes free: this process stood still, or the store
// was silent, during the wait.
func TestAWinnerWithANearlySpentLeaseIsNotEndedByItsWatchdog(t *testing.T) {
	owner := exec.Command("sleep", "60")
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- owner.Wait() }()
	t.Cleanup(func() { _ = owner.Process.Kill() })
	var l *Locker
	p := &scriptedPlace{lease: time.Minute, renew: func() error {
		time.Sleep(100 * time.Millisecond) // time for a job to begin that does not wait for the renewal
		return nil
	}}
	p.await = func() { l.stands.Load().renewed.Add(-int64(p.lease * 11 / 12)) }
	l = &Locker{Lease: p.lease, Store: &scripted{
		look:  func(atom.Name) Snapshot { return heldElsewhere() },
		enter: func(atom.Name) (Place, Snapshot) { return p, heldElsewhere() },
	}}
	r := locker.NewRequest()
	r.Atom, r.Wait, r.End = odd, time.Minute, make(chan time.Duration, 1)
	var err error
	if r.Owner, err = process.Of(owner.Process.Pid); err != nil {
		t.Fatal(err)
	}
	outcome, err := l.Take(r)
	if err != nil || outcome.Verdict != locker.Acquired {
		t.Fatal(outcome, err)
	}
	if l.held.dueIn(5) == 0 {
		t.Error("it begins with a lease that is nearly over")
	}
	select {
	case err := <-ended:
		t.Errorf("its watchdog ended it before it had begun: %v", err)
	case <-time.After(time.Second): // a watchdog that is armed for a past moment ends the owner at once
	}
	if err := l.Release(locker.ReleaseRequest{}); err != nil {
		t.Error(err)
	}
}

// A watchdog that is started ahead may be killed while its owner waits, or may never have started.
func TestAWinnerReplacesAWatchdogThatIsGone(t *testing.T) {
	me, err := process.Of(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	var first []int
	p := &scriptedPlace{lease: time.Minute, await: func() {
		helper.Eventually(t, "the watchdog is there", func() bool {
			first = helper.WatchdogsOf(me.PID)
			return len(first) == 1
		})
		if err := syscall.Kill(first[0], syscall.SIGKILL); err != nil {
			t.Error(err)
		}
		// A process that dies loses its command line first, and its end of the socket pair later.
		helper.Eventually(t, "it is gone", func() bool { return !helper.Alive(first[0]) })
	}}
	l := &Locker{Lease: p.lease, Store: &scripted{
		look:  func(atom.Name) Snapshot { return heldElsewhere() },
		enter: func(atom.Name) (Place, Snapshot) { return p, heldElsewhere() },
	}}
	r := locker.NewRequest()
	r.Atom, r.Owner, r.Wait = odd, me, time.Minute
	if outcome, err := l.Take(r); err != nil || outcome.Verdict != locker.Acquired {
		t.Fatal(outcome, err)
	}
	helper.Eventually(t, "another is there", func() bool { return len(helper.WatchdogsOf(me.PID)) == 1 })
	if err := l.Release(locker.ReleaseRequest{}); err != nil {
		t.Error(err)
	}
	helper.Eventually(t, "it has ended", func() bool { return len(helper.WatchdogsOf(me.PID)) == 0 })
}

// While a newcomer waits for a slot, a request to end its job may come between two tries, or its
// place may be lost.
func TestALostEarlierPlaceDoesNotEndTheJob(t *testing.T) {
	for way, ask := range map[string]func() (time.Duration, error){
		"a newcomer asked for its end": func() (time.Duration, error) { return time.Second, nil },
		"its place was removed":        func() (time.Duration, error) { return 0, ErrGone },
	} {
		t.Run(way, func(t *testing.T) {
			free := Snapshot{Now: time.Now()}
			asked := make(chan struct{})
			first := &scriptedPlace{lease: time.Minute, asked: func() (time.Duration, error) {
				time.Sleep(100 * time.Millisecond) // the newcomer has the atom by now
				defer close(asked)
				return ask()
			}}
			places := []Place{first, &scriptedPlace{lease: time.Minute}, &scriptedPlace{lease: time.Minute}}
			full := true
			l := &Locker{Lease: time.Minute, Store: &scripted{
				look: func(name atom.Name) Snapshot {
					if !name.IsSlot() || !full {
						return free
					}
					full = false
					<-asked
					time.Sleep(100 * time.Millisecond) // the request has arrived by now
					return heldElsewhere()
				},
				enter: func(atom.Name) (Place, Snapshot) {
					next := places[0]
					places = places[1:]
					return next, free
				},
			}}
			end := make(chan time.Duration, 1)
			r := locker.NewRequest()
			r.Atom, r.Owner, r.Wait, r.Slots, r.End = odd, process.Here(), time.Minute, 1, end
			outcome, err := l.Take(r)
			if err != nil || outcome.Verdict != locker.Acquired {
				t.Fatal(outcome, err)
			}
			select {
			case <-end:
				t.Error("it is ended")
			default:
			}
			if err := l.Release(locker.ReleaseRequest{}); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAWaiterThatGaveUpDoesNotGetTheFreedAtom(t *testing.T) {
	waiting, giveUp := context.WithCancel(context.Background())
	p := &scriptedPlace{lease: time.Minute, await: giveUp}
	l := &Locker{Lease: time.Minute, Context: waiting, Store: &scripted{
		look:  func(atom.Name) Snapshot { return heldElsewhere() },
		enter: func(atom.Name) (Place, Snapshot) { return p, heldElsewhere() },
	}}
	r := locker.NewRequest()
	r.Atom, r.Owner, r.Wait = odd, process.Here(), time.Minute
	if outcome, err := l.Take(r); !errors.Is(err, context.Canceled) || !p.left {
		t.Errorf("%+v, %v; it left: %v", outcome, err, p.left)
	}
}

// The signal that ends a waiter also takes it out of the line at once, as the waiters behind it
// would have to wait for its lease.
func TestAWaiterThatIsCancelledLeavesTheLine(t *testing.T) {
	waiting, end := context.WithCancel(context.Background())
	r := locker.NewRequest()
	r.Atom, r.Owner, r.Wait = odd, process.Here(), limit.Never
	p, left := &scriptedPlace{lease: time.Minute, inLine: true}, false
	l := &Locker{Lease: time.Minute, Context: waiting, Store: &scripted{
		look:  func(atom.Name) Snapshot { return heldElsewhere() },
		enter: func(atom.Name) (Place, Snapshot) { return p, heldElsewhere() },
	}}
	p.await = func() {
		l.Cancelled(&r, "TERM", 0)
		left = p.left
		end()
	}
	if outcome, err := l.Take(r); !errors.Is(err, context.Canceled) || !left {
		t.Errorf("%+v, %v; it left: %v", outcome, err, left)
	}
}

// waits is a Locker of a store in which an atom becomes free as soon as a newcomer waits for it.
func waits(p *scriptedPlace) *Locker {
	p.lease = time.Minute
	return &Locker{Lease: p.lease, Store: &scripted{
		look:  func(atom.Name) Snapshot { return heldElsewhere() },
		enter: func(atom.Name) (Place, Snapshot) { return p, heldElsewhere() },
	}}
}

func TestTheHeadOfAQueueOwnsTheAtomBeforeItsRecordSaysSo(t *testing.T) {
	var tries atomic.Int64
	taken, noted := make(chan bool), make(chan bool)
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
	r := locker.NewRequest()
	r.Atom, r.Owner, r.Wait = odd, process.Here(), time.Minute
	l := waits(p)
	p.lease = 15 * time.Second // a failed write of the record is repeated after a thirtieth of it
	if outcome, err := l.Take(r); err != nil || outcome.Verdict != locker.Acquired {
		t.Fatal(outcome, err)
	}
	close(taken)
	select {
	case <-noted:
	case <-time.After(helper.Patience):
		t.Error("its record never says so")
	}
	if err := l.Release(locker.ReleaseRequest{}); err != nil {
		t.Error(err)
	}
}

// The run of a dead owner counts for IfElapsed only if its record says that it ran.
func TestTheJobBeginsAfterItsRecordIfTheRecordMustCount(t *testing.T) {
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
			r := locker.NewRequest()
			r.Atom, r.Owner, r.Wait, r.Limits.IfElapsed = odd, process.Here(), time.Minute, test.ifElapsed
			l := waits(p)
			if outcome, err := l.Take(r); err != nil || outcome.Verdict != locker.Acquired {
				t.Fatal(outcome, err)
			}
			if !noted.Load() {
				t.Error("the record says that it waits")
			}
			if err := l.Release(locker.ReleaseRequest{}); err != nil {
				t.Error(err)
			}
		})
	}
}
