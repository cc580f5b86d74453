package etcd

import (
	"context"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"adlock/lib/fault"
	"adlock/lib/lease"
	"adlock/lib/limit"
)

type responseOp = etcdserverpb.ResponseOp

// place is a place in the line.
type place struct {
	store    *Store
	keys     keys
	seat     seat
	revision int64 // the create revision: where it stands, and its fence
	length   time.Duration
	record   lease.Record // as it was at first

	// Of whoever takes the atom, and so of one goroutine.
	noted int64  // the revision of the record there
	front *front // when it last looked; nil: nobody, and nobody will be
	freed seat   // the place directly in front, which was the first and is gone; "": none is known, or it has been looked since
}

func (p *place) Lease() time.Duration { return p.length }

func (p *place) Fence() uint64 { return uint64(p.revision) }

func (p *place) line() string { return p.keys.line(p.seat) }

func (p *place) putBeat() clientv3.Op {
	return clientv3.OpPut(p.keys.beat(p.seat), beatOf(p.length, time.Now()))
}

// mine is true while the place is held: one that was removed and put again has another
// create revision.
func (p *place) mine() clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(p.line()), "=", p.revision)
}

// whileMine carries the operations out, if the place is still held.
func (p *place) whileMine(ctx context.Context, ops ...clientv3.Op) ([]*responseOp, error) {
	answer, err := p.store.commit(ctx, txn{[]clientv3.Cmp{p.mine()}, ops, nil})
	if err == nil && !answer.Succeeded {
		err = lease.ErrGone
	}
	if err != nil {
		return nil, err
	}
	return answer.Responses, nil
}

// look asks no more who is in front where nobody is: others come behind.
func (p *place) look() []clientv3.Op {
	ops := p.keys.look(p.record.Shared, p.revision)
	if p.front == nil {
		return ops[:1]
	}
	return ops
}

func (p *place) sight(ctx context.Context, answers []*responseOp) (seen lease.Snapshot, err error) {
	if p.front == nil {
		return lastLock(only(answers[0]))
	}
	seen, p.front, err = p.store.sight(ctx, p.keys, answers, p.seat)
	return seen, err
}

func (p *place) Look(ctx context.Context) (lease.Snapshot, error) {
	p.freed = ""
	answers, err := p.whileMine(ctx, p.look()...)
	if err != nil {
		return lease.Snapshot{}, err
	}
	return p.sight(ctx, answers)
}

// Note compares the record that is there too: one that is late must not replace the
// next. And, where Await has seen the first one go, that it has left nothing behind: those
// in front of this place become fewer and never more, so nobody is left of them; and that
// is found out without a list of all who wait, which etcd makes anew at each look. A beat
// that is left says that only the place was removed, by hand.
func (p *place) Note(ctx context.Context, record lease.Record) (lease.Snapshot, error) {
	text := string(record.Bytes())
	compares := []clientv3.Cmp{p.mine(), clientv3.Compare(clientv3.ModRevision(p.line()), "=", p.noted)}
	look := slices.Clip(p.look())
	if p.freed != "" {
		look = slices.Clip(look[:1])
		for _, left := range []string{p.keys.line(p.freed), p.keys.beat(p.freed)} {
			compares = append(compares, clientv3.Compare(clientv3.CreateRevision(left), "=", 0))
		}
	}
	answer, err := p.store.commit(ctx, txn{
		compares, append(look, clientv3.OpPut(p.line(), text)), append(look, clientv3.OpGet(p.line())),
	})
	if err != nil {
		return lease.Snapshot{}, err
	}
	noted := answer.Header.Revision
	if !answer.Succeeded {
		there := only(answer.Responses[len(look)])
		switch {
		case there == nil || there.CreateRevision != p.revision:
			return lease.Snapshot{}, lease.ErrGone
		case string(there.Value) == text: // it was carried out before
			noted = there.ModRevision
		case p.freed != "" && there.ModRevision == p.noted:
			p.freed = ""
			return lease.Snapshot{}, lease.ErrInFront
		default:
			return lease.Snapshot{}, lease.ErrGone
		}
	}
	p.noted = noted
	if p.freed != "" {
		p.freed, p.front = "", nil
	}
	return p.sight(ctx, answer.Responses)
}

// Await watches the one place directly in front, and meanwhile whether its beat moves.
// A dead one that only waited itself is removed. Of one that goes it tells whether it was
// the first: the last look has found it there, or its own record says so.
func (p *place) Await(ctx context.Context, next func()) (free bool, err error) {
	answer, err := p.store.commit(ctx, txn{then: []clientv3.Op{
		clientv3.OpGet(p.keys.line(inFront(p.record.Shared)), clientv3.WithPrefix(), clientv3.WithKeysOnly(),
			clientv3.WithLimit(2), clientv3.WithMaxCreateRev(p.revision-1),
			clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortDescend)),
	}})
	if ctx.Err() != nil {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	ahead := answer.Responses[0].GetResponseRange().Kvs
	if len(ahead) == 0 {
		if p.front != nil && p.front.place == nil { // of that one only the beat is left
			pause(ctx, p.length/6)
		}
		return false, nil
	}
	if len(ahead) == 1 {
		next()
	}
	f := &front{seat: p.keys.seatOf(ahead[0]), place: ahead[0]}
	for since := answer.Header.Revision + 1; ctx.Err() == nil; {
		removal, err := p.awaitRemoval(ctx, string(ahead[0].Key), since, next)
		if removal != nil && (p.isFirst(ahead[0]) || p.keys.isOwners(removal.PrevKv)) {
			p.freed = f.seat
		}
		if removal != nil || err != nil {
			return p.freed != "", err
		}
		dead, err := p.isDead(ctx, f)
		switch {
		case err != nil && ctx.Err() == nil:
			return false, err
		case dead && len(ahead) == 1:
			return false, nil // Look will tell
		case dead:
			_, err := p.remove(ctx, f, nil)
			return false, err
		}
	}
	return false, nil
}

// isFirst: nobody stands in front of that place, as the last look has found it.
func (p *place) isFirst(ahead *mvccpb.KeyValue) bool {
	return p.front != nil && p.front.place != nil && p.front.place.CreateRevision == ahead.CreateRevision
}

// isOwners tells of a record of a place whether it holds, or held, the atom alone. The record
// that Enter has put says so before that is known; the next one is true (lease.Place.Note).
// Readers hold it together: behind one of them others may be left.
func (k keys) isOwners(place *mvccpb.KeyValue) bool {
	if place == nil || place.Version < 2 || !strings.HasPrefix(string(k.seatOf(place)), string(writers)) {
		return false
	}
	record, err := lease.ParseRecord(string(place.Key), place.Value)
	return err == nil && !record.Taken.IsZero()
}

// awaitRemoval waits for a third of the lease at most, and tells how the key went; nil: it
// has not. It calls next where that place comes to be the owner's.
func (p *place) awaitRemoval(ctx context.Context, key string, since int64, next func()) (*clientv3.Event, error) {
	short, cancel := context.WithTimeout(ctx, p.length/3)
	defer cancel()
	removed := func(e *clientv3.Event) bool {
		if e.Type != clientv3.EventTypeDelete && p.keys.isOwners(e.Kv) {
			next()
		}
		return e.Type == clientv3.EventTypeDelete
	}
	return p.awaitEvent(short, key, since, removed, clientv3.WithPrevKV())
}

// isDead looks at the beat of one in front.
func (p *place) isDead(ctx context.Context, f *front) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, p.length/3)
	defer cancel()
	answer, err := p.store.commit(ctx, txn{then: []clientv3.Op{clientv3.OpGet(p.keys.beat(f.seat)), clientv3.OpGet(p.keys.line(f.seat))}})
	if err != nil {
		return false, err
	}
	seen := lease.Snapshot{Now: time.Now()}
	if f.place = only(answer.Responses[1]); f.place == nil {
		return false, nil // gone: awaitRemoval will tell, or has missed it
	}
	if seen.Owner, err = lease.ParseRecord(string(f.place.Key), f.place.Value); err == nil {
		p.store.watch(&seen, f, p.keys, only(answer.Responses[0]))
	}
	return seen.Lapsed, err
}

// awaitEvent returns the first that has happened to the key since the revision and is
// wanted, or nil once ctx is done.
func (p *place) awaitEvent(ctx context.Context, key string, since int64, wanted func(*clientv3.Event) bool, options ...clientv3.OpOption) (*clientv3.Event, error) {
	// A member that has no leader would keep silent for as long as that lasts.
	watching, stop := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer stop()
	for answer := range p.store.client.Watch(watching, key, append(options, clientv3.WithRev(since))...) {
		if err := answer.Err(); err != nil && ctx.Err() == nil {
			return nil, p.store.wrap(err)
		}
		if i := slices.IndexFunc(answer.Events, wanted); i >= 0 {
			return answer.Events[i], nil
		}
	}
	return nil, nil
}

// Ask asks one that is still there: else the question would stay for ever.
func (p *place) Ask(ctx context.Context, token string, pause time.Duration) error {
	if p.front == nil || p.front.place == nil || p.front.seat.token() != token {
		return nil
	}
	there := clientv3.Compare(clientv3.CreateRevision(p.keys.line(p.front.seat)), "=", p.front.place.CreateRevision)
	_, err := p.store.commit(ctx, txn{[]clientv3.Cmp{there}, []clientv3.Op{clientv3.OpPut(p.keys.ask(token), limit.Format(pause))}, nil})
	return err
}

// Asked looks first: what has happened before a watch begins is not told. One that has
// lost its place is not to wait for the next beat to learn of it.
func (p *place) Asked(ctx context.Context) (time.Duration, error) {
	key := p.keys.ask(p.record.Token)
	for {
		answer, err := p.store.commit(ctx, txn{[]clientv3.Cmp{p.mine()}, []clientv3.Op{clientv3.OpGet(key)}, nil})
		switch {
		case err != nil:
			return 0, err
		case !answer.Succeeded:
			return 0, lease.ErrGone
		}
		if asked := only(answer.Responses[0]); asked != nil {
			return limit.Parse(string(asked.Value))
		}
		events, since := make(chan error, 2), answer.Header.Revision+1
		watching, stop := context.WithCancel(ctx)
		whatever := func(*clientv3.Event) bool { return true }
		await := func(key string, options ...clientv3.OpOption) {
			_, err := p.awaitEvent(watching, key, since, whatever, options...)
			events <- err
		}
		go await(key)
		go await(p.line(), clientv3.WithFilterPut())
		err = <-events
		stop()
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return 0, err
		}
	}
}

// Pass removes the place of a dead owner, if its beat has not moved since the last
// look; one that has gone by itself needs neither that nor the stamp.
func (p *place) Pass(ctx context.Context, _ string, stamp *lease.Last) error {
	if p.front == nil {
		return nil
	}
	_, err := p.remove(ctx, p.front, stamp)
	return err
}

// remove removes a place in front, unless anything has happened to it.
func (p *place) remove(ctx context.Context, f *front, stamp *lease.Last) (bool, error) {
	placed := int64(0)
	if f.place != nil {
		placed = f.place.CreateRevision
	}
	answer, err := p.store.commit(ctx, txn{
		[]clientv3.Cmp{
			p.mine(),
			clientv3.Compare(clientv3.CreateRevision(p.keys.line(f.seat)), "=", placed),
			clientv3.Compare(clientv3.ModRevision(p.keys.beat(f.seat)), "=", f.beat),
		},
		p.leave(ctx, f.seat, stamp), nil,
	})
	return err == nil && answer.Succeeded, err
}

// leave removes all that is of one place, and stamps for it.
func (p *place) leave(ctx context.Context, s seat, stamp *lease.Last) []clientv3.Op {
	ops := p.keys.remove(s)
	if stamp != nil {
		ops = append(ops, clientv3.OpPut(p.keys.last(), p.store.stamp(ctx, stamp)))
	}
	return ops
}

// remove are the operations that remove all that is of one place, itself first.
func (k keys) remove(s seat) []clientv3.Op {
	return []clientv3.Op{clientv3.OpDelete(k.line(s)), clientv3.OpDelete(k.beat(s)), clientv3.OpDelete(k.ask(s.token()))}
}

// Renew puts the beat anew. That is a write: an owner that may not write any more is
// not to hold what it could not give back.
func (p *place) Renew(ctx context.Context) error {
	_, err := p.whileMine(ctx, p.putBeat())
	return err
}

// Leave removes what is left also where the place is gone. Where that was asked for again
// it may be this that has removed it: whoever leaves tries again, and knows its lease.
func (p *place) Leave(ctx context.Context, stamp *lease.Last) error {
	answer, again, err := p.store.ask(ctx, txn{[]clientv3.Cmp{p.mine()}, p.leave(ctx, p.seat, stamp), p.keys.remove(p.seat)[1:]})
	switch {
	case err != nil || answer.Succeeded:
		return err
	case again:
		return fault.New(fault.Unavailable, p.store.address, lease.NoAnswer)
	}
	return lease.ErrGone
}

// abandon removes what an Enter that came to nothing may have left, and does not wait
// for that: a place without a beat that moves is passed by those behind it.
func (p *place) abandon() {
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, _ = p.store.commit(ctx, txn{then: p.keys.remove(p.seat)})
	}()
}
