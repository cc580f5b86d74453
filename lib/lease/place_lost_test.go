package lease

import (
	"context"
	"errors"
	"testing"
	"time"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/locker"
	"adlock/lib/process"
)

// forgetful is a store in which somebody stands in front, and which forgets a place while
// its holder has something to say.
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

func TestWhereThePlaceIsLostInTheMiddleOfAQuestionAnotherIsTaken(t *testing.T) {
	me := process.Here()
	r := locker.NewRequest()
	r.Atom, r.Owner, r.Wait = odd, me, time.Minute
	l := &Locker{Store: &forgetful{}, Lease: time.Second}
	if _, err := l.Take(r); !errors.Is(err, errAgain) {
		t.Errorf("it gave up: %v", err)
	}
}
