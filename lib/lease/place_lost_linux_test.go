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
)

// forgetful is a store with another process in front. It forgets a newcomer's place while the
// newcomer waits.
type forgetful struct {
	Store
	looks int
}

var errAgain = errors.New("was asked again")

func (s *forgetful) String() string { return "store" }

func (s *forgetful) Look(context.Context, atom.Name, bool) (Snapshot, error) {
	if s.looks++; s.looks > 1 {
		return Snapshot{}, errAgain
	}
	return s.seen(), nil
}

func (s *forgetful) seen() Snapshot {
	other := Record{Node: "elsewhere", Taken: time.Now()}
	other.Atom, other.Owner = odd, process.Identity{PID: 1, Boot: "another"}
	return Snapshot{Now: time.Now(), Held: true, Owner: other}
}

func (s *forgetful) Enter(context.Context, atom.Name, Record, time.Duration, bool) (Place, Snapshot, error) {
	return forgotten{}, s.seen(), nil
}

// forgotten is a place that is gone when it is renewed.
type forgotten struct{ Place }

func (forgotten) Lease() time.Duration               { return 30 * time.Millisecond }
func (forgotten) Fence() uint64                      { return 1 }
func (forgotten) Renew(context.Context) error        { return ErrGone }
func (forgotten) Leave(context.Context, *Last) error { return ErrGone }

func (forgotten) Asked(ctx context.Context) (time.Duration, error) {
	<-ctx.Done()
	return 0, ctx.Err()
}

func (forgotten) Await(context.Context, func()) error { return nil }

func (forgotten) Look(ctx context.Context) (Snapshot, error) {
	<-ctx.Done()
	return Snapshot{}, fault.New(fault.Unavailable, "store", ctx.Err().Error())
}

func TestAPlaceLostDuringAQuestionIsTakenAnew(t *testing.T) {
	me := process.Here()
	r := locker.NewRequest()
	r.Atom, r.Owner, r.Wait = odd, me, time.Minute
	l := &Locker{Store: &forgetful{}, Lease: time.Second}
	if _, err := l.Take(r); !errors.Is(err, errAgain) {
		t.Errorf("it gave up: %v", err)
	}
}

// faltering is a store whose answers to Look come from a test.
type faltering struct {
	Store
	look  func(ctx context.Context, n int) (Snapshot, error)
	looks int
	place Place
}

func (s *faltering) String() string { return "store" }

func (s *faltering) Look(ctx context.Context, _ atom.Name, _ bool) (Snapshot, error) {
	s.looks++
	return s.look(ctx, s.looks)
}

func (s *faltering) Enter(context.Context, atom.Name, Record, time.Duration, bool) (Place, Snapshot, error) {
	if s.looks == 1 {
		return forgotten{}, heldElsewhere(), nil
	}
	return s.place, Snapshot{Now: time.Now()}, nil
}

var errNoAnswer = fault.New(fault.Unavailable, "store", NoAnswer)

func TestAWaiterThatLostItsPlaceOutlastsASilentStore(t *testing.T) {
	for _, wait := range []time.Duration{time.Minute, limit.Never} {
		r := locker.NewRequest()
		r.Atom, r.Owner, r.Wait = odd, process.Here(), wait
		l := &Locker{Lease: 100 * time.Millisecond, Store: &faltering{
			place: &scriptedPlace{lease: time.Minute},
			look: func(_ context.Context, n int) (Snapshot, error) {
				switch n {
				case 1:
					return heldElsewhere(), nil
				case 2:
					return Snapshot{}, errNoAnswer
				}
				return Snapshot{Now: time.Now()}, nil
			},
		}}
		if outcome, err := l.Take(r); err != nil || outcome.Verdict != locker.Acquired {
			t.Fatalf("it gave up: %+v, %v", outcome, err)
		}
		if err := l.Release(locker.ReleaseRequest{}); err != nil {
			t.Error(err)
		}
	}
}

func TestANewcomerWaitsForAStoreThatIsAway(t *testing.T) {
	for why, test := range map[string]struct {
		wait  time.Duration
		away  error
		looks int // how many times it asks; 0: until its time is up
	}{
		"it does not wait":              {0, errNoAnswer, 1},
		"its time is up":                {300 * time.Millisecond, errNoAnswer, 0},
		"it waits without end":          {limit.Never, errNoAnswer, 3},
		"the store is started":          {time.Minute, Unreachable("store", refused, true), 3},
		"no TLS is there":               {time.Minute, Unreachable("store", "does not speak TLS", true), 1},
		"the store is not fit for that": {limit.Never, fault.Wrap("store", ErrUnfit), 1},
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			s := &faltering{place: &scriptedPlace{lease: time.Minute}, look: func(_ context.Context, n int) (Snapshot, error) {
				if n > 2 && test.looks > 2 {
					return Snapshot{Now: time.Now()}, nil
				}
				return Snapshot{}, test.away
			}}
			r := locker.NewRequest()
			r.Atom, r.Owner, r.Wait = odd, process.Here(), test.wait
			l := &Locker{Lease: time.Minute, Store: s}
			began := time.Now()
			outcome, err := l.Take(r)
			switch {
			case test.looks > 2:
				if err != nil || outcome.Verdict != locker.Acquired {
					t.Errorf("%+v, %v", outcome, err)
				} else if err := l.Release(locker.ReleaseRequest{}); err != nil {
					t.Error(err)
				}
			case !errors.Is(err, test.away):
				t.Errorf("%+v, %v", outcome, err)
			case test.looks == 0 && time.Since(began) < test.wait:
				t.Errorf("it gave up after %v", time.Since(began))
			}
			if test.looks > 0 && s.looks != test.looks {
				t.Errorf("it asked %d times", s.looks)
			}
		})
	}
}

// While the process stood still, the time for the answer has passed.
func TestAProcessThatStoodStillAsksTheStoreAgain(t *testing.T) {
	t.Parallel() // the test takes as long as an answer of the store may take
	r := locker.NewRequest()
	r.Atom, r.Owner = odd, process.Here()
	l := &Locker{Store: &faltering{look: func(ctx context.Context, n int) (Snapshot, error) {
		if n > 1 {
			return heldElsewhere(), nil
		}
		<-ctx.Done()
		time.Sleep(1100 * time.Millisecond)
		return Snapshot{}, errNoAnswer
	}}}
	if outcome, err := l.Take(r); err != nil || outcome.Verdict != locker.Busy {
		t.Errorf("%+v, %v", outcome, err)
	}
}
