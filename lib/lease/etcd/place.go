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

// place is a place in the queue.
type place struct {
	store    *Store
	keys     keys
	seat     seat
	revision int64 // the create revision: its position, and its fence
	length   time.Duration
	record   lease.Record // as first written

	noted int64 // the revision of the record in the store

	// Used by the goroutine that takes the atom, and by no other.
	front *front        // found in its last look; nil: no place is in front, and none will be
	gone  gone          // the place directly in front that has gone since
	known int64         // up to this revision account has found out how places in front have gone
	until time.Duration // boottime by which the owners of places that a person removed end their jobs

	removed map[string]removal // keys whose removal a watch has reported since known
}

// removal is how a key was removed.
type removal struct {
	revision int64
	length   time.Duration // of the lease, if the key is a place's
}

// gone is a place that was removed.
type gone struct {
	seat    seat
	removed int64 // the revision; 0: no place was removed
}

func (p *place) Lease() time.Duration { return p.length }

func (p *place) Fence() uint64 { return uint64(p.revision) }

func (p *place) InLine() bool { return true }

func (p *place) line() string { return p.keys.line(p.seat) }

func (p *place) putBeat() clientv3.Op {
	return clientv3.OpPut(p.keys.beat(p.seat), beatOf(p.length, time.Now()))
}

// mine compares that the place is still held: a place that was removed and put again has another
// create revision.
func (p *place) mine() clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(p.line()), "=", p.revision)
}

// whileMine executes the operations if the place is still held.
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

// Look reports a place in front until all places in front have gone and their jobs have ended. The
// owner of a place that a person has removed may not have found out yet, and its job may still run.
func (p *place) Look(ctx context.Context) (lease.Snapshot, error) {
	if seen, first, err := p.lookBehind(ctx); first || err != nil {
		return seen, err
	}
	answers, err := p.whileMine(ctx, p.keys.look(p.record.Shared, p.revision)...)
	if err != nil {
		return lease.Snapshot{}, err
	}
	seen, ahead, err := p.store.sight(ctx, p.keys, answers, p.seat)
	if err == nil && (ahead == nil || ahead.place == nil) {
		err = p.account(ctx)
	}
	if err != nil {
		return seen, err
	}
	if ahead == nil && process.Boottime() < p.until {
		ahead, seen.Held, seen.Bare = &front{}, true, true
	}
	p.front = ahead
	return seen, nil
}

// lookBehind reads only the last lock, and reports whether that proves that no place is in front
// any more (first). That is so if the last look found no place, because none can come in front
// later; or if the writer directly in front stamped the last lock as it left, because that writer
// had the atom alone. This saves etcd the list of all places, which it would build at each look.
func (p *place) lookBehind(ctx context.Context) (seen lease.Snapshot, first bool, err error) {
	if p.front != nil && p.gone.removed == 0 {
		return seen, false, nil
	}
	answers, err := p.whileMine(ctx, clientv3.OpGet(p.keys.last()))
	if err != nil {
		return seen, false, err
	}
	last := only(answers[0])
	if seen, err = lastLock(last); err != nil {
		return seen, false, err
	}
	stamped := last != nil && last.ModRevision == p.gone.removed && seen.Last.Token == p.gone.seat.token()
	if stamped && strings.HasPrefix(string(p.gone.seat), string(writers)) {
		p.front = nil
	}
	p.gone = gone{}
	return seen, p.front == nil, nil
}

// account finds out how the places that were in front at the revision known have gone. An owner
// that leaves, or the waiter that finds it dead, removes the place together with its heartbeat; a
// person removes one key after the other. The owner of a place that a person removed finds that out
// within its lease.
func (p *place) account(ctx context.Context) error {
	inFront := func(revision int64) clientv3.Op {
		return clientv3.OpGet(p.keys.line(inFront(p.record.Shared)), clientv3.WithPrefix(), clientv3.WithKeysOnly(),
			clientv3.WithMaxCreateRev(p.revision-1), clientv3.WithRev(revision))
	}
	answer, err := p.store.commit(ctx, txn{then: []clientv3.Op{inFront(0), inFront(p.known)}})
	if errors.Is(err, rpctypes.ErrCompacted) {
		return p.accountForAll(ctx)
	}
	if err != nil {
		return err
	}
	missing := map[string]bool{}
	for _, place := range answer.Responses[1].GetResponseRange().Kvs {
		missing[string(place.Key)] = true
	}
	for _, place := range answer.Responses[0].GetResponseRange().Kvs {
		delete(missing, string(place.Key))
	}
	err = p.findRemovals(ctx, missing)
	if errors.Is(err, rpctypes.ErrCompacted) {
		return p.accountForAll(ctx)
	}
	if err != nil {
		return err
	}
	for key := range missing {
		beat := p.keys.beat(seat(strings.TrimPrefix(key, p.keys.line(everyone))))
		if p.removed[beat].revision != p.removed[key].revision {
			p.until = max(p.until, process.Boottime()+p.removed[key].length)
		}
	}
	p.known, p.removed = answer.Header.Revision, nil
	return nil
}

// accountForAll assumes that a person has removed a place in front: etcd has compacted the
// revisions that would show how the places went.
func (p *place) accountForAll(ctx context.Context) error {
	answer, err := p.store.commit(ctx, txn{then: []clientv3.Op{clientv3.OpGet(p.line(), clientv3.WithCountOnly())}})
	if err == nil {
		p.known, p.removed = answer.Header.Revision, nil
		p.until = max(p.until, process.Boottime()+p.length)
	}
	return err
}

// findRemovals finds out how the places have gone whose removal no watch has reported yet.
func (p *place) findRemovals(ctx context.Context, places map[string]bool) error {
	found := func() bool {
		for key := range places {
			if p.removed[key].revision == 0 {
				return false
			}
		}
		return true
	}
	if found() {
		return nil
	}
	short, cancel := context.WithTimeout(ctx, p.length/3)
	defer cancel()
	err := p.follow(short, p.keys.atom, p.known+1, func(events []*clientv3.Event) bool {
		p.note(events)
		return found()
	}, removals...)
	if err == nil && !found() {
		err = fault.New(fault.Unavailable, p.store.address, lease.NoAnswer)
	}
	return err
}

// removals makes a watch report each key of an atom that is removed, with its last value.
var removals = []clientv3.OpOption{clientv3.WithPrefix(), clientv3.WithFilterPut(), clientv3.WithPrevKV()}

func (p *place) note(removals []*clientv3.Event) {
	if p.removed == nil {
		p.removed = map[string]removal{}
	}
	for _, e := range removals {
		p.removed[string(e.Kv.Key)] = removal{e.Kv.ModRevision, p.leaseOf(e.PrevKv)}
	}
}

// Note compares the record's revision too: a late write must not replace a later record.
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
	p.noted = there.ModRevision // the transaction was executed before
	return nil
}

// Await watches the place directly in front, and whether its heartbeat moves. It removes the place
// of a dead waiter.
func (p *place) Await(ctx context.Context, next func()) error {
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
	if len(ahead) == 0 && p.front != nil && p.front.place == nil { // at most the heartbeat of the place in front is left
		rest := p.length / 6
		if left := p.until - process.Boottime(); left > 0 {
			rest = min(rest, left)
		}
		pause(ctx, rest)
	}
	if len(ahead) == 0 {
		return nil
	}
	if len(ahead) == 1 {
		next()
	}
	f := &front{seat: p.keys.seatOf(ahead[0]), place: ahead[0]}
	isNext := len(ahead) == 1 || strings.HasPrefix(string(f.seat), string(readers))
	for since := answer.Header.Revision + 1; ctx.Err() == nil; {
		if gone, err := p.awaitRemoval(ctx, f, since, isNext, next); gone || err != nil {
			return err
		}
		if isNext && ctx.Err() == nil { // in time before etcd compacts the revisions
			if err := p.account(ctx); err != nil && ctx.Err() == nil {
				return err
			}
		}
		dead, seen, err := p.isDead(ctx, f)
		since = max(since, seen+1)
		if p.keys.isOwners(f.place) { // the record may have been written before the watch began
			next()
		}
		switch {
		case err != nil && ctx.Err() == nil:
			return err
		case dead && len(ahead) == 1:
			return nil // Look passes it
		case dead: // only if the place before it is still there: otherwise it may be the head by now, which Look passes
			waits := clientv3.Compare(clientv3.CreateRevision(string(ahead[1].Key)), "=", ahead[1].CreateRevision)
			return p.remove(ctx, f, nil, waits)
		}
	}
	return nil
}

// isOwners reports whether the place, by its record, holds or held the atom alone. The first
// record, which Enter puts, is no proof: it names an owner before the place is one. Later records
// (Note) are.
func (k keys) isOwners(place *mvccpb.KeyValue) bool {
	if place == nil || place.Version < 2 || !strings.HasPrefix(string(k.seatOf(place)), string(writers)) {
		return false
	}
	record, err := lease.ParseRecord(string(place.Key), place.Value)
	return err == nil && !record.Taken.IsZero()
}

// awaitRemoval waits at most a third of the lease until the place in front is removed. It calls
// next when that place comes to own the atom. If this waiter is next already, it also notes which
// other keys are removed.
func (p *place) awaitRemoval(ctx context.Context, f *front, since int64, isNext bool, next func()) (is bool, err error) {
	short, cancel := context.WithTimeout(ctx, p.length/3)
	defer cancel()
	key, options := string(f.place.Key), []clientv3.OpOption(nil)
	if isNext {
		key, options = p.keys.atom, removals
	}
	err = p.follow(short, key, since, func(events []*clientv3.Event) bool {
		if isNext {
			p.note(events)
		}
		for _, e := range events {
			switch {
			case e.Type != clientv3.EventTypeDelete && p.keys.isOwners(e.Kv):
				next()
			case e.Type == clientv3.EventTypeDelete && string(e.Kv.Key) == string(f.place.Key):
				p.gone, is = gone{f.seat, e.Kv.ModRevision}, true
			}
		}
		return is
	}, options...)
	if errors.Is(err, rpctypes.ErrCompacted) { // the events are gone; the next Look reads the present keys
		return true, nil
	}
	return is, err
}

// leaseOf is how long the owner of a place may be silent.
func (p *place) leaseOf(place *mvccpb.KeyValue) time.Duration {
	if place != nil {
		if record, err := lease.ParseRecord(string(place.Key), place.Value); err == nil && record.Lease > 0 {
			return record.Lease
		}
	}
	return p.length
}

// isDead reads the heartbeat of a place in front, and returns the revision of that read; 0: the
// place has gone.
func (p *place) isDead(ctx context.Context, f *front) (dead bool, there int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, p.length/3)
	defer cancel()
	answer, err := p.store.commit(ctx, txn{then: []clientv3.Op{clientv3.OpGet(p.keys.beat(f.seat)), clientv3.OpGet(p.keys.line(f.seat))}})
	if err != nil {
		return false, 0, err
	}
	seen := lease.Snapshot{Now: time.Now()}
	place := only(answer.Responses[1])
	if place == nil {
		return false, 0, nil // the place is gone, which awaitRemoval finds
	}
	f.place = place
	if seen.Owner, err = lease.ParseRecord(string(f.place.Key), f.place.Value); err == nil {
		p.store.watch(&seen, f, p.keys, only(answer.Responses[0]))
	}
	return seen.Lapsed, answer.Header.Revision, err
}

// awaitEvent returns the first wanted event of the key from the revision on, or nil once ctx is
// done.
func (p *place) awaitEvent(ctx context.Context, key string, since int64, wanted func(*clientv3.Event) bool, options ...clientv3.OpOption) (found *clientv3.Event, err error) {
	err = p.follow(ctx, key, since, func(events []*clientv3.Event) bool {
		if i := slices.IndexFunc(events, wanted); i >= 0 {
			found = events[i]
		}
		return found != nil
	}, options...)
	return found, err
}

// follow passes the events of the key from the revision on to enough, all events of one revision
// together, until enough returns true or ctx is done.
func (p *place) follow(ctx context.Context, key string, since int64, enough func([]*clientv3.Event) bool, options ...clientv3.OpOption) error {
	// WithRequireLeader: otherwise a member that has lost its leader would stay silent.
	watching, stop := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer stop()
	for answer := range p.store.client.Watch(watching, key, append(options, clientv3.WithRev(since))...) {
		if err := answer.Err(); err != nil && ctx.Err() == nil {
			return p.store.wrap(err)
		}
		if enough(answer.Events) {
			return nil
		}
	}
	return nil
}

// Ask puts its key only while the owner's place is there: without the place the key would stay for
// ever.
func (p *place) Ask(ctx context.Context, token string, pause time.Duration) (first bool, err error) {
	if p.front == nil || p.front.place == nil || p.front.seat.token() != token {
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

// Pass removes the place of a dead owner, if the heartbeat has not moved since the last look. If
// the place has gone already, neither removal nor stamp is needed.
func (p *place) Pass(ctx context.Context, _ string, stamp *lease.Last) error {
	if p.front == nil {
		return nil
	}
	return p.remove(ctx, p.front, stamp)
}

// remove removes a place in front, if it is unchanged and the comparisons in more hold.
func (p *place) remove(ctx context.Context, f *front, stamp *lease.Last, more ...clientv3.Cmp) error {
	placed := int64(0)
	if f.place != nil {
		placed = f.place.CreateRevision
	}
	_, err := p.store.commit(ctx, txn{
		append(more,
			p.mine(),
			clientv3.Compare(clientv3.CreateRevision(p.keys.line(f.seat)), "=", placed),
			clientv3.Compare(clientv3.ModRevision(p.keys.beat(f.seat)), "=", f.beat),
		),
		p.leave(ctx, f.seat, stamp, reading.isFresh), nil,
	})
	return err
}

// leave returns the operations that remove all keys of a place and stamp the last lock, by a clock
// reading that usable accepts.
func (p *place) leave(ctx context.Context, s seat, stamp *lease.Last, usable func(reading) bool) []clientv3.Op {
	ops := p.keys.remove(s)
	if stamp != nil {
		ops = append(ops, clientv3.OpPut(p.keys.last(), p.store.stamp(ctx, stamp, usable)))
	}
	return ops
}

// remove are the operations that remove all keys of a place, the place itself first.
func (k keys) remove(s seat) []clientv3.Op {
	return []clientv3.Op{clientv3.OpDelete(k.line(s)), clientv3.OpDelete(k.beat(s)), clientv3.OpDelete(k.ask(s.token()))}
}

// Renew writes the heartbeat. As this is a write, an owner that may no longer write loses the atom;
// it could not release the atom either.
func (p *place) Renew(ctx context.Context) error {
	_, err := p.whileMine(ctx, p.putBeat())
	return err
}

// Leave removes the other keys even if the place itself is gone. If the transaction was sent twice,
// the first may have removed the place: then the error is not ErrGone, and the caller tries again.
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

// stampAgain stamps the last lock once more if the leader changed between the reading of the clock
// and the stamp: then the time by the earlier leader's clock is useless.
func (p *place) stampAgain(ctx context.Context, stamp *lease.Last, stamped *etcdserverpb.ResponseHeader) {
	if stamp == nil || stamp.Kept {
		return
	}
	if term, _ := stampedAt(*stamp); term == 0 || term == stamped.RaftTerm {
		return
	}
	same := clientv3.Compare(clientv3.ModRevision(p.keys.last()), "=", stamped.Revision)
	text := p.store.stamp(ctx, stamp, func(last reading) bool { return last.term == stamped.RaftTerm })
	// If this fails, the atom has completed all the same, and IfElapsed is judged by the machines'
	// clocks.
	_, _ = p.store.commit(ctx, txn{[]clientv3.Cmp{same}, []clientv3.Op{clientv3.OpPut(p.keys.last(), text)}, nil})
}

// abandon removes what a failed Enter may have left, in the background. If that fails, the waiters
// behind pass the place, whose heartbeat does not move.
func (p *place) abandon() {
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, _ = p.store.commit(ctx, txn{then: p.keys.remove(p.seat)})
	}()
}
