// Package etcd keeps the locks of atoms in etcd, with the official client.
//
// An atom NAME has the keys
//
//	PREFIX/NAME/line/w/TOKEN   a place: the record of one that holds the atom or waits,
//	PREFIX/NAME/line/r/TOKEN   w alone, r together with others that read
//	PREFIX/NAME/beat/w/TOKEN   its sign of life (likewise beat/r): how long its lease is
//	PREFIX/NAME/ask/TOKEN      a newcomer asks the owner TOKEN to end its job
//	PREFIX/NAME/last           the last lock
//	PREFIX/NAME/tick/N         the atom ran in the N-th period since the epoch (--once-per)
//
// Places go in the order of their create revisions: the first owns the atom, and its
// revision is its fence. Each place waits for the one before it alone, so that a place that
// goes wakes one waiter and no more (as etcd's own concurrency.Mutex). A waiter directly behind
// a writer that stamped the last lock as it left is the first, and looks for no other place. A
// waiter behind any other place, a reader's above all, counts every place and beat in front,
// and each that a person has removed. Whether the record of the first says that it waits or
// owns the atom does not matter. Every read is linearizable.
//
// No key but a tick hangs on a lease of etcd's. A leader that was stopped and wakes up revokes
// leases that were renewed elsewhere, so a key that has gone with its lease says nothing
// of the process that put it. A lease is counted by the processes that it concerns:
//
//   - A process with a place writes its beat anew every third of the lease, comparing that the
//     place is still there. Two thirds after the last beat that went well was sent, an
//     owner ends its job.
//   - A place behind takes another for dead when it has seen the beat stand at one
//     revision for the whole lease, by the clock of its own machine that counts suspend.
//     It removes the place and the beat in one transaction, if the beat still stands
//     there. So the job has ended, whatever the clocks show, and a beat that comes in
//     between keeps the place. A watcher need not be in the line: one that does not
//     want to wait does so where the owner seems to be dead (lease.Snapshot.Silent).
//
// A place and its beat are put and removed together. Where one of them is missing, a person
// has removed it; the other still keeps the places behind waiting. The owner puts a missing
// beat again, and ends its job where its place is missing. Where both are gone, but not in one
// transaction, the waiters that stood behind already wait for a lease (place.account). A
// newcomer that comes later cannot know.
//
// Each transaction is one that may be carried out twice, and late: it compares what it
// changes. So one that gets no answer is asked of the next member as well (commit).
//
// IfElapsed is judged by the clock of the cluster's leader (clock.go), to the second,
// whatever the clocks of the machines show. After a change of leaders that one is another,
// and of a run that completed before it is only known how long the new leader has led: so
// until the atom completes again what is assumed is that the clocks of the two machines,
// the one that ran and the one that asks, agree. A difference makes that one run so much
// too early, or too late, and none later than IfElapsed after the change.
package etcd

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/lease"
	"adlock/lib/process"
)

// Store is one etcd cluster, below one prefix.
type Store struct {
	client  *clientv3.Client
	reach   *reach
	prefix  string
	address string
	clock   clock

	mu    sync.Mutex
	beats map[string]stood // those that were looked at
}

var _ lease.Store = (*Store)(nil)

// String is the address as it was given.
func (s *Store) String() string { return s.address }

// Close closes the connections.
func (s *Store) Close() error { return s.client.Close() }

func (s *Store) keys(name atom.Name) keys { return keys{s.prefix + "/" + string(name) + "/"} }

type keys struct{ atom string }

func (k keys) last() string            { return k.atom + "last" }
func (k keys) ask(token string) string { return k.atom + "ask/" + token }
func (k keys) line(seat seat) string   { return k.atom + "line/" + string(seat) }
func (k keys) beat(seat seat) string   { return k.atom + "beat/" + string(seat) }

// seat is a place's part of its keys; of writers and of all, the beginning of it.
type seat string

const (
	writers  seat = "w/"
	readers  seat = "r/"
	everyone seat = ""
)

func seatOf(token string, shared bool) seat {
	if shared {
		return readers + seat(token)
	}
	return writers + seat(token)
}

func (s seat) token() string { return string(s[min(len(s), len(writers)):]) }

// seatOf is the seat of a place.
func (k keys) seatOf(place *mvccpb.KeyValue) seat {
	return seat(strings.TrimPrefix(string(place.Key), k.line(everyone)))
}

// inFront are those that keep a reader, or a writer, waiting.
func inFront(shared bool) seat {
	if shared {
		return writers
	}
	return everyone
}

// first gets the first of the keys, in front of the revision before; 0: of all.
func first(keys string, before int64) clientv3.Op {
	options := []clientv3.OpOption{
		clientv3.WithPrefix(), clientv3.WithLimit(1),
		clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend),
	}
	if before > 0 {
		options = append(options, clientv3.WithMaxCreateRev(before-1))
	}
	return clientv3.OpGet(keys, options...)
}

// look are the questions whose answers sight reads.
func (k keys) look(shared bool, before int64) []clientv3.Op {
	front := inFront(shared)
	return []clientv3.Op{clientv3.OpGet(k.last()), first(k.line(front), before), first(k.beat(front), before)}
}

// Look reads both locks. A reader has only writers in front of it.
func (s *Store) Look(ctx context.Context, name atom.Name, shared bool) (lease.Snapshot, error) {
	k := s.keys(name)
	answer, err := s.commit(ctx, txn{then: k.look(shared, 0)})
	if err != nil {
		return lease.Snapshot{}, err
	}
	seen, _, err := s.sight(ctx, k, answer.Responses, "")
	return seen, err
}

// Enter puts a place at the end of the line. A newcomer that does not wait does so
// only where the line is empty: on its way out it would be in the way of others, and they
// would find busy what is free. Where it is carried out again its place is there
// already.
func (s *Store) Enter(ctx context.Context, name atom.Name, record lease.Record, length time.Duration, line bool) (lease.Place, lease.Snapshot, error) {
	p := &place{store: s, keys: s.keys(name), seat: seatOf(record.Token, record.Shared), length: length, record: record}
	look := p.keys.look(record.Shared, 0)
	free := []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(p.line()), "=", 0)}
	if !line {
		// Of no keys at all etcd takes the create revision for 0.
		for _, keys := range []string{p.keys.line(inFront(record.Shared)), p.keys.beat(inFront(record.Shared))} {
			free = append(free, clientv3.Compare(clientv3.CreateRevision(keys), "=", 0).WithPrefix())
		}
	}
	answer, err := s.commit(ctx, txn{
		free, append(look, clientv3.OpPut(p.line(), string(record.Bytes())), p.putBeat()), append(look, clientv3.OpGet(p.line())),
	})
	if err != nil {
		p.abandon()
		return nil, lease.Snapshot{}, err
	}
	p.revision = answer.Header.Revision
	if !answer.Succeeded {
		p.revision = createRevision(answer.Responses[len(look)])
	}
	p.noted, p.known = p.revision, p.revision
	seen, front, err := s.sight(ctx, p.keys, answer.Responses, p.seat)
	if err != nil || p.revision == 0 {
		p.abandon()
		return nil, seen, err
	}
	p.front = front
	go s.beginClock()
	return p, seen, nil
}

func createRevision(answer *responseOp) int64 {
	if key := only(answer); key != nil {
		return key.CreateRevision
	}
	return 0
}

// only is the key that an answer has; nil: none.
func only(answer *responseOp) *mvccpb.KeyValue {
	if found := answer.GetResponseRange().Kvs; len(found) > 0 {
		return found[0]
	}
	return nil
}

// wrap gives trouble with the cluster its kind, and the address in front.
func (s *Store) wrap(err error) error {
	if err == nil {
		return nil
	}
	var known *fault.Error
	if errors.As(err, &known) || errors.Is(err, lease.ErrGone) {
		return err
	}
	if errors.Is(rpctypes.Error(err), rpctypes.ErrCompacted) {
		return rpctypes.ErrCompacted // an answer, and no trouble
	}
	kind, reason := s.reach.trouble(err)
	return fault.New(kind, s.address, reason)
}

// front is the first that is in front of a place.
type front struct {
	seat  seat
	place *mvccpb.KeyValue // nil: it was removed, and the beat is left
	beat  int64            // the revision of the beat; 0: it was removed
}

// lastLock begins a snapshot with the last lock; nil: there is none.
func lastLock(last *mvccpb.KeyValue) (seen lease.Snapshot, err error) {
	seen.Now = time.Now()
	if last != nil {
		seen.Last, err = lease.ParseLast(string(last.Key), last.Value)
	}
	return seen, err
}

// sight reads the answers to look; own is one's own seat, which is in no other's way.
func (s *Store) sight(ctx context.Context, k keys, answers []*responseOp, own seat) (lease.Snapshot, *front, error) {
	seen, err := lastLock(only(answers[0]))
	if err != nil {
		return seen, nil, err
	}
	place, beat := only(answers[1]), only(answers[2])
	f := &front{seat: own, place: place}
	switch {
	case place != nil && (beat == nil || place.CreateRevision <= beat.CreateRevision):
		f.seat = k.seatOf(place)
	case beat != nil:
		f.seat, f.place = seat(strings.TrimPrefix(string(beat.Key), k.beat(everyone))), nil
	}
	if f.seat == own {
		return seen, nil, nil
	}
	if beat == nil || string(beat.Key) != k.beat(f.seat) {
		// It was removed; it may have been put again, behind those of others.
		answer, err := s.commit(ctx, txn{then: []clientv3.Op{clientv3.OpGet(k.beat(f.seat))}})
		if err != nil {
			return seen, f, err
		}
		beat = only(answer.Responses[0])
	}
	err = s.describe(&seen, f, k, beat)
	return seen, f, err
}

// describe says which process is in front, and whether it is dead.
func (s *Store) describe(seen *lease.Snapshot, f *front, k keys, beat *mvccpb.KeyValue) (err error) {
	seen.Held, seen.Bare = true, f.place == nil
	if f.place != nil {
		if seen.Owner, err = lease.ParseRecord(string(f.place.Key), f.place.Value); err != nil {
			return err
		}
		seen.Age = age(seen.Owner, seen.Now)
	}
	s.watch(seen, f, k, beat)
	return nil
}

// watch tells whether the one in front is dead, or seems to be.
func (s *Store) watch(seen *lease.Snapshot, f *front, k keys, beat *mvccpb.KeyValue) {
	if f.place != nil && f.place.Lease != 0 {
		return // an adlock of earlier days: its keys go with a lease of etcd's
	}
	text := ""
	if beat != nil {
		f.beat, text = beat.ModRevision, string(beat.Value)
	}
	length, written := parseBeat(text, seen.Owner.Lease)
	still, moved := s.stillness(k.beat(f.seat), f.beat)
	seen.Lapsed = still >= length
	if shown := seen.Now.Sub(written); !seen.Lapsed && !moved {
		seen.Silent = shown < 0 || shown >= length
	}
	if seen.Bare && seen.Lapsed {
		seen.Age = lease.LongestLease // longer than a silent process is left
	}
}

// stood is a beat that was looked at.
type stood struct {
	revision int64
	since    time.Duration // boottime
	moved    bool          // it stood at another revision before
}

// stillness is for how long a beat has stood at the revision, as far as was looked; and
// whether it has moved since the first look.
func (s *Store) stillness(key string, revision int64) (still time.Duration, moved bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := process.Boottime()
	was, known := s.beats[key]
	if !known || was.revision != revision {
		was = stood{revision, now, known}
		s.beats[key] = was
	}
	return now - was.since, was.moved
}

// beatOf is what a beat says: how long the lease is, and when it was written. No process is
// taken for dead by the latter; it tells whether it is worth while to watch.
func beatOf(length time.Duration, now time.Time) string {
	return length.String() + " " + now.UTC().Format(time.RFC3339Nano)
}

// parseBeat reads what beatOf wrote; a lease that cannot be read is the one in the
// record, or the longest that there is.
func parseBeat(text string, recorded time.Duration) (length time.Duration, written time.Time) {
	first, second, _ := strings.Cut(text, " ")
	length, err := time.ParseDuration(first)
	if err != nil || length <= 0 {
		length = cmp.Or(recorded, lease.LongestLease)
	}
	written, _ = time.Parse(time.RFC3339Nano, second) // else long ago
	return length, written
}

// age is by the clock that takes no steps where the owner is on this machine, in
// this boot; else by both machines' wall clocks.
func age(owner lease.Record, now time.Time) time.Duration {
	if age, known := owner.Age(); known {
		return age
	}
	return now.Sub(owner.Taken)
}
