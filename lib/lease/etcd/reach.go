package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"adlock/lib/lease"
)

// reach keeps the outcome of the last attempt to connect to each member. The client retries until
// its time is up, whatever the error, and does not report it. reach ends the retries once it is
// certain that no member can be reached, and reports why.
type reach struct {
	mu     sync.Mutex
	dialed map[net.Conn]string // connections that have not received anything yet, with HOST:PORT
	wrong  map[string]error    // by member; nil: it answers, or was not tried yet
	asking map[int]func()      // by number of a question that waits for an answer: cancels the question
	last   int                 // the number of the last question
}

// newReach returns a reach for the members, each HOST:PORT.
func newReach(members []string) *reach {
	r := &reach{dialed: map[net.Conn]string{}, wrong: map[string]error{}, asking: map[int]func(){}}
	for _, member := range members {
		r.wrong[member] = nil
	}
	return r
}

// options make the client report to r. With a proxy, reach can be certain of nothing, and leaves
// the dialling to gRPC, which takes the proxy from the environment.
func (r *reach) options(secure credentials.TransportCredentials) []grpc.DialOption {
	if os.Getenv("HTTPS_PROXY")+os.Getenv("https_proxy") != "" {
		return nil
	}
	return []grpc.DialOption{
		grpc.WithContextDialer(r.dial),
		grpc.WithTransportCredentials(handshakes{secure, r}),
		grpc.WithChainUnaryInterceptor(r.hasten),
	}
}

func (r *reach) dial(ctx context.Context, member string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", member)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		r.dialed[conn] = member
	} else if ctx.Err() == nil {
		r.wrong[member] = err
		r.giveUpIfCertain()
	}
	return conn, err
}

// noteOutcome notes the first outcome of a connection, and ignores later ones.
func (r *reach) noteOutcome(conn net.Conn, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if member, known := r.dialed[conn]; known {
		delete(r.dialed, conn)
		r.wrong[member] = err
		r.giveUpIfCertain()
	}
}

// hasten puts a question, and cancels it as soon as it is certain that no member can answer. Then
// it returns an error after which the client does not retry.
func (r *reach) hasten(ctx context.Context, method string, question, answer any, conn *grpc.ClientConn, ask grpc.UnaryInvoker, options ...grpc.CallOption) error {
	asking, giveUp := context.WithCancel(ctx)
	defer giveUp()
	defer r.whenCertain(giveUp)()
	err := ask(asking, method, question, answer, conn, options...)
	if err != nil && asking.Err() != nil && ctx.Err() == nil {
		reason, _ := r.why()
		return status.Error(codes.FailedPrecondition, reason)
	}
	return err
}

// whenCertain calls giveUp once it is certain that no member can be reached, unless forget was
// called before.
func (r *reach) whenCertain(giveUp func()) (forget func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last++
	number := r.last
	r.asking[number] = giveUp
	r.giveUpIfCertain()
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.asking, number)
	}
}

// giveUpIfCertain cancels all questions if no member can be reached. It is called with mu held.
func (r *reach) giveUpIfCertain() {
	if _, certain := r.reason(); certain {
		for _, giveUp := range r.asking {
			giveUp()
		}
	}
}

// why returns what is wrong with the members; "" if at least one of them answers. certain is true
// if no further attempt of the client can reach one.
func (r *reach) why() (reason string, certain bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reason()
}

func (r *reach) reason() (reason string, certain bool) {
	certain = true
	var reasons, each []string
	for member, err := range r.wrong {
		if err == nil {
			return "", false
		}
		reason, sure := words(err)
		certain = certain && sure
		reasons, each = append(reasons, reason), append(each, member+": "+reason)
	}
	if len(slices.Compact(reasons)) == 1 {
		return reasons[0], certain
	}
	slices.Sort(each)
	return strings.Join(each, "; "), certain
}

var (
	errNoTLS    = errors.New("does not speak TLS")
	errWantsTLS = errors.New("wants TLS: ETCDCTL_CACERT says with which authority")
	errNoEtcd   = errors.New("is no etcd, or none of version 3")
)

func words(err error) (reason string, certain bool) {
	if err == errNoTLS || err == errWantsTLS || err == errNoEtcd {
		return err.Error(), true
	}
	return lease.Words(err)
}

// handshakes notes how each handshake ends, and checks the first bytes after it: these bytes may be
// the refusal of a client's certificate (TLS 1.3), and show whether the server speaks HTTP/2.
type handshakes struct {
	credentials.TransportCredentials
	reach *reach
}

func (h handshakes) Clone() credentials.TransportCredentials {
	return handshakes{h.TransportCredentials.Clone(), h.reach}
}

func (h handshakes) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := h.TransportCredentials.ClientHandshake(ctx, authority, raw)
	if err != nil {
		if errors.Is(err, io.EOF) && answersPlainly(raw.RemoteAddr().String()) {
			err = errNoTLS
		}
		h.reach.noteOutcome(raw, err)
		return conn, info, err
	}
	return &checkedConn{Conn: conn, raw: raw, reach: h.reach}, info, nil
}

// checkedConn is a connection whose first bytes are checked.
type checkedConn struct {
	net.Conn
	raw     net.Conn
	reach   *reach
	checked bool // used by the reading goroutine only
}

func (c *checkedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if !c.checked {
		c.checked = true
		wrong := checkFirst(b[:n], err)
		if c.Conn == c.raw && errors.Is(wrong, io.EOF) && answersTLS(c.raw.RemoteAddr().String()) {
			wrong = errWantsTLS
		}
		c.reach.noteOutcome(c.raw, wrong)
	}
	return n, err
}

// checkFirst returns what is wrong with the first bytes read. HTTP/2 begins with a SETTINGS frame
// (RFC 9113, 3.4), whose length is below 2^16 bytes: so the first byte is zero.
func checkFirst(text []byte, err error) error {
	const tlsAlert = 21 // RFC 8446, 5.1
	switch {
	case len(text) == 0 && err == nil:
		return io.EOF
	case len(text) == 0:
		return err
	case text[0] == tlsAlert, strings.Contains(string(text), "HTTPS"): // as in the answer of Go's servers
		return errWantsTLS
	case text[0] != 0:
		return errNoEtcd
	}
	return nil
}

// A server that is addressed with the wrong protocol closes the connection without an answer, and
// so does a server that is about to end. So such a server is addressed once with the other
// protocol.
const (
	otherWay = time.Second
	// A client of HTTP/2 begins with this preface and an empty SETTINGS frame (RFC 9113, 3.4).
	preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"
)

func answersPlainly(address string) bool {
	conn, err := dialFor(otherWay, address)
	if err != nil {
		return false
	}
	defer conn.Close()
	first := make([]byte, 1)
	if _, err = io.WriteString(conn, preface); err == nil {
		_, err = io.ReadFull(conn, first)
	}
	return checkFirst(first, err) == nil
}

func answersTLS(address string) bool {
	conn, err := dialFor(otherWay, address)
	if err != nil {
		return false
	}
	defer conn.Close()
	// Nothing is sent over this connection, so the server need not prove its identity.
	err = tls.Client(conn, &tls.Config{InsecureSkipVerify: true}).Handshake()
	var refused *net.OpError
	return err == nil || errors.As(err, &refused) && refused.Op == "remote error"
}

// dialFor connects. All reads and writes have one deadline, most after the connection was made.
func dialFor(most time.Duration, address string) (net.Conn, error) {
	conn, err := net.DialTimeout("tcp", address, most)
	if err == nil {
		err = conn.SetDeadline(time.Now().Add(most))
	}
	return conn, err
}
