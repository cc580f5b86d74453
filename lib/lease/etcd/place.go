package etcd

import (
	"context"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"adlock/lib/fault"
	"adlock/lib/lease"
	"adlock/lib/limit"
)

type responseOp = etcdserverpb.ResponseOp

type place struct {
	store    *Store
	keys     keys
	seat     seat
	revision int64 // the create revision: its position, and its fence
	length   time.Duration
	noted    int64  // the revision of the record in the store
	front    *front // the first place in front, as last seen; nil: none. Used only by the goroutine that acquires the atom
}

func (p *place) Fence() uint64 { return uint64(p.revision) }

func (p *place) InLine() bool { return true }

func (p *place) line() string { return p.keys.line(p.seat) }

func (p *place) putBeat() clientv3.Op {
	return clientv3.OpPut(p.keys.beat(p.seat), time.Now().UTC().Format(time.RFC3339Nano))
}

// mine is the condition that this place is held: a place removed and put again has another create revision.
func (p *place) mine() clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(p.line()), "=", p.revision)
}

func (p *place) whileMine(ctx context.Context, ops ...clientv3.Op) (*clientv3.TxnResponse, error) {
	answer, err := p.store.commit(ctx, txn{[]clientv3.Cmp{p.mine()}, ops, nil})
	if err == nil && !answer.Succeeded {
		err = lease.ErrGone
	}
	return answer, err
}

// Look returns ErrGone if this place is lost; the snapshot is about the first place in front.
func (p *place) Look(ctx context.Context) (lease.Snapshot, error) {
	answer, err := p.whileMine(ctx, p.keys.look(!p.seat.isWriters(), p.revision)...)
	if err != nil {
		return lease.Snapshot{}, err
	}
	seen, front, err := p.store.sight(ctx, p.keys, answer.Responses, p.seat)
	if err == nil {
		p.front = front
	}
	return seen, err
}

// Note overwrites only the record that it wrote last: a late write must not replace a later record.
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
	there := firstKey(answer.Responses[0])
	if there == nil || there.CreateRevision != p.revision || string(there.Value) != text {
		return lease.ErrGone
	}
	p.noted = there.ModRevision // the transaction was executed before
	return nil
}

// Await watches the place directly in front, and its heartbeat. If the process of that place is dead, Await
// removes the place, unless it is the head, which the caller passes.
func (p *place) Await(ctx context.Context, next func()) error {
	answer, err := p.store.commit(ctx, txn{then: []clientv3.Op{
		clientv3.OpGet(p.keys.line(p.seat.inFront()), clientv3.WithPrefix(), clientv3.WithKeysOnly(),
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
	if len(ahead) == 0 {
		return nil
	}
	if len(ahead) == 1 {
		next()
	}
	f := &front{seat: p.keys.seatOf(ahead[0]), place: ahead[0]}
	for since := answer.Header.Revision + 1; ctx.Err() == nil; {
		if gone, err := p.awaitRemoval(ctx, f, since, next); gone || err != nil {
			return err
		}
		dead, at, err := p.isDead(ctx, f)
		switch {
		case ctx.Err() != nil, err == nil && f.place == nil:
			return nil
		case err != nil:
			return err
		case dead && len(ahead) == 1:
			return nil // the caller looks, and passes that place
		case dead: // remove the place only while another is before it: the caller passes a place at the head
			waits := clientv3.Compare(clientv3.CreateRevision(string(ahead[1].Key)), "=", ahead[1].CreateRevision)
			return p.remove(ctx, f, nil, waits)
		}
		if p.keys.isOwners(f.place) { // the record may have been written before the watch began
			next()
		}
		since = at + 1
	}
	return nil
}

// isOwners reports whether the place, by its record, holds the atom alone. The first record, which Enter puts, is no
// proof: it names an owner before the place holds the atom. Later records (Note) are proof.
func (k keys) isOwners(place *mvccpb.KeyValue) bool {
	if place.Version < 2 || !k.seatOf(place).isWriters() {
		return false
	}
	record, err := lease.ParseRecord(string(place.Key), place.Value)
	return err == nil && !record.Taken.IsZero()
}

// awaitRemoval waits at most a third of the lease until the place in front is removed. It calls
// next when the record of that place says that the place owns the atom (isOwners).
func (p *place) awaitRemoval(ctx context.Context, f *front, since int64, next func()) (removed bool, err error) {
	short, cancel := context.WithTimeout(ctx, p.length/3)
	defer cancel()
	err = p.follow(short, string(f.place.Key), since, func(e *clientv3.Event) bool {
		removed = e.Type == clientv3.EventTypeDelete
		if !removed && p.keys.isOwners(e.Kv) {
			next()
		}
		return removed
	})
	return removed, err
}

// isDead reads the place in front and its heartbeat into f, and reports whether the process is dead, and the
// revision at which it read them. If the place is gone, f.place becomes nil.
func (p *place) isDead(ctx context.Context, f *front) (dead bool, at int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, p.length/3)
	defer cancel()
	answer, err := p.store.commit(ctx, txn{then: []clientv3.Op{clientv3.OpGet(p.keys.line(f.seat)), clientv3.OpGet(p.keys.beat(f.seat))}})
	if err != nil {
		return false, 0, err
	}
	if f.place = firstKey(answer.Responses[0]); f.place == nil {
		return false, 0, nil
	}
	seen := lease.Snapshot{Now: time.Now()}
	err = p.store.describe(&seen, f, p.keys, firstKey(answer.Responses[1]))
	return seen.Lapsed, answer.Header.Revision, err
}

// follow passes the key's events, from revision since on, to enough. It returns nil once enough returns true,
// ctx is done, or etcd has compacted that revision.
func (p *place) follow(ctx context.Context, key string, since int64, enough func(*clientv3.Event) bool, options ...clientv3.OpOption) error {
	// Without WithRequireLeader, a member that has lost its leader would stay silent.
	watching, stop := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer stop()
	for answer := range p.store.client.Watch(watching, key, append(options, clientv3.WithRev(since))...) {
		if err := answer.Err(); err != nil && ctx.Err() == nil && answer.CompactRevision == 0 {
			return p.store.wrap(err)
		}
		for _, event := range answer.Events {
			if enough(event) {
				return nil
			}
		}
	}
	return nil
}

// Ask puts its key only while the owner's place is there: without the place the key would stay for ever.
func (p *place) Ask(ctx context.Context, token string, pause time.Duration) (first bool, err error) {
	if p.front == nil || p.front.seat.token() != token {
		return false, nil
	}
	there := clientv3.Compare(clientv3.CreateRevision(p.keys.line(p.front.seat)), "=", p.front.place.CreateRevision)
	unasked := clientv3.Compare(clientv3.CreateRevision(p.keys.ask(token)), "=", 0)
	answer, again, err := p.store.ask(ctx, txn{[]clientv3.Cmp{there, unasked}, []clientv3.Op{clientv3.OpPut(p.keys.ask(token), limit.Format(pause))}, nil})
	// If the transaction was sent again, the key that was there may be from its first execution.
	return err == nil && (answer.Succeeded || again), err
}

// Asked reads the key before it watches: a watch does not report earlier events. An owner that has
// lost its place finds that out here, before its next heartbeat.
func (p *place) Asked(ctx context.Context) (time.Duration, error) {
	key := p.keys.ask(p.seat.token())
	for {
		answer, err := p.whileMine(ctx, clientv3.OpGet(key))
		if err != nil {
			return 0, err
		}
		if asked := firstKey(answer.Responses[0]); asked != nil {
			return limit.Parse(string(asked.Value))
		}
		events, since := make(chan error, 2), answer.Header.Revision+1
		watching, stop := context.WithCancel(ctx)
		await := func(key string, options ...clientv3.OpOption) {
			events <- p.follow(watching, key, since, func(*clientv3.Event) bool { return true }, options...)
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

// Pass removes the place of a dead owner, if the heartbeat has not moved since the last look. If
// the place has already gone, neither removal nor stamp is needed.
func (p *place) Pass(ctx context.Context, _ string, stamp *lease.Last) error {
	if p.front == nil {
		return nil
	}
	return p.remove(ctx, p.front, stamp)
}

// remove removes the place f, which is in front, and writes stamp (nil: none), if f is unchanged and more holds.
func (p *place) remove(ctx context.Context, f *front, stamp *lease.Last, more ...clientv3.Cmp) error {
	_, err := p.store.commit(ctx, txn{
		append(more,
			p.mine(),
			clientv3.Compare(clientv3.CreateRevision(p.keys.line(f.seat)), "=", f.place.CreateRevision),
			clientv3.Compare(clientv3.ModRevision(p.keys.beat(f.seat)), "=", f.beat),
		),
		p.keys.leave(f.seat, stamp), nil,
	})
	return err
}

func (k keys) leave(s seat, stamp *lease.Last) []clientv3.Op {
	ops := k.remove(s)
	if stamp != nil {
		ops = append(ops, clientv3.OpPut(k.last(), string(stamp.Bytes())))
	}
	return ops
}

// remove returns the operations that remove all keys of a place, the place itself first.
func (k keys) remove(s seat) []clientv3.Op {
	return []clientv3.Op{clientv3.OpDelete(k.line(s)), clientv3.OpDelete(k.beat(s)), clientv3.OpDelete(k.ask(s.token()))}
}

// Renew writes the heartbeat. An owner without permission to write loses the atom, which it could not release either.
func (p *place) Renew(ctx context.Context) error {
	_, err := p.whileMine(ctx, p.putBeat())
	return err
}

// Leave removes the heartbeat and the request even if the place itself is gone. If the transaction was sent twice, the
// first may have removed the place: then the error is fault.Unavailable, so that the caller tries again.
func (p *place) Leave(ctx context.Context, stamp *lease.Last) error {
	answer, again, err := p.store.ask(ctx, txn{[]clientv3.Cmp{p.mine()}, p.keys.leave(p.seat, stamp), p.keys.remove(p.seat)[1:]})
	switch {
	case err != nil, answer.Succeeded:
		return err
	case again:
		return fault.New(fault.Unavailable, p.store.address, lease.NoAnswer)
	}
	return lease.ErrGone
}

// abandon removes, in the background, what a failed Enter may have left. If that fails, the waiters
// behind pass the place, whose heartbeat does not move.
func (p *place) abandon() {
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, _ = p.store.commit(ctx, txn{then: p.keys.remove(p.seat)})
	}()
}
