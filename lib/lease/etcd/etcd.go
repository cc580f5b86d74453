// Package etcd keeps the locks of atoms in etcd, with the official client.
//
// An atom NAME has the keys
//
//	PREFIX/NAME/line/w/TOKEN   a place: the record of a process that holds the atom or waits for
//	PREFIX/NAME/line/r/TOKEN   it; w is a writer, r a reader
//	PREFIX/NAME/beat/w/TOKEN   the place's heartbeat (likewise beat/r): the length of its lease
//	PREFIX/NAME/ask/TOKEN      a newcomer asks the owner TOKEN to end its job
//	PREFIX/NAME/last           the last lock
//	PREFIX/NAME/tick/PERIOD-N  the atom ran in the N-th tick of so many seconds (--once-per)
//
// Places are ordered by their create revisions: the head of the queue owns the atom, and its
// revision is its fence. Each place waits only for the place before it, so a place that goes wakes
// one waiter and no more (as in etcd's own concurrency.Mutex). If the place before it was a
// writer's that stamped the last lock as it left, the waiter is the head, and looks for no other
// place. Otherwise it looks for every place and heartbeat in front, and for each that a person has
// removed. It does not matter whether the record of the head says that it waits or owns the atom.
// Every read is linearizable.
//
// Only a tick's key is attached to an etcd lease. A leader that was stopped and resumes revokes
// leases that were renewed elsewhere, so a key that vanished with its lease proves nothing about
// its process. So the processes time a lease themselves:
//
//   - A process with a place writes its heartbeat every third of the lease, if the place is still
//     there. An owner ends its job once two thirds of the lease have passed since it sent its last
//     successful heartbeat.
//   - A waiter takes the process before it for dead when it has seen the heartbeat stay at one
//     revision for the whole lease, by its own machine's clock, which counts suspend. It removes
//     place and heartbeat in one transaction, if the heartbeat is still at that revision. So the
//     job has ended, whatever the clocks show, and a heartbeat that arrives in between keeps the
//     place. A newcomer that does not want to wait watches without a place if the owner seems to
//     be dead (lease.Snapshot.Silent).
//
// A place and its heartbeat are put and removed together. If only one of the two keys is there, a
// person has removed the other; the key that is left still keeps the places behind waiting. An
// owner puts a missing heartbeat again, and ends its job if its place is missing. If both keys are
// gone, but not in one transaction, the waiters that were already behind wait for a lease
// (place.account). A newcomer that comes later has no trace of these keys, and does not wait.
//
// A transaction does no harm if it is executed twice, or late: it compares what it changes. So a
// transaction without an answer is sent to the next member as well (ask).
//
// IfElapsed is judged by the clock of the cluster's leader (clock.go), to the second, whatever the
// machines' clocks show. A new leader has another clock, which shows of an earlier run only that it
// completed before the new leader's term. So until the atom completes again, the clocks of two
// machines are assumed to agree: the one that ran it and the one that asks. If they differ, the
// next run starts too early or too late by the difference, and no later than IfElapsed after the
// change of the leader.
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
	"adlock/lib/limit"
	"adlock/lib/process"
)

// Store is one etcd cluster, below one prefix.
type Store struct {
	config  clientv3.Config
	client  *clientv3.Client // nil before the first question
	reach   *reach
	prefix  string
	address string
	clock   clock
	cluster cluster

	mu    sync.Mutex       // also held while the client is made
	beats map[string]stood // the heartbeats that were read, by key
}

var _ lease.Store = (*Store)(nil)

// String is the address as it was given.
func (s *Store) String() string { return s.address }

// Close closes the connections.
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

// seat is the last part of a place's keys: writers or readers, and the token. everyone is the
// prefix of all seats.
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

// inFront is the prefix of the places that a reader (shared), or a writer, waits for.
func inFront(shared bool) seat {
	if shared {
		return writers
	}
	return everyone
}

// first gets the earliest of the keys created before the revision before; 0: the earliest of all.
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

// look returns the reads whose answers sight interprets.
func (k keys) look(shared bool, before int64) []clientv3.Op {
	front := inFront(shared)
	return []clientv3.Op{clientv3.OpGet(k.last()), first(k.line(front), before), first(k.beat(front), before)}
}

// Look reads both locks. Only writers are in a reader's way.
func (s *Store) Look(ctx context.Context, name atom.Name, shared bool) (lease.Snapshot, error) {
	k := s.keys(name)
	answer, err := s.commit(ctx, txn{then: k.look(shared, 0)})
	if err != nil {
		return lease.Snapshot{}, err
	}
	seen, _, err := s.sight(ctx, k, answer.Responses, "")
	return seen, err
}

// Enter puts a place at the end of the queue. A newcomer that does not want to wait takes a place
// only if there is no other: otherwise its place would make the atom busy for other newcomers until
// it has left again. If the transaction is executed twice, the second finds the place of the first.
func (s *Store) Enter(ctx context.Context, name atom.Name, record lease.Record, length time.Duration, line bool) (lease.Place, lease.Snapshot, error) {
	p := &place{store: s, keys: s.keys(name), seat: seatOf(record.Token, record.Shared), length: length, record: record}
	look := p.keys.look(record.Shared, 0)
	free := []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(p.line()), "=", 0)}
	if !line {
		// If there are no such keys, etcd takes their create revision for 0.
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

// only returns the one key in an answer; nil: there is none.
func only(answer *responseOp) *mvccpb.KeyValue {
	if found := answer.GetResponseRange().Kvs; len(found) > 0 {
		return found[0]
	}
	return nil
}

// wrap gives an error of the cluster its kind, and puts the address before it.
func (s *Store) wrap(err error) error {
	if err == nil {
		return nil
	}
	var known *fault.Error
	if errors.As(err, &known) || errors.Is(err, lease.ErrGone) {
		return err
	}
	if errors.Is(rpctypes.Error(err), rpctypes.ErrCompacted) {
		return rpctypes.ErrCompacted // an answer, not a failure
	}
	if errors.Is(err, lease.ErrUnfit) {
		return &fault.Error{Kind: fault.Unavailable, Object: s.address, Err: err}
	}
	return s.reach.trouble(s.address, err)
}

// front is the first place or heartbeat in front of a newcomer.
type front struct {
	seat  seat
	place *mvccpb.KeyValue // nil: a person has removed it, and only the heartbeat is left
	beat  int64            // the revision of the heartbeat; 0: a person has removed it
}

// lastLock starts a snapshot with the last lock; nil: there is none.
func lastLock(last *mvccpb.KeyValue) (seen lease.Snapshot, err error) {
	seen.Now = time.Now()
	if last != nil {
		seen.Last, err = lease.ParseLast(string(last.Key), last.Value)
	}
	return seen, err
}

// sight interprets the answers to look; own is the newcomer's own seat, which is not in its way.
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
		// A person removed the heartbeat; its owner may have put it again, behind the heartbeats
		// of others.
		answer, err := s.commit(ctx, txn{then: []clientv3.Op{clientv3.OpGet(k.beat(f.seat))}})
		if err != nil {
			return seen, f, err
		}
		beat = only(answer.Responses[0])
	}
	err = s.describe(&seen, f, k, beat)
	return seen, f, err
}

// describe adds to the snapshot the place in front, and whether its process is dead.
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

// watch finds out whether the process in front is dead, or seems to be.
func (s *Store) watch(seen *lease.Snapshot, f *front, k keys, beat *mvccpb.KeyValue) {
	if f.place != nil && f.place.Lease != 0 {
		return // an early version of adlock: its keys go with an etcd lease
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
		seen.Age = limit.LongestLease // longer than the owner of a place without a record may live
	}
}

// stood is a heartbeat as it was last read.
type stood struct {
	revision int64
	since    time.Duration // boottime of the first read of this revision
	moved    bool          // it was read at another revision before
}

// stillness returns how long this process has seen the heartbeat at the revision, and whether the
// heartbeat has moved since the first look.
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

// beatOf is the text of a heartbeat: the length of the lease, and the time of writing. That time
// proves no death; a newcomer only decides by it whether to watch.
func beatOf(length time.Duration, now time.Time) string {
	return length.String() + " " + now.UTC().Format(time.RFC3339Nano)
}

// parseBeat reads what beatOf wrote. If the length cannot be read, it returns the recorded length,
// or the longest possible.
func parseBeat(text string, recorded time.Duration) (length time.Duration, written time.Time) {
	first, second, _ := strings.Cut(text, " ")
	length, err := time.ParseDuration(first)
	if err != nil || length <= 0 {
		length = cmp.Or(recorded, limit.LongestLease)
	}
	written, _ = time.Parse(time.RFC3339Nano, second) // zero, so long ago, if unreadable
	return length, written
}

// age returns how long the owner has had the atom: by the clock without steps if the owner is on
// this machine, in this boot; otherwise by the two machines' wall clocks.
func age(owner lease.Record, now time.Time) time.Duration {
	if age, known := owner.Age(); known {
		return age
	}
	return now.Sub(owner.Taken)
}
