package etcd

import (
	"context"
	"fmt"
	"sync"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"

	"adlock/lib/lease"
)

// cluster is the cluster whose members have answered. If the address names members of two clusters,
// two newcomers that reach different members would both own an atom.
type cluster struct {
	mu     sync.Mutex
	id     uint64 // 0: no member has answered yet
	member string // the member that answered first, with its port
	mixed  error  // names members of two clusters; nil: the members that have answered are of one cluster

	compared chan struct{} // closed when all members have answered, or after longestSilence; nil: not begun
}

// answered records an answer of a member (HOST:PORT), and the id of its cluster. Once members of two clusters have
// answered, this call and every later one return an error that names both (lease.ErrUnfit).
func (c *cluster) answered(id uint64, member string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.mixed != nil:
	case c.id == 0:
		c.id, c.member = id, member
	case id != c.id:
		c.mixed = fmt.Errorf("%s is of cluster %x, and %s is of cluster %x: %w", c.member, c.id, member, id, lease.ErrUnfit)
	}
	return c.mixed
}

func (s *Store) checkAnswer(ctx context.Context, method string, question, answer any, conn *grpc.ClientConn, ask grpc.UnaryInvoker, options ...grpc.CallOption) error {
	var from peer.Peer
	if err := ask(ctx, method, question, answer, conn, append(options, grpc.Peer(&from))...); err != nil {
		return err
	}
	known, is := answer.(interface {
		GetHeader() *etcdserverpb.ResponseHeader
	})
	if !is || known.GetHeader().GetClusterId() == 0 {
		return nil
	}
	return s.cluster.answered(known.GetHeader().GetClusterId(), from.Addr.String())
}

// compareMembers asks each of several members which cluster it belongs to, as the client may send all
// questions of a short run to one member. A later call asks again only if none has answered. The channel
// closes when all have answered, or after longestSilence: checkAnswer checks later answers.
func (s *Store) compareMembers() (compared <-chan struct{}) {
	c := &s.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.compared != nil && (c.id != 0 || !isClosed(c.compared)) {
		return c.compared
	}
	done := make(chan struct{})
	c.compared = done
	members := s.client.Endpoints()
	if len(members) == 1 {
		close(done)
		return done
	}
	go func() {
		defer close(done)
		ctx, cancel := context.WithTimeout(context.Background(), longestSilence)
		defer cancel()
		var asked sync.WaitGroup
		for _, member := range members {
			asked.Go(func() { s.askMember(ctx, member) })
		}
		asked.Wait()
	}()
	return done
}

func isClosed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// askMember asks one member once; checkAnswer sees the answer. (The client's own Status would try again.)
func (s *Store) askMember(ctx context.Context, member string) {
	conn, err := s.client.Dial(member)
	if err != nil {
		return
	}
	defer conn.Close()
	_, _ = etcdserverpb.NewMaintenanceClient(conn).Status(ctx, &etcdserverpb.StatusRequest{})
}

// isOneCluster waits until compared is closed or ctx is done. It fails if members of two clusters have answered.
func (s *Store) isOneCluster(ctx context.Context, compared <-chan struct{}) error {
	select {
	case <-compared:
	case <-ctx.Done():
	}
	s.cluster.mu.Lock()
	defer s.cluster.mu.Unlock()
	return s.wrap(s.cluster.mixed)
}
