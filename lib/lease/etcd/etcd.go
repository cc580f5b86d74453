// Package etcd keeps the locks of atoms in etcd, with the official client.
//
// An atom NAME has the keys
//
//	PREFIX/NAME/line/w/TOKEN   a place: the record of a process that holds the atom or waits for
//	PREFIX/NAME/line/r/TOKEN   it; w is a writer, r a reader
//	PREFIX/NAME/beat/w/TOKEN   the place's heartbeat (likewise beat/r)
//	PREFIX/NAME/ask/TOKEN      a newcomer asks the owner TOKEN to end its job
//	PREFIX/NAME/last           the last lock
//	PREFIX/NAME/tick/PERIOD-N  the atom ran in the N-th tick of PERIOD seconds (--once-per)
//
// Places are ordered by their create revisions: the head of the queue owns the atom, whatever its record says, and its
// revision is its fencing token. A writer waits only for the place before it (as in etcd's own concurrency.Mutex), a
// reader for the writer before it: so few processes watch the same place. Every read is linearizable.
//
// Only a tick's key is attached to an etcd lease. A leader that was stopped and resumes revokes leases that
// were renewed elsewhere: a key that vanished with its lease proves nothing. So adlock times the leases itself:
//
//   - A process with a place writes its heartbeat every third of the lease, if the place is still
//     there. An owner ends its job once two thirds of the lease have passed since it sent its last
//     successful heartbeat.
//   - A waiter takes the process before it for dead once the waiter has seen that process's heartbeat stay at one
//     revision for the whole lease, by the waiter's own boottime clock. It then removes the place in one transaction,
//     if the heartbeat is still at that revision: a heartbeat that arrives in between keeps the place. A newcomer that
//     does not want to wait watches without a place if the owner seems to be dead (lease.Snapshot.Silent).
//
// If a person deletes a place, the waiters behind it no longer wait for it. An owner watches its own place,
// and ends its job if the place is deleted. A heartbeat that a person deletes is written again.
//
// A transaction does no harm if it is executed twice, or late: it compares what it changes. So a transaction
// without an answer is sent to the next member as well (ask).
package etcd

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/lease"
	"adlock/lib/process"
)

// Store is one etcd cluster, below one prefix.
type Store struct {
	config  clientv3.Config
	client  *clientv3.Client // nil until the first question
	reach   *reach
	prefix  string
	address string
	cluster cluster

	mu    sync.Mutex       // protects beats, and is held while the client is made
	beats map[string]stood // the heartbeats that were read, by key
}

var _ lease.Store = (*Store)(nil)

func (s *Store) String() string { return s.address }

func (s *Store) Close() error {
	if s.client == nil {
		return nil
	}
	return s.client.Close()
}

func (s *Store) keys(name atom.Name) keys { return keys{s.prefix + "/" + string(name) + "/"} }

type keys struct{ atom string }

func (k keys) last() string            { return k.atom + "last" }
func (k keys) ask(token string) string { return k.atom + "ask/" + token }
func (k keys) line(seat seat) string   { return k.atom + "line/" + string(seat) }
func (k keys) beat(seat seat) string   { return k.atom + "beat/" + string(seat) }

// seat is the last part of a place's keys: writers or readers, then the token. All seats begin with everyone.
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

func (k keys) seatOf(place *mvccpb.KeyValue) seat {
	return seat(strings.TrimPrefix(string(place.Key), k.line(everyone)))
}

func (s seat) isWriters() bool { return strings.HasPrefix(string(s), string(writers)) }

func (s seat) inFront() seat {
	if s.isWriters() {
		return everyone
	}
	return writers
}

// first gets the earliest key that begins with keys, if it was created before the revision before (0: at any revision).
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

func (k keys) look(shared bool, before int64) []clientv3.Op {
	front := seatOf("", shared).inFront()
	return []clientv3.Op{clientv3.OpGet(k.last()), first(k.line(front), before), first(k.beat(front), before)}
}

func (s *Store) Look(ctx context.Context, name atom.Name, shared bool) (lease.Snapshot, error) {
	k := s.keys(name)
	answer, err := s.commit(ctx, txn{then: k.look(shared, 0)})
	if err != nil {
		return lease.Snapshot{}, err
	}
	seen, _, err := s.sight(ctx, k, answer.Responses, "")
	return seen, err
}

// Enter puts a place at the end of the queue. If queue is false, it does so only if no place is in the way:
// otherwise the new place would make the atom busy for other newcomers until it is removed. If the
// transaction is executed twice, the second execution finds the place of the first.
func (s *Store) Enter(ctx context.Context, name atom.Name, record lease.Record, queue bool) (lease.Place, lease.Snapshot, error) {
	p := &place{store: s, keys: s.keys(name), seat: seatOf(record.Token, record.Shared), length: record.Lease}
	look := p.keys.look(record.Shared, 0)
	free := []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(p.line()), "=", 0)}
	if !queue { // to etcd, a key that is not there has create revision 0
		others := p.keys.line(p.seat.inFront())
		free = append(free, clientv3.Compare(clientv3.CreateRevision(others), "=", 0).WithPrefix())
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
		p.revision = firstKey(answer.Responses[len(look)]).GetCreateRevision()
	}
	p.noted = p.revision
	seen, front, err := s.sight(ctx, p.keys, answer.Responses, p.seat)
	if err != nil || p.revision == 0 {
		p.abandon()
		return nil, seen, err
	}
	p.front = front
	return p, seen, nil
}

// firstKey returns the first key in an answer; nil if there is none.
func firstKey(answer *responseOp) *mvccpb.KeyValue {
	if found := answer.GetResponseRange().Kvs; len(found) > 0 {
		return found[0]
	}
	return nil
}

func (s *Store) wrap(err error) error {
	var known *fault.Error
	switch {
	case err == nil, errors.As(err, &known):
		return err
	case errors.Is(err, lease.ErrUnfit):
		return &fault.Error{Kind: fault.Unavailable, Object: s.address, Err: err}
	}
	return s.reach.trouble(s.address, err)
}

type front struct {
	seat  seat
	place *mvccpb.KeyValue
	beat  int64 // the revision of the heartbeat; 0: a person has removed it
}

// lastLock starts a snapshot with the present time and the last lock; last is nil if there is none.
func lastLock(last *mvccpb.KeyValue) (seen lease.Snapshot, err error) {
	seen.Now = time.Now()
	if last != nil {
		seen.Last, err = lease.ParseLast(string(last.Key), last.Value)
	}
	return seen, err
}

// sight returns the snapshot that the answers to look show, and the place in front (nil: none). A place at
// own, the newcomer's seat ("": it has none yet), is not in front.
func (s *Store) sight(ctx context.Context, k keys, answers []*responseOp, own seat) (lease.Snapshot, *front, error) {
	seen, err := lastLock(firstKey(answers[0]))
	place, beat := firstKey(answers[1]), firstKey(answers[2])
	if err != nil || place == nil || k.seatOf(place) == own {
		return seen, nil, err
	}
	f := &front{seat: k.seatOf(place), place: place}
	if beat == nil || string(beat.Key) != k.beat(f.seat) {
		// A person removed the owner's heartbeat. The owner may have written it again since the first answers.
		answer, err := s.commit(ctx, txn{then: []clientv3.Op{clientv3.OpGet(k.beat(f.seat))}})
		if err != nil {
			return seen, f, err
		}
		beat = firstKey(answer.Responses[0])
	}
	return seen, f, s.describe(&seen, f, k, beat)
}

func (s *Store) describe(seen *lease.Snapshot, f *front, k keys, beat *mvccpb.KeyValue) (err error) {
	if seen.Owner, err = lease.ParseRecord(string(f.place.Key), f.place.Value); err != nil {
		return err
	}
	seen.Held, seen.Age = true, age(seen.Owner, seen.Now)
	f.beat = 0
	var written time.Time // zero (long ago) if the heartbeat cannot be read
	if beat != nil {
		f.beat = beat.ModRevision
		written, _ = time.Parse(time.RFC3339Nano, string(beat.Value))
	}
	still, moved := s.stillness(k.beat(f.seat), f.beat)
	seen.Lapsed = still >= seen.Owner.Lease
	shown := seen.Now.Sub(written)
	seen.Silent = !seen.Lapsed && !moved && (shown < 0 || shown >= seen.Owner.Lease)
	return nil
}

type stood struct {
	revision int64
	since    time.Duration // boottime of the first read of this revision
	moved    bool          // the key was read at another revision before
}

// stillness returns how long this process has seen the heartbeat at the revision, and whether it has moved.
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

// age returns how long the owner has had the atom: by the monotonic clock if the owner is on this
// machine, in this boot; otherwise by the two machines' wall clocks.
func age(owner lease.Record, now time.Time) time.Duration {
	if age, known := owner.Age(); known {
		return age
	}
	return now.Sub(owner.Taken)
}
