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

// etcd does not tell the time, but how much is left of a lease. So one lease, on which
// nothing hangs, serves as the clock of a cluster: what it has run shows how the leader's
// clock goes on, in whole seconds.
const (
	clockLease = clientv3.LeaseID(0x61646c6f636b) // "adlock"
	clockSpan  = 10 * 365 * 24 * time.Hour        // then it is made anew, and begins at 0
)

// reading is what the clock showed. A new leader begins all leases anew (lessor.Promote
// in etcd), so readings of two terms do not compare, and within a term they are of one
// clock that takes no steps.
type reading struct {
	term uint64        // 0: not known
	ran  time.Duration // less than a second too much
	at   time.Duration // boottime
}

// now is what the clock shows by now, if the leader is still the same.
func (r reading) now() time.Duration { return r.ran + process.Boottime() - r.at }

// clock remembers what it showed last.
type clock struct {
	mu   sync.Mutex
	last reading
}

const (
	fresh  = time.Second      // how old a reading may be where the leader may have changed since
	recent = 10 * time.Minute // and where it has not: two clocks do not part by much meanwhile
)

func (r reading) isFresh() bool  { return process.Boottime()-r.at < fresh }
func (r reading) isRecent() bool { return process.Boottime()-r.at < recent }

// readClock reads the clock anew, unless usable says that what was read last will do.
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

// askClock asks for the lease, and then for anything that only a leader whom the majority
// follows can answer. A member answers with the term of what it has applied: the same in
// both answers says that the first was that leader's too, and not an old one's, or of a
// new one whom the member did not know of yet.
func (s *Store) askClock(ctx context.Context) (reading, error) {
	at := process.Boottime()
	told, err := s.client.TimeToLive(ctx, clockLease)
	if err == nil && told.TTL < 0 {
		told, err = s.makeClock(ctx)
	}
	if err != nil || told.TTL < 0 {
		return reading{}, err
	}
	leads, err := s.client.Get(ctx, s.prefix+"/", clientv3.WithCountOnly())
	if err != nil || leads.Header.RaftTerm != told.RaftTerm {
		return reading{}, err
	}
	return reading{term: told.RaftTerm, ran: time.Duration(told.GrantedTTL-told.TTL) * time.Second, at: at}, nil
}

// makeClock makes the clock, and asks again. Another may have been faster.
func (s *Store) makeClock(ctx context.Context) (*clientv3.LeaseTimeToLiveResponse, error) {
	_, err := clientv3.RetryLeaseClient(s.client).LeaseGrant(ctx, &etcdserverpb.LeaseGrantRequest{
		ID: int64(clockLease), TTL: int64(clockSpan.Seconds()),
	})
	if err != nil && !errors.Is(rpctypes.Error(err), rpctypes.ErrLeaseExist) {
		return nil, err
	}
	return s.client.TimeToLive(ctx, clockLease)
}

// beginClock reads the clock for when a run completes, so that no release waits for it then.
func (s *Store) beginClock() {
	ctx, cancel := context.WithTimeout(context.Background(), fresh)
	defer cancel()
	_, _ = s.readClock(ctx, reading.isFresh) // else it is read then
}

// stamp is the text of a last lock, with what the clock shows, by what was read last if that
// is usable. Without it, where the clock cannot be read, IfElapsed is judged by the machines'
// clocks.
func (s *Store) stamp(ctx context.Context, last *lease.Last, usable func(reading) bool) string {
	if last.Kept {
		return string(last.Bytes()) // with what it showed when the atom completed
	}
	ctx, cancel := context.WithTimeout(ctx, fresh)
	defer cancel()
	if read, err := s.readClock(ctx, usable); err == nil && read.term > 0 {
		last.Clock = fmt.Sprintf("%d/%v", read.term, read.now())
	}
	return string(last.Bytes())
}

// stampedAt reads what stamp wrote; the term is 0 where that says nothing.
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

// Elapsed is by the clock of the leader, where it is the one that led when the last lock
// was stamped: to the second, and finer where the machines' clocks agree with it. Else it
// is by those clocks, and at least as long as the leader has led.
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
	case read.term < term || byLeader < -time.Second: // not known, or a clock that was made anew
		return byWall
	case (byWall - byLeader).Abs() < time.Second:
		return byWall
	}
	return max(byLeader, 0)
}
