package etcd

import (
	"context"
	"net"
	"os"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"adlock/lib/lease"
)

// reach records how the last attempt to connect to each member ended. The client reports only the
// text of such an error, and tries again until its time is up.
type reach struct {
	mu     sync.Mutex
	dialed map[net.Conn]string // connections before their handshake, with HOST:PORT
	wrong  map[string]error    // by HOST:PORT; nil: the member was reached, or was not tried yet
}

func newReach(members []string) *reach {
	r := &reach{dialed: map[net.Conn]string{}, wrong: map[string]error{}}
	for _, member := range members {
		r.wrong[member] = nil
	}
	return r
}

// options returns the options with which the client reports to r; none behind a proxy, as gRPC itself must dial then.
func (r *reach) options(secure credentials.TransportCredentials) []grpc.DialOption {
	if os.Getenv("HTTPS_PROXY")+os.Getenv("https_proxy") != "" {
		return nil
	}
	return []grpc.DialOption{grpc.WithContextDialer(r.dial), grpc.WithTransportCredentials(handshakes{secure, r})}
}

func (r *reach) dial(ctx context.Context, member string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", member)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		r.dialed[conn] = member
	} else if ctx.Err() == nil {
		r.wrong[member] = err
	}
	return conn, err
}

type handshakes struct {
	credentials.TransportCredentials
	reach *reach
}

func (h handshakes) Clone() credentials.TransportCredentials {
	return handshakes{h.TransportCredentials.Clone(), h.reach}
}

func (h handshakes) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := h.TransportCredentials.ClientHandshake(ctx, authority, raw)
	h.reach.mu.Lock()
	defer h.reach.mu.Unlock()
	member := h.reach.dialed[raw]
	delete(h.reach.dialed, raw)
	if err != nil {
		h.reach.wrong[member] = err
		return conn, info, err
	}
	return &fresh{Conn: conn, reach: h.reach, member: member}, info, nil
}

// fresh is a connection whose first bytes show that the member was reached. In TLS 1.3 the refusal of a
// client's certificate comes in their place.
type fresh struct {
	net.Conn
	reach  *reach
	member string
	once   sync.Once
}

func (f *fresh) Read(b []byte) (int, error) {
	n, err := f.Conn.Read(b)
	f.once.Do(func() {
		f.reach.mu.Lock()
		defer f.reach.mu.Unlock()
		f.reach.wrong[f.member] = err
	})
	return n, err
}

// why returns why no member can be reached; zero if one was reached, or was not tried yet.
func (r *reach) why() lease.Reason {
	r.mu.Lock()
	defer r.mu.Unlock()
	why := lease.Reason{Lasting: lease.Hopeless}
	var reasons, each []string
	for member, err := range r.wrong {
		if err == nil {
			return lease.Reason{}
		}
		one := lease.ReasonOf(err)
		why.Lasting = min(why.Lasting, one.Lasting)
		reasons, each = append(reasons, one.Text), append(each, member+": "+one.Text)
	}
	if len(slices.Compact(reasons)) == 1 {
		each = reasons[:1]
	}
	slices.Sort(each)
	why.Text = strings.Join(each, "; ")
	return why
}
