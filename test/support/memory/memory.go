// Package memory is the simplest store that lease.Store allows: a queue for each atom in the memory of one
// process. It passes the same tests as etcd and FTP, and shows what a third store has to do.
package memory

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"adlock/lib/atom"
	"adlock/lib/lease"
	"adlock/lib/policy"
)

// Store is empty at first. Several newcomers may use it at once.
type Store struct {
	mutex sync.Mutex
	atoms map[atom.Name]*queue
}

// queue has the places of one atom in the order in which they were made, and its last lock.
type queue struct {
	places  []*place
	last    lease.Last
	fence   uint64
	ticks   map[atom.File]*place // by which each was claimed
	changed chan struct{}        // closed at the next change for which a place may wait
}

type place struct {
	store   *Store
	name    atom.Name
	queue   *queue
	record  lease.Record
	fence   uint64
	renewed time.Time
	read    time.Time // renewed, as it was when a newcomer last read it
	asked   *time.Duration
}

// lock returns the atom's queue. Call unlock once it has been read or changed.
func (s *Store) lock(name atom.Name) (q *queue, unlock func()) {
	s.mutex.Lock()
	if s.atoms[name] == nil {
		if s.atoms == nil {
			s.atoms = map[atom.Name]*queue{}
		}
		s.atoms[name] = &queue{ticks: map[atom.File]*place{}, changed: make(chan struct{})}
	}
	return s.atoms[name], s.mutex.Unlock
}

func (q *queue) change() {
	close(q.changed)
	q.changed = make(chan struct{})
}

// remove takes a place out of the queue, and stamps the last lock if stamp is not nil.
func (q *queue) remove(p *place, stamp *lease.Last) error {
	i := slices.Index(q.places, p)
	if i < 0 {
		return lease.ErrGone
	}
	q.places = slices.Delete(q.places, i, i+1)
	if stamp != nil {
		q.last = *stamp
	}
	q.change()
	return nil
}

// inWay returns the places that a newcomer has to wait for, which comes after the first n.
func (q *queue) inWay(n int, shared bool) []*place {
	return slices.DeleteFunc(slices.Clone(q.places[:n]), func(p *place) bool { return shared && p.record.Shared })
}

// snapshot is what a newcomer sees if these places are in its way.
func (q *queue) snapshot(inWay []*place) lease.Snapshot {
	now := time.Now()
	seen := lease.Snapshot{Now: now, Last: q.last, Held: len(inWay) > 0}
	if seen.Held {
		seen.Owner, seen.Age = inWay[0].record, now.Sub(inWay[0].record.Taken)
		seen.Lapsed = inWay[0].lapsed()
		seen.Silent = seen.Lapsed
		inWay[0].read = inWay[0].renewed
	}
	return seen
}

// of returns the place with the token; nil: none.
func (q *queue) of(token string) *place {
	if i := slices.IndexFunc(q.places, func(p *place) bool { return p.record.Token == token }); i >= 0 {
		return q.places[i]
	}
	return nil
}

func (p *place) lapsed() bool { return time.Since(p.renewed) > p.record.Lease }

func (s *Store) Look(_ context.Context, name atom.Name, shared bool) (lease.Snapshot, error) {
	q, unlock := s.lock(name)
	defer unlock()
	return q.snapshot(q.inWay(len(q.places), shared)), nil
}

func (s *Store) Enter(_ context.Context, name atom.Name, record lease.Record, wait bool) (lease.Place, lease.Snapshot, error) {
	q, unlock := s.lock(name)
	defer unlock()
	seen := q.snapshot(q.inWay(len(q.places), record.Shared))
	if seen.Held && !wait {
		return nil, seen, nil
	}
	q.fence++
	p := &place{store: s, name: name, queue: q, record: record, fence: q.fence, renewed: time.Now()}
	q.places = append(q.places, p)
	return p, seen, nil
}

func (s *Store) HasTick(_ context.Context, name atom.Name, t policy.Tick) (bool, error) {
	q, unlock := s.lock(name)
	defer unlock()
	return q.ticks[fileOf(name, t)] != nil, nil
}

func fileOf(name atom.Name, t policy.Tick) atom.File {
	return atom.File{Kind: atom.Tick, Name: name, Period: t.Period, Number: t.Number}
}

func (s *Store) List(context.Context) (all []lease.Listed, _ error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.atoms)) {
		q := s.atoms[name]
		listed := lease.Listed{Name: name, Snapshot: q.snapshot(q.places), Ticks: slices.Collect(maps.Keys(q.ticks))}
		for _, p := range q.places[min(1, len(q.places)):] {
			listed.Behind = append(listed.Behind, p.record)
		}
		all = append(all, listed)
	}
	return all, nil
}

func (s *Store) Remove(_ context.Context, name atom.Name, token string) error {
	q, unlock := s.lock(name)
	defer unlock()
	if p := q.of(token); p != nil && !p.read.IsZero() && p.read != p.renewed {
		return lease.Renewed(s, name)
	}
	return q.remove(q.of(token), nil)
}

func (s *Store) String() string { return "memory" }
func (s *Store) Close() error   { return nil }

// held calls do while the place is in its queue, and no other newcomer reads or changes it.
func (p *place) held(do func()) error {
	p.store.mutex.Lock()
	defer p.store.mutex.Unlock()
	if !slices.Contains(p.queue.places, p) {
		return lease.ErrGone
	}
	do()
	return nil
}

// inWay returns the places in the way of this one. It must be in its queue (held).
func (p *place) inWay() []*place {
	return p.queue.inWay(slices.Index(p.queue.places, p), p.record.Shared)
}

func (p *place) Look(context.Context) (seen lease.Snapshot, err error) {
	err = p.held(func() { seen = p.queue.snapshot(p.inWay()) })
	return seen, err
}

func (p *place) InLine() bool  { return true }
func (p *place) Fence() uint64 { return p.fence }

func (p *place) Note(_ context.Context, record lease.Record) error {
	return p.held(func() { p.record = record })
}

func (p *place) Renew(context.Context) error {
	return p.held(func() { p.renewed = time.Now() })
}

func (p *place) Await(ctx context.Context, next func()) error {
	for first := -1; ; {
		var inWay int
		var changed <-chan struct{}
		err := p.held(func() { inWay, changed = len(p.inWay()), p.queue.changed })
		if err != nil || inWay == 0 || first >= 0 && inWay != first {
			return err
		}
		if first = inWay; first == 1 {
			next()
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

func (p *place) Ask(_ context.Context, token string, pause time.Duration) (first bool, _ error) {
	p.store.mutex.Lock()
	defer p.store.mutex.Unlock()
	owner := p.queue.of(token)
	if owner == nil || owner.asked != nil {
		return false, nil
	}
	owner.asked = &pause
	p.queue.change()
	return true, nil
}

func (p *place) Asked(ctx context.Context) (time.Duration, error) {
	for {
		var pause *time.Duration
		var changed <-chan struct{}
		if err := p.held(func() { pause, changed = p.asked, p.queue.changed }); err != nil {
			return 0, err
		}
		if pause != nil {
			return *pause, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

func (p *place) Pass(_ context.Context, token string, stamp *lease.Last) error {
	p.store.mutex.Lock()
	defer p.store.mutex.Unlock()
	if owner := p.queue.of(token); owner != nil && owner.lapsed() {
		return p.queue.remove(owner, stamp)
	}
	return nil
}

func (p *place) ClaimTick(_ context.Context, t policy.Tick) (claimed bool, err error) {
	err = p.held(func() {
		file := fileOf(p.name, t)
		if p.queue.ticks[file] == nil {
			p.queue.ticks[file] = p
		}
		claimed = p.queue.ticks[file] == p
	})
	return claimed, err
}

func (p *place) DisclaimTick(_ context.Context, t policy.Tick) error {
	p.store.mutex.Lock()
	defer p.store.mutex.Unlock()
	if file := fileOf(p.name, t); p.queue.ticks[file] == p {
		delete(p.queue.ticks, file)
	}
	return nil
}

func (p *place) Leave(_ context.Context, stamp *lease.Last) error {
	p.store.mutex.Lock()
	defer p.store.mutex.Unlock()
	return p.queue.remove(p, stamp)
}
