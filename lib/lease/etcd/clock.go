package etcd

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"adlock/lib/lease"
	"adlock/lib/process"
)

// etcd does not report its time, but it reports how much of a lease is left. So one lease without
// keys is the clock of a cluster: its elapsed time is the leader's time, in whole seconds.
const (
	clockLease = clientv3.LeaseID(0x61646c6f636b) // "adlock"
	clockSpan  = 10 * 365 * 24 * time.Hour        // after that the lease is made again, and starts at 0
)

// reading is what the clock showed. A new leader restarts all leases (lessor.Promote in etcd), so
// readings of two terms cannot be compared; those of one term are of one clock without steps.
type reading struct {
	term uint64        // 0: not known
	ran  time.Duration // what the clock showed, up to a second too much
	at   time.Duration // when: boottime
}

// now computes what the clock shows now, if the leader is still the same.
func (r reading) now() time.Duration { return r.ran + process.Boottime() - r.at }

// clock remembers the last reading.
type clock struct {
	mu   sync.Mutex
	last reading
}

const (
	fresh  = time.Second      // how old a reading may be if the leader may have changed since
	recent = 10 * time.Minute // how old if it has not: two clocks drift apart little meanwhile
)

func (r reading) isFresh() bool  { return process.Boottime()-r.at < fresh }
func (r reading) isRecent() bool { return process.Boottime()-r.at < recent }

// readClock reads the clock, unless usable accepts the last reading.
func (s *Store) readClock(ctx context.Context, usable func(reading) bool) (reading, error) {
	s.clock.mu.Lock()
	defer s.clock.mu.Unlock()
	if last := s.clock.last; last.term > 0 && usable(last) {
		return last, nil
	}
	read, err := s.askClock(ctx)
	if err == nil {
		s.clock.last = read
	}
	return read, s.wrap(err)
}

// askClock reads the lease, and then puts a question that only a leader with a majority can answer.
// A member answers with the term of what it has applied. The same term in both answers proves that
// the first answer was by the same leader's clock too: not by an earlier leader's, nor by a later
// one's of which the member had applied nothing yet.
func (s *Store) askClock(ctx context.Context) (reading, error) {
	at := process.Boottime()
	shown, err := s.client.TimeToLive(ctx, clockLease)
	if err == nil && shown.TTL < 0 {
		shown, err = s.makeClock(ctx)
	}
	if err != nil || shown.TTL < 0 {
		return reading{}, err
	}
	leads, err := s.client.Get(ctx, s.prefix+"/", clientv3.WithCountOnly())
	if err != nil || leads.Header.RaftTerm != shown.RaftTerm {
		return reading{}, err
	}
	return reading{term: shown.RaftTerm, ran: time.Duration(shown.GrantedTTL-shown.TTL) * time.Second, at: at}, nil
}

// makeClock makes the lease, and reads it. Another process may have made it meanwhile.
func (s *Store) makeClock(ctx context.Context) (*clientv3.LeaseTimeToLiveResponse, error) {
	_, err := clientv3.RetryLeaseClient(s.client).LeaseGrant(ctx, &etcdserverpb.LeaseGrantRequest{
		ID: int64(clockLease), TTL: int64(clockSpan.Seconds()),
	})
	if err != nil && !errors.Is(rpctypes.Error(err), rpctypes.ErrLeaseExist) {
		return nil, err
	}
	return s.client.TimeToLive(ctx, clockLease)
}

// beginClock reads the clock ahead, so that a run need not wait for it when it completes.
func (s *Store) beginClock() {
	ctx, cancel := context.WithTimeout(context.Background(), fresh)
	defer cancel()
	_, _ = s.readClock(ctx, reading.isFresh) // if this fails, the clock is read at the end of the run
}

// stamp returns the text of a last lock with the time of the clock, computed from the last reading
// if usable accepts it. If the clock cannot be read, the text has no such time, and IfElapsed is
// judged by the machines' clocks.
func (s *Store) stamp(ctx context.Context, last *lease.Last, usable func(reading) bool) string {
	if last.Kept {
		return string(last.Bytes()) // with the clock's time when the atom completed
	}
	ctx, cancel := context.WithTimeout(ctx, fresh)
	defer cancel()
	if read, err := s.readClock(ctx, usable); err == nil && read.term > 0 {
		last.Clock = fmt.Sprintf("%d/%v", read.term, read.now())
	}
	return string(last.Bytes())
}

// stampedAt reads what stamp wrote; the term is 0 if it wrote no time.
func stampedAt(last lease.Last) (term uint64, ran time.Duration) {
	var text string
	if n, _ := fmt.Sscanf(last.Clock, "%d/%s", &term, &text); n < 2 {
		return 0, 0
	}
	ran, err := time.ParseDuration(text)
	if err != nil {
		return 0, 0
	}
	return term, ran
}

// Elapsed is measured by the leader's clock if the same leader led when the last lock was stamped.
// That clock counts whole seconds; if the machines' clocks agree with it to the second, Elapsed
// returns their finer difference. Under another leader the machines' clocks count, but the result
// is at least as long as that leader has led.
func (s *Store) Elapsed(ctx context.Context, seen *lease.Snapshot) (time.Duration, error) {
	byWall := seen.Now.Sub(seen.Last.Completed)
	term, ran := stampedAt(seen.Last)
	if term == 0 {
		return byWall, nil
	}
	read, err := s.readClock(ctx, func(last reading) bool { return last.term == term || last.term > term && last.isFresh() })
	if err != nil {
		return 0, err
	}
	return elapsed(byWall, term, ran, read), nil
}

func elapsed(byWall time.Duration, term uint64, ran time.Duration, read reading) time.Duration {
	byLeader := read.now() - ran
	switch {
	case read.term > term:
		return max(byWall, read.now()-time.Second, 0)
	case read.term < term || byLeader < -time.Second: // the leader's term is unknown, or its clock was made again
		return byWall
	case (byWall - byLeader).Abs() < time.Second:
		return byWall
	}
	return max(byLeader, 0)
}
