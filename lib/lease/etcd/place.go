package etcd

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"adlock/lib/fault"
	"adlock/lib/lease"
	"adlock/lib/limit"
	"adlock/lib/process"
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

	noted int64 // the revision of the record there

	// Of whoever takes the atom, and so of one goroutine.
	front  *front // when it last looked; nil: nobody, and nobody will be
	looked int64  // the revision at which it did
	gone   *gone  // who was directly in front; nil: nobody has gone from there since it last looked
}

// gone is a place that was removed.
type gone struct {
	seat    seat
	removed int64         // the revision; 0: it cannot be told
	first   bool          // nobody was in front of it
	until   time.Duration // boottime by which its owner has ended its job, also where somebody else has removed it
}

func (p *place) Lease() time.Duration { return p.length }

func (p *place) Fence() uint64 { return uint64(p.revision) }

func (p *place) InLine() bool { return true }

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

// Look finds out of whoever was the first, and is not any more, how that one has gone.
func (p *place) Look(ctx context.Context) (lease.Snapshot, error) {
	for {
		if p.gone != nil {
			if seen, known, err := p.lookBehind(ctx); known || err != nil {
				return seen, err
			}
		}
		before, since := p.front, p.looked+1
		seen, err := p.lookAhead(ctx)
		if err != nil || p.front != nil || before == nil || before.place == nil {
			return seen, err
		}
		// What cannot be told, for whatever reason, is held off for a lease.
		if _ = p.awaitRemoval(ctx, before, since, true, func() {}); p.gone == nil {
			p.gone = &gone{before.seat, 0, true, process.Boottime() + p.leaseOf(before.place)}
		}
	}
}

// lookAhead looks who is in front.
func (p *place) lookAhead(ctx context.Context) (lease.Snapshot, error) {
	answer, err := p.store.commit(ctx, txn{[]clientv3.Cmp{p.mine()}, p.look(), nil})
	if err == nil && !answer.Succeeded {
		err = lease.ErrGone
	}
	if err != nil {
		return lease.Snapshot{}, err
	}
	p.looked = answer.Header.Revision
	return p.sight(ctx, answer.Responses)
}

// lookBehind looks whether the place has come to be the first, as the one directly in front
// has gone and was that: those in front become fewer and never more. So that is found out
// without a list of all who wait, which etcd makes anew at each look. Whoever leaves a last
// lock in the moment in which it goes was the first.
//
// Where that one was removed by hand, with or without its beat, its owner may not know yet:
// it is held to be there for as long as its lease.
func (p *place) lookBehind(ctx context.Context) (seen lease.Snapshot, known bool, err error) {
	before := p.gone
	compares := []clientv3.Cmp{p.mine(), clientv3.Compare(clientv3.CreateRevision(p.keys.line(before.seat)), "=", 0)}
	ops := append([]clientv3.Op{clientv3.OpGet(p.keys.last())}, p.keys.beatAround(before)...)
	answer, err := p.store.commit(ctx, txn{compares, ops, nil})
	if errors.Is(err, rpctypes.ErrCompacted) {
		before.removed = 0
		return p.lookBehind(ctx)
	}
	if err != nil {
		return seen, false, err
	}
	if !answer.Succeeded {
		p.gone = nil
		return seen, false, nil
	}
	last := only(answer.Responses[0])
	stamped := last != nil && last.ModRevision == before.removed
	if !stamped && !leftByItself(answer.Responses[1:]) && process.Boottime() < before.until {
		seen, err = lastLock(last)
		seen.Held, seen.Bare = true, true
		return seen, true, err
	}
	p.gone = nil
	// Readers hold an atom together, and behind one of them others may be left.
	if !before.first && !(stamped && strings.HasPrefix(string(before.seat), string(writers))) {
		return seen, false, nil
	}
	p.front = nil
	seen, err = lastLock(last)
	return seen, true, err
}

// beatAround reads the beat of a place as it was before it went, and when it had gone.
func (k keys) beatAround(g *gone) []clientv3.Op {
	if g.removed == 0 {
		return nil
	}
	at := func(revision int64) clientv3.Op {
		return clientv3.OpGet(k.beat(g.seat), clientv3.WithRev(revision), clientv3.WithCountOnly())
	}
	return []clientv3.Op{at(g.removed - 1), at(g.removed)}
}

// leftByItself: the beat went with the place. A person removes one key after the other.
func leftByItself(around []*responseOp) bool {
	return len(around) == 2 && around[0].GetResponseRange().Count > 0 && around[1].GetResponseRange().Count == 0
}

// Note compares the record that is there too: one that is late must not replace the next.
func (p *place) Note(ctx context.Context, record lease.Record) error {
	text := string(record.Bytes())
	answer, err := p.store.commit(ctx, txn{
		[]clientv3.Cmp{p.mine(), clientv3.Compare(clientv3.ModRevision(p.line()), "=", p.noted)},
		[]clientv3.Op{clientv3.OpPut(p.line(), text)},
		[]clientv3.Op{clientv3.OpGet(p.line())},
	})
	if err != nil {
		return err
	}
	if answer.Succeeded {
		p.noted = answer.Header.Revision
		return nil
	}
	there := only(answer.Responses[0])
	if there == nil || there.CreateRevision != p.revision || string(there.Value) != text {
		return lease.ErrGone
	}
	p.noted = there.ModRevision // it was carried out before
	return nil
}

// Await watches the one place directly in front, and meanwhile whether its beat moves.
// A dead one that only waited itself is removed.
func (p *place) Await(ctx context.Context, next func()) error {
	if p.gone != nil { // by hand, and its owner may not know that yet
		pause(ctx, p.gone.until-process.Boottime())
		return nil
	}
	answer, err := p.store.commit(ctx, txn{then: []clientv3.Op{
		clientv3.OpGet(p.keys.line(inFront(p.record.Shared)), clientv3.WithPrefix(), clientv3.WithKeysOnly(),
			clientv3.WithLimit(2), clientv3.WithMaxCreateRev(p.revision-1),
			clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortDescend)),
	}})
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	ahead := answer.Responses[0].GetResponseRange().Kvs
	if len(ahead) == 0 && p.front != nil && p.front.place == nil { // of that one only the beat is left
		pause(ctx, p.length/6)
		return nil
	}
	if len(ahead) == 0 {
		return nil
	}
	if len(ahead) == 1 {
		next()
	}
	f := &front{seat: p.keys.seatOf(ahead[0]), place: ahead[0]}
	for since := answer.Header.Revision + 1; ctx.Err() == nil; {
		if err := p.awaitRemoval(ctx, f, since, p.isFirst(ahead[0]), next); p.gone != nil || err != nil {
			return err
		}
		dead, err := p.isDead(ctx, f)
		switch {
		case err != nil && ctx.Err() == nil:
			return err
		case dead && len(ahead) == 1:
			return nil // Look will tell
		case dead: // where the one before it has gone it may have been the owner: Look will tell
			waits := clientv3.Compare(clientv3.CreateRevision(string(ahead[1].Key)), "=", ahead[1].CreateRevision)
			_, err := p.remove(ctx, f, nil, waits)
			return err
		}
	}
	return nil
}

// isFirst: nobody stands in front of that place, as the last look has found it.
func (p *place) isFirst(ahead *mvccpb.KeyValue) bool {
	return p.front != nil && p.front.place != nil && p.front.place.CreateRevision == ahead.CreateRevision
}

// isOwners tells of a record of a place whether it holds, or held, the atom alone. The record
// that Enter has put says so before that is known; the next one is true (lease.Place.Note).
func (k keys) isOwners(place *mvccpb.KeyValue) bool {
	if place == nil || place.Version < 2 || !strings.HasPrefix(string(k.seatOf(place)), string(writers)) {
		return false
	}
	record, err := lease.ParseRecord(string(place.Key), place.Value)
	return err == nil && !record.Taken.IsZero()
}

// awaitRemoval waits for a third of the lease at most until the place goes, which was the
// first or not, and notes how it has gone. It calls next where that place comes to be the
// owner's.
func (p *place) awaitRemoval(ctx context.Context, f *front, since int64, first bool, next func()) error {
	short, cancel := context.WithTimeout(ctx, p.length/3)
	defer cancel()
	isRemoval := func(e *clientv3.Event) bool {
		if e.Type != clientv3.EventTypeDelete && p.keys.isOwners(e.Kv) {
			next()
		}
		return e.Type == clientv3.EventTypeDelete
	}
	removal, err := p.awaitEvent(short, string(f.place.Key), since, isRemoval, clientv3.WithPrevKV())
	switch {
	case removal != nil:
		p.gone = &gone{f.seat, removal.Kv.ModRevision, first, process.Boottime() + p.leaseOf(removal.PrevKv)}
	case errors.Is(err, rpctypes.ErrCompacted): // the past is not known any more
		p.gone = &gone{f.seat, 0, first, process.Boottime() + p.leaseOf(f.place)}
		return nil
	}
	return err
}

// leaseOf is how long the owner of a place may keep silent.
func (p *place) leaseOf(place *mvccpb.KeyValue) time.Duration {
	if place != nil {
		if record, err := lease.ParseRecord(string(place.Key), place.Value); err == nil && record.Lease > 0 {
			return record.Lease
		}
	}
	return p.length
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
	there := only(answer.Responses[1])
	if there == nil {
		return false, nil // gone: awaitRemoval will tell
	}
	f.place = there
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
func (p *place) Ask(ctx context.Context, token string, pause time.Duration) (first bool, err error) {
	if p.front == nil || p.front.place == nil || p.front.seat.token() != token {
		return false, nil
	}
	there := clientv3.Compare(clientv3.CreateRevision(p.keys.line(p.front.seat)), "=", p.front.place.CreateRevision)
	unasked := clientv3.Compare(clientv3.CreateRevision(p.keys.ask(token)), "=", 0)
	answer, again, err := p.store.ask(ctx, txn{[]clientv3.Cmp{there, unasked}, []clientv3.Op{clientv3.OpPut(p.keys.ask(token), limit.Format(pause))}, nil})
	// Where it was carried out again it may have been this that has asked before.
	return err == nil && (answer.Succeeded || again), err
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
	removed, err := p.remove(ctx, p.front, stamp)
	if removed {
		p.front = &front{} // nobody has to find out how it has gone
	}
	return err
}

// remove removes a place in front, unless anything has happened to it, and while more is true.
func (p *place) remove(ctx context.Context, f *front, stamp *lease.Last, more ...clientv3.Cmp) (bool, error) {
	placed := int64(0)
	if f.place != nil {
		placed = f.place.CreateRevision
	}
	answer, err := p.store.commit(ctx, txn{
		append(more,
			p.mine(),
			clientv3.Compare(clientv3.CreateRevision(p.keys.line(f.seat)), "=", placed),
			clientv3.Compare(clientv3.ModRevision(p.keys.beat(f.seat)), "=", f.beat),
		),
		p.leave(ctx, f.seat, stamp, reading.isFresh), nil,
	})
	return err == nil && answer.Succeeded, err
}

// leave removes all that is of one place, and stamps for it, by a clock that is usable.
func (p *place) leave(ctx context.Context, s seat, stamp *lease.Last, usable func(reading) bool) []clientv3.Op {
	ops := p.keys.remove(s)
	if stamp != nil {
		ops = append(ops, clientv3.OpPut(p.keys.last(), p.store.stamp(ctx, stamp, usable)))
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
	answer, again, err := p.store.ask(ctx, txn{
		[]clientv3.Cmp{p.mine()}, p.leave(ctx, p.seat, stamp, reading.isRecent), p.keys.remove(p.seat)[1:],
	})
	switch {
	case err != nil:
		return err
	case answer.Succeeded:
		p.stampAgain(ctx, stamp, answer.Header)
		return nil
	case again:
		return fault.New(fault.Unavailable, p.store.address, lease.NoAnswer)
	}
	return lease.ErrGone
}

// stampAgain has the last lock tell the time of the leader who led when it was stamped, where
// that is another than the one whose clock was read: that one's tells nothing any more.
func (p *place) stampAgain(ctx context.Context, stamp *lease.Last, stamped *etcdserverpb.ResponseHeader) {
	if stamp == nil || stamp.Kept {
		return
	}
	if term, _ := stampedAt(*stamp); term == 0 || term == stamped.RaftTerm {
		return
	}
	same := clientv3.Compare(clientv3.ModRevision(p.keys.last()), "=", stamped.Revision)
	text := p.store.stamp(ctx, stamp, func(last reading) bool { return last.term == stamped.RaftTerm })
	// Without it the atom has completed all the same, and the machines' clocks tell when.
	_, _ = p.store.commit(ctx, txn{[]clientv3.Cmp{same}, []clientv3.Op{clientv3.OpPut(p.keys.last(), text)}, nil})
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
