package etcd

import (
	"context"
	"errors"
	"fmt"
	"net"
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
)

// silent is a member that never answers.
type silent struct {
	etcdserverpb.UnimplementedKVServer
	asked atomic.Int64
}

func (s *silent) Txn(ctx context.Context, _ *etcdserverpb.TxnRequest) (*etcdserverpb.TxnResponse, error) {
	s.asked.Add(1)
	<-ctx.Done()
	return nil, ctx.Err()
}

// Another member may answer, so each is asked; but a busy member must not be asked again all the
// time.
func TestSilentMembersAreAskedInTurnAtGrowingIntervals(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "")
	t.Setenv("https_proxy", "")
	for members, most := range map[int]int64{1: 3, 3: 4} { // after 0, 1 and 3 quarters of the time; after 0, 1, 2 and 3 quarters
		var all []*silent
		var addresses []string
		for range members {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			server, member := grpc.NewServer(), &silent{}
			etcdserverpb.RegisterKVServer(server, member)
			go func() { _ = server.Serve(l) }() // Stop ends it
			t.Cleanup(server.Stop)
			all, addresses = append(all, member), append(addresses, l.Addr().String())
		}
		s, err := Open(Scheme + strings.Join(addresses, ",") + "/prod")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		if _, err := s.commit(ctx, txn{}); err == nil {
			t.Fatal("an owner has answered")
		}
		asked := int64(0)
		for i, member := range all {
			if n := member.asked.Load(); n == 0 {
				t.Errorf("member %d of %d was not asked", i, members)
			} else {
				asked += n
			}
		}
		if asked < 2 || asked > most {
			t.Errorf("%d members were asked %d times, want at most %d", members, asked, most)
		}
	}
}

// failing is a member that answers the first question with an error text for which etcd has no
// code.
type failing struct {
	etcdserverpb.UnimplementedKVServer
	words string
	asked atomic.Int64
}

func (f *failing) Txn(context.Context, *etcdserverpb.TxnRequest) (*etcdserverpb.TxnResponse, error) {
	if f.asked.Add(1) == 1 {
		return nil, status.Error(codes.Unknown, f.words)
	}
	return &etcdserverpb.TxnResponse{Header: &etcdserverpb.ResponseHeader{}, Succeeded: true}, nil
}

func TestAFailedTransactionIsSentAgain(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "")
	t.Setenv("https_proxy", "")
	for why, words := range map[string]string{
		"its leader hands over":       "raft proposal dropped",
		"its own time was up earlier": "context deadline exceeded",
	} {
		t.Run(why, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			server, member := grpc.NewServer(), &failing{words: words}
			etcdserverpb.RegisterKVServer(server, member)
			go func() { _ = server.Serve(l) }() // Stop ends it
			t.Cleanup(server.Stop)
			s, err := Open(Scheme + l.Addr().String() + "/prod")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			if answer, err := s.commit(ctx, txn{}); err != nil || !answer.Succeeded {
				t.Error(err)
			}
			if n := member.asked.Load(); n != 2 {
				t.Errorf("asked %d times, want 2", n)
			}
		})
	}
}

func TestErrorsOmitTheWordsOfGRPC(t *testing.T) {
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

// answering is a member that answers at once, and says of which cluster it is.
type answering struct {
	etcdserverpb.UnimplementedKVServer
	etcdserverpb.UnimplementedMaintenanceServer
	cluster uint64
}

func (a *answering) Txn(context.Context, *etcdserverpb.TxnRequest) (*etcdserverpb.TxnResponse, error) {
	return &etcdserverpb.TxnResponse{Header: &etcdserverpb.ResponseHeader{ClusterId: a.cluster}}, nil
}

func (a *answering) Status(context.Context, *etcdserverpb.StatusRequest) (*etcdserverpb.StatusResponse, error) {
	return &etcdserverpb.StatusResponse{Header: &etcdserverpb.ResponseHeader{ClusterId: a.cluster}}, nil
}

// The client may put all its questions to one member, but every member is compared.
func TestMembersOfTwoClustersAreRefused(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "")
	t.Setenv("https_proxy", "")
	for _, test := range []struct {
		clusters []uint64
		refused  bool
	}{{[]uint64{7, 7, 7}, false}, {[]uint64{7, 8}, true}, {[]uint64{7, 7, 8}, true}, {[]uint64{7}, false}} {
		var addresses []string
		for _, cluster := range test.clusters {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			server, member := grpc.NewServer(), &answering{cluster: cluster}
			etcdserverpb.RegisterKVServer(server, member)
			etcdserverpb.RegisterMaintenanceServer(server, member)
			go func() { _ = server.Serve(l) }() // Stop ends it
			t.Cleanup(server.Stop)
			addresses = append(addresses, l.Addr().String())
		}
		s, err := Open(Scheme + strings.Join(addresses, ",") + "/prod")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		_, err = s.commit(context.Background(), txn{})
		if errors.Is(err, lease.ErrUnfit) != test.refused || fault.KindOf(err) != fault.Unavailable && test.refused || err != nil && !test.refused {
			t.Errorf("%v: %v", test.clusters, err)
		}
	}
}
