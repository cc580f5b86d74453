// Package etcd keeps the locks of atoms in etcd, with the official client.
//
// An atom NAME has the keys
//
//	PREFIX/NAME/line/w/TOKEN   one for each that holds the atom or waits for it,
//	PREFIX/NAME/line/r/TOKEN   w alone, r together with others that read
//	PREFIX/NAME/ask/TOKEN      somebody asks the owner TOKEN to end its job
//	PREFIX/NAME/last           the last lock
//
// Those in the line go in the order of their create revisions: the first owns the
// atom, and its revision is its fence. Each waits for the one before it alone, so
// that one that leaves wakes one and no more (as etcd's own concurrency.Mutex). All
// keys but the last lock hang on their locksmith's lease. Every read is
// linearizable.
//
// An etcd without the mend for its issue 15247 (3.4 before 3.4.25, 3.5 before
// 3.5.8) may, when its leader is cut off, confirm a renewal for another election
// timeout: that is what the last fifth of a lease is for.
package etcd

import (
	"context"
	"errors"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"adlock/lib/exit"
	"adlock/lib/process"
	"adlock/lib/store"
)

// Store is one etcd cluster, below one prefix.
type Store struct {
	client  *clientv3.Client
	prefix  string
	address string
}

var _ store.Store = (*Store)(nil)

// String is the address as it was given.
func (s *Store) String() string { return s.address }

// Close closes the connections.
func (s *Store) Close() error { return s.client.Close() }

func (s *Store) keys(files string) keys { return keys{s.prefix + "/" + files + "/"} }

type keys struct{ atom string }

func (k keys) last() string            { return k.atom + "last" }
func (k keys) line() string            { return k.atom + "line/" }
func (k keys) writers() string         { return k.atom + "line/w/" }
func (k keys) ask(token string) string { return k.atom + "ask/" + token }

func (k keys) place(token string, shared bool) string {
	if shared {
		return k.atom + "line/r/" + token
	}
	return k.writers() + token
}

// inFront is the part of the line that keeps a reader, or anybody else, waiting.
func (k keys) inFront(shared bool) string {
	if shared {
		return k.writers()
	}
	return k.line()
}

// first gets the first of a part of the line, in front of the revision before;
// 0: in front of nobody.
func first(part string, before int64) clientv3.Op {
	options := []clientv3.OpOption{
		clientv3.WithPrefix(), clientv3.WithLimit(1),
		clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend),
	}
	if before > 0 {
		options = append(options, clientv3.WithMaxCreateRev(before-1))
	}
	return clientv3.OpGet(part, options...)
}

// Look reads both locks.
func (s *Store) Look(ctx context.Context, files string) (store.Sight, error) {
	k := s.keys(files)
	for {
		answer, err := s.client.Txn(ctx).Then(clientv3.OpGet(k.last()), first(k.line(), 0)).Commit()
		switch {
		case err == nil:
			return sight(answer.Responses, "")
		case !betweenLeaders(err) || !pause(ctx):
			return store.Sight{}, s.wrap(err)
		}
	}
}

// betweenLeaders: the cluster has lost a leader and will have another soon. Only
// what writes nothing may simply be asked again.
func betweenLeaders(err error) bool {
	return errors.Is(err, rpctypes.ErrLeaderChanged) || errors.Is(err, rpctypes.ErrNoLeader) ||
		errors.Is(err, rpctypes.ErrTimeoutDueToLeaderFail)
}

// pause returns false where there is no time left.
func pause(ctx context.Context) bool {
	timer := time.NewTimer(100 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// Enter puts a key of its own at the end of the line. One who does not want to
// wait does so only where nobody stands: on its way out it would be in the way of
// others, and they would find busy what is free.
func (s *Store) Enter(ctx context.Context, files string, record store.Record, lease time.Duration, line bool) (store.Place, store.Sight, error) {
	granted, err := s.client.Grant(ctx, int64((lease+time.Second-1)/time.Second))
	if err != nil {
		return nil, store.Sight{}, s.wrap(err)
	}
	p := &place{
		store: s, keys: s.keys(files), record: record, lease: granted.ID,
		length: time.Duration(granted.TTL) * time.Second,
	}
	p.key = p.keys.place(record.Token, record.Shared)
	inFront := p.keys.inFront(record.Shared)
	look := []clientv3.Op{clientv3.OpGet(p.keys.last()), first(inFront, 0)}
	put := clientv3.OpPut(p.key, string(record.Bytes()), clientv3.WithLease(p.lease))
	var free []clientv3.Cmp
	if !line {
		// Of no keys at all etcd takes the create revision for 0.
		free = append(free, clientv3.Compare(clientv3.CreateRevision(inFront), "=", 0).WithPrefix())
	}
	answer, err := s.client.Txn(ctx).If(free...).Then(look[0], look[1], put).Else(look...).Commit()
	if err != nil {
		p.revoke()
		return nil, store.Sight{}, s.wrap(err)
	}
	seen, err := sight(answer.Responses, p.key)
	if err != nil || !answer.Succeeded {
		p.revoke() // and with it the key
		return nil, seen, err
	}
	p.revision = answer.Header.Revision
	return p, seen, nil
}

// wrap makes trouble with the cluster the status 69, with the address in front.
func (s *Store) wrap(err error) error {
	if err == nil {
		return nil
	}
	var known *exit.Error
	if errors.As(err, &known) || errors.Is(err, store.ErrGone) {
		return err
	}
	reason := err.Error()
	if errors.Is(err, context.DeadlineExceeded) {
		reason = "no answer in time"
	}
	return exit.New(exit.Unavailable, s.address, strings.TrimPrefix(reason, "etcdserver: "))
}

// sight reads the answers to "get last" and "first of the line"; own is one's
// own key, which is in nobody's way.
func sight(answers []*responseOp, own string) (store.Sight, error) {
	seen := store.Sight{Now: time.Now()}
	if found := answers[0].GetResponseRange().Kvs; len(found) > 0 {
		var err error
		if seen.Last, err = store.ParseLast(string(found[0].Key), found[0].Value); err != nil {
			return seen, err
		}
	}
	found := answers[1].GetResponseRange().Kvs
	if len(found) == 0 || string(found[0].Key) == own {
		return seen, nil
	}
	owner, err := store.ParseRecord(string(found[0].Key), found[0].Value)
	seen.Held, seen.Owner = true, owner
	seen.Age = age(owner, seen.Now)
	return seen, err
}

// age is by the clock that takes no steps where the owner is on this machine, in
// this boot; else by both machines' wall clocks.
func age(owner store.Record, now time.Time) time.Duration {
	here := process.Here()
	if id := owner.Owner; id.Boot != "" && id.Boot == here.Boot && id.TimeNS == here.TimeNS {
		return process.Boottime() - owner.Boottime
	}
	return now.Sub(owner.Taken)
}
