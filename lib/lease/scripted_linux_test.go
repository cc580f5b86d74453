package lease

import (
	"context"
	"os"
	"testing"
	"time"

	"adlock/lib/atom"
	"adlock/lib/lease/watchdog"
	"adlock/lib/locker"
	"adlock/lib/policy"
	"adlock/lib/process"
	"adlock/lib/runlog"
	"adlock/test/support/must"
)

func TestMain(m *testing.M) {
	process.OrphanMain()
	watchdog.Main()
	os.Exit(m.Run())
}

// scripted is a store whose answers come from a test.
type scripted struct {
	Store
	look  func(ctx context.Context, name atom.Name, n int) (Snapshot, error) // the n-th look
	enter func(name atom.Name) (Place, Snapshot)
	looks int
	found []Listed // what a listing finds before the store is away
}

func (s *scripted) String() string                         { return "store" }
func (s *scripted) IsSlow()                                {}
func (s *scripted) List(context.Context) ([]Listed, error) { return s.found, errNoAnswer }

func (s *scripted) Look(ctx context.Context, name atom.Name, _ bool) (Snapshot, error) {
	s.looks++
	return s.look(ctx, name, s.looks)
}

func (s *scripted) Enter(_ context.Context, name atom.Name, _ Record, _ bool) (Place, Snapshot, error) {
	place, seen := s.enter(name)
	return place, seen, nil
}

// scriptedPlace is a place in a scripted store. A function that the test does not set does nothing.
type scriptedPlace struct {
	Place
	inLine bool
	left   bool
	full   error // the answer to a stamp
	gave   bool  // the tick was given back
	await  func()
	leaves func()
	note   func(Record) error
	renew  func() error
	asked  func() (time.Duration, error)
	looks  []Snapshot // what its looks find, in turn; then: that the atom is free
}

func (p *scriptedPlace) Fence() uint64 { return 1 }
func (p *scriptedPlace) InLine() bool  { return p.inLine }

func (p *scriptedPlace) Leave(_ context.Context, stamp *Last) error {
	if stamp != nil && p.full != nil {
		return p.full
	}
	if p.leaves != nil {
		p.leaves()
	}
	p.left = true
	return nil
}

func (p *scriptedPlace) DisclaimTick(context.Context, policy.Tick) error {
	p.gave = true
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
	if len(p.looks) == 0 {
		return free(), nil
	}
	seen := p.looks[0]
	p.looks = p.looks[1:]
	return seen, nil
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

func (p *scriptedPlace) Ask(context.Context, string, time.Duration) (bool, error) { return true, nil }
func (p *scriptedPlace) Pass(context.Context, string, *Last) error                { return nil }

func free() Snapshot { return Snapshot{Now: time.Now()} }

// heldElsewhere is what a newcomer finds if another machine holds the atom or the slot.
func heldElsewhere() Snapshot {
	other := Record{Node: "elsewhere", Taken: time.Now()}
	other.Atom, other.Owner = odd, process.Identity{PID: 1, Boot: "another"}
	return Snapshot{Now: time.Now(), Held: true, Owner: other}
}

// behind returns a Locker of a store in which a newcomer finds the atom held as in seen, and gets place p.
func behind(p Place, seen Snapshot) *Locker {
	return &Locker{Lease: time.Minute, Store: &scripted{
		look:  func(context.Context, atom.Name, int) (Snapshot, error) { return seen, nil },
		enter: func(atom.Name) (Place, Snapshot) { return p, seen },
	}}
}

// newcomer returns a request of this process.
func newcomer(wait time.Duration) locker.Request {
	r := locker.NewRequest()
	r.Atom, r.Owner, r.Wait = odd, process.Here(), wait
	return r
}

// take acquires the atom, and fails the test unless that succeeds.
func take(t *testing.T, l *Locker, r locker.Request) (giveBack func()) {
	t.Helper()
	if o, err := l.Take(r); err != nil || o.Verdict != locker.Acquired {
		t.Fatalf("%+v, %v", o, err)
	}
	return func() {
		t.Helper()
		must.Do(t, l.Release(locker.ReleaseRequest{}))
	}
}

// recorded returns the kinds of the runlog's events, in order.
func recorded(log *runlog.Log) (kinds []runlog.Kind) {
	for e := range log.Newest(1 << 20) {
		kinds = append([]runlog.Kind{e.Kind}, kinds...)
	}
	return kinds
}
