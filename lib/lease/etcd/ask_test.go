package etcd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"adlock/lib/fault"
	"adlock/lib/lease"
	"adlock/lib/policy"
	"adlock/test/support/must"
)

// member is a fake member of etcd.
type member struct {
	etcdserverpb.UnimplementedKVServer
	etcdserverpb.UnimplementedMaintenanceServer
	etcdserverpb.UnimplementedLeaseServer
	cluster uint64
	asked   atomic.Int64
	answer  func(ctx context.Context, asked int64) error // nil: it answers at once
	claimed bool                                         // another host has claimed the tick
}

func (m *member) answers(ctx context.Context) error {
	asked := m.asked.Add(1)
	if m.answer == nil {
		return nil
	}
	return m.answer(ctx, asked)
}

func (m *member) Txn(ctx context.Context, _ *etcdserverpb.TxnRequest) (*etcdserverpb.TxnResponse, error) {
	found := &responseOp{Response: &etcdserverpb.ResponseOp_ResponseRange{ResponseRange: &etcdserverpb.RangeResponse{}}}
	inner := &etcdserverpb.ResponseOp_ResponseTxn{ResponseTxn: &etcdserverpb.TxnResponse{Succeeded: !m.claimed, Responses: []*responseOp{found}}}
	return &etcdserverpb.TxnResponse{
		Header: &etcdserverpb.ResponseHeader{ClusterId: m.cluster}, Succeeded: true, Responses: []*responseOp{{Response: inner}},
	}, m.answers(ctx)
}

func (m *member) LeaseGrant(ctx context.Context, _ *etcdserverpb.LeaseGrantRequest) (*etcdserverpb.LeaseGrantResponse, error) {
	return &etcdserverpb.LeaseGrantResponse{ID: 1}, m.answers(ctx)
}

func (m *member) LeaseRevoke(ctx context.Context, _ *etcdserverpb.LeaseRevokeRequest) (*etcdserverpb.LeaseRevokeResponse, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (m *member) Status(context.Context, *etcdserverpb.StatusRequest) (*etcdserverpb.StatusResponse, error) {
	return &etcdserverpb.StatusResponse{Header: &etcdserverpb.ResponseHeader{ClusterId: m.cluster}}, nil
}

// serving returns a store with these members.
func serving(t *testing.T, members ...*member) *Store {
	t.Helper()
	var addresses []string
	for _, m := range members {
		address, l := listening(t)
		server := grpc.NewServer()
		etcdserverpb.RegisterKVServer(server, m)
		etcdserverpb.RegisterMaintenanceServer(server, m)
		etcdserverpb.RegisterLeaseServer(server, m)
		go func() { _ = server.Serve(l) }() // Stop ends it
		t.Cleanup(server.Stop)
		addresses = append(addresses, address)
	}
	return opened(t, addresses...)
}

func opened(t *testing.T, addresses ...string) *Store {
	t.Helper()
	t.Setenv("HTTPS_PROXY", "")
	t.Setenv("https_proxy", "")
	s := must.Get(Open(Scheme + strings.Join(addresses, ",") + "/prod"))(t)
	t.Cleanup(func() { s.Close() })
	return s
}

// listening returns the address of a port that is listened on.
func listening(t *testing.T) (string, net.Listener) {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { l.Close() })
	return l.Addr().String(), l
}

// Another member may answer, so ask tries each. But a busy member must not get the same question all the time.
func TestEachSilentMemberIsAskedWithFewRequests(t *testing.T) {
	for members, most := range map[int]int64{1: 3, 3: 4} { // after 0, 1 and 3 quarters of the time; after 0, 1, 2 and 3 quarters
		all := []*member{{}, {}, {}}[:members]
		s := serving(t, all...)
		for slices.ContainsFunc(all, func(m *member) bool { return m.asked.Load() == 0 }) { // until each is connected
			must.Get(s.commit(t.Context(), txn{}))(t)
		}
		for _, m := range all {
			m.asked.Store(0)
			m.answer = func(ctx context.Context, _ int64) error { <-ctx.Done(); return ctx.Err() }
		}
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		if _, err := s.commit(ctx, txn{}); err == nil {
			t.Fatal("an owner has answered")
		}
		asked := int64(0)
		for i, member := range all {
			if member.asked.Load() == 0 {
				t.Errorf("member %d of %d was not asked", i, members)
			}
			asked += member.asked.Load()
		}
		if asked < 2 || asked > most {
			t.Errorf("%d members were asked %d times, want at most %d", members, asked, most)
		}
	}
}

// A member that has lost the others is silent for longer than the claim of a tick may take.
func TestASilentMemberDoesNotHoldUpTheClaimOfATick(t *testing.T) {
	for _, other := range []bool{false, true} {
		s := serving(t, &member{claimed: other, answer: func(ctx context.Context, asked int64) error {
			if asked > 1 {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		}})
		must.Do(t, s.connect())
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		p, began := &place{store: s, keys: s.keys("p.h.o.x")}, time.Now()
		claimed, err := p.ClaimTick(ctx, policy.Tick{Period: time.Hour})
		if spent := time.Since(began); claimed == other || err != nil || spent > time.Minute/2 {
			t.Errorf("claimed %v, %v after %v", claimed, err, spent)
		}
	}
}

func TestADroppedOrTimedOutTransactionIsSentAgain(t *testing.T) {
	for why, words := range map[string]string{
		"its leader hands over":       "raft proposal dropped",
		"its own time was up earlier": "context deadline exceeded",
	} {
		failing := &member{answer: func(_ context.Context, asked int64) error {
			if asked == 1 {
				return status.Error(codes.Unknown, words)
			}
			return nil
		}}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if answer, err := serving(t, failing).commit(ctx, txn{}); err != nil || !answer.Succeeded {
			t.Error(why, err)
		}
		if n := failing.asked.Load(); n != 2 {
			t.Errorf("%s: asked %d times, want 2", why, n)
		}
	}
}

func TestErrorsOmitThePrefixesOfGRPCAndEtcd(t *testing.T) {
	for answer, want := range map[error]string{
		status.Error(codes.Unknown, "context deadline exceeded"):                 lease.NoAnswer,
		status.Error(codes.DeadlineExceeded, "context deadline exceeded"):        lease.NoAnswer,
		status.Error(codes.Unavailable, "etcdserver: leader changed"):            "leader changed",
		status.Error(codes.Unknown, "etcdserver: something else"):                "something else",
		errors.Join(status.Error(codes.Unknown, "no"), context.Canceled):         "no",
		errors.Join(status.Error(codes.Unknown, "no"), context.DeadlineExceeded): lease.NoAnswer,
		fmt.Errorf("etcdserver: %w", errors.New("something of this client")):     "something of this client",
	} {
		if reason := newReach([]string{"a:1"}).trouble("store", answer).Error(); reason != "store: "+want {
			t.Errorf("%v: %q, want %q", answer, reason, want)
		}
	}
}

// Otherwise each of two newcomers could own the atom, in the cluster that it happens to reach. The client may
// put all its questions to one member, but every member is compared.
func TestMembersOfTwoClustersAreRefused(t *testing.T) {
	for _, test := range []struct {
		clusters []uint64
		refused  bool
	}{{[]uint64{7, 7, 7}, false}, {[]uint64{7, 8}, true}, {[]uint64{7, 7, 8}, true}, {[]uint64{7}, false}} {
		var members []*member
		for _, cluster := range test.clusters {
			members = append(members, &member{cluster: cluster})
		}
		_, err := serving(t, members...).commit(context.Background(), txn{})
		if errors.Is(err, lease.ErrUnfit) != test.refused || fault.KindOf(err) != fault.Unavailable && test.refused || err != nil && !test.refused {
			t.Errorf("%v: %v", test.clusters, err)
		}
		if told := fmt.Sprint(err); strings.Count(told, " is of cluster ") != 2 && test.refused {
			t.Error(told)
		}
	}
}

func TestClosedPortsAreReportedLongBeforeTheDeadline(t *testing.T) {
	one, l := listening(t)
	other, more := listening(t)
	l.Close()
	more.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	began := time.Now()
	_, err := opened(t, one, other).Look(ctx, "p.h.o.x", false)
	if fault.KindOf(err) != fault.Unavailable || !strings.Contains(err.Error(), ": connection refused") {
		t.Errorf("error %v", err)
	}
	if spent := time.Since(began); spent > 90*time.Second {
		t.Errorf("it took %v", spent)
	}
}

func TestASilentMemberBesideAClosedPortIsWaitedFor(t *testing.T) {
	closed, l := listening(t)
	silent, _ := listening(t)
	l.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	if _, err := opened(t, closed, silent).Look(ctx, "p.h.o.x", false); ctx.Err() == nil || !strings.Contains(err.Error(), "no answer in time") {
		t.Errorf("too early: %v", err)
	}
}
