package etcd

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"adlock/lib/lease"
)

// txn is a transaction that does no harm if it is executed twice.
type txn struct {
	when         []clientv3.Cmp
	then, orElse []clientv3.Op
}

// longestSilence is the longest time that ask waits at first before it asks the next member as well. It
// also limits the comparison of the members.
const longestSilence = time.Second

func (s *Store) commit(ctx context.Context, t txn) (*clientv3.TxnResponse, error) {
	answer, _, err := s.ask(ctx, t)
	return answer, err
}

// ask executes the transaction, and reports whether it was sent again: then an earlier execution may have
// affected the answer. A member that hangs, or has lost its leader, stays silent for longer than the time
// allowed. So after a quarter of that time (a second at most) ask sends the transaction to the next member as
// well, and so on, and takes the first answer. (The client takes its members in turn.) Once every member has
// been silent, the interval doubles: if a thousand newcomers come at once, few are answered soon, and their
// repeated questions must not keep the store busy.
func (s *Store) ask(ctx context.Context, t txn) (_ *clientv3.TxnResponse, again bool, _ error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := s.connect(); err != nil {
		return nil, false, err
	}
	compared := s.compareMembers()
	type answer struct {
		*clientv3.TxnResponse
		error
	}
	answers := make(chan answer)
	ask := func() {
		got, err := s.client.Txn(ctx).If(t.when...).Then(t.then...).Else(t.orElse...).Commit()
		select {
		case answers <- answer{got, err}:
		case <-ctx.Done():
		}
	}
	silence := longestSilence
	if end, limited := ctx.Deadline(); limited {
		silence = min(silence, time.Until(end)/4)
	}
	var last error
	go ask()
	for silent := 0; ; again = true {
		select {
		case got := <-answers:
			if got.error == nil {
				got.error = s.isOneCluster(ctx, compared)
			}
			if got.error == nil || !isTransient(got.error) {
				return got.TxnResponse, again, s.wrap(got.error)
			}
			last = got.error
			lease.Pause(ctx, min(silence, 100*time.Millisecond))
		case <-time.After(silence):
			if silent++; silent >= len(s.client.Endpoints()) {
				silence = min(2*silence, 8*longestSilence)
			}
		case <-ctx.Done():
		}
		if s.reach.why().Lasting != lease.Passing || ctx.Err() != nil {
			return nil, again, s.wrap(errors.Join(last, cmp.Or(ctx.Err(), context.DeadlineExceeded)))
		}
		go ask()
	}
}

// isTransient reports whether another member may answer, or the same member later.
func isTransient(err error) bool {
	var known rpctypes.EtcdError
	code := status.Code(err)
	if errors.As(err, &known) {
		code = known.Code()
	}
	if errors.Is(err, rpctypes.ErrTooManyRequests) { // too many newcomers at once: some are answered by the next try
		return true
	}
	return code == codes.Unavailable || isLate(err) || isDropped(err)
}

// isLate reports whether the deadline has passed, here or at a member. A member may report that without a code.
func isLate(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || status.Code(err) == codes.DeadlineExceeded || said(err) == context.DeadlineExceeded.Error()
}

func said(err error) string {
	var answer interface{ GRPCStatus() *status.Status }
	if errors.As(err, &answer) {
		return answer.GRPCStatus().Message()
	}
	return err.Error()
}

// isDropped reports whether the leader handed over its role and executed nothing. The error has no code in etcd.
func isDropped(err error) bool {
	return strings.HasSuffix(said(err), "raft proposal dropped")
}
