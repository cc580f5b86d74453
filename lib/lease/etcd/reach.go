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

// reach knows the outcome of the last attempt to talk to each member. The client retries until
// its time is up, whatever the reason, and does not tell the reason. reach ends that once it is
// certain that no member can be talked to, and has the words for it.
type reach struct {
	mu     sync.Mutex
	dialed map[net.Conn]string // connections that have not received anything yet, with HOST:PORT
	wrong  map[string]error    // by member; nil: it answers, or was not tried yet
	asking map[int]func()      // what cancels each question that waits for an answer
	last   int                 // the number of the last question
}

// newReach is for the members, each HOST:PORT.
func newReach(members []string) *reach {
	r := &reach{dialed: map[net.Conn]string{}, wrong: map[string]error{}, asking: map[int]func(){}}
	for _, member := range members {
		r.wrong[member] = nil
	}
	return r
}

// options make the client report to r. With a proxy, which gRPC takes from the environment as
// long as it dials by itself, nothing is certain from here.
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
		r.tell()
	}
	return conn, err
}

// told notes the first outcome of a connection, once.
func (r *reach) told(conn net.Conn, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if member, known := r.dialed[conn]; known {
		delete(r.dialed, conn)
		r.wrong[member] = err
		r.tell()
	}
}

// hasten ends a question that no member can answer, as soon as that is certain. Its error is none
// of those after which the client retries.
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

// whenCertain calls giveUp once it is certain that no member can be talked to, unless forget was
// called before.
func (r *reach) whenCertain(giveUp func()) (forget func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last++
	number := r.last
	r.asking[number] = giveUp
	r.tell()
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.asking, number)
	}
}

// tell is called with the lock held.
func (r *reach) tell() {
	if _, certain := r.reason(); certain {
		for _, giveUp := range r.asking {
			giveUp()
		}
	}
}

// why is what is wrong with the members; certain if no member can be talked to however often the
// client tries. "" if at least one of them answers.
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

// handshakes notes how each handshake ends, and the first bytes after it: only there may a server
// refuse a client's certificate (TLS 1.3), and only there does it show whether it speaks the same
// protocol.
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
		h.reach.told(raw, err)
		return conn, info, err
	}
	return &listened{Conn: conn, raw: raw, reach: h.reach}, info, nil
}

// listened is a connection whose first bytes are checked.
type listened struct {
	net.Conn
	raw   net.Conn
	reach *reach
	heard bool // only the reader reads and sets it
}

func (l *listened) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	if !l.heard {
		l.heard = true
		wrong := firstWord(b[:n], err)
		if l.Conn == l.raw && errors.Is(wrong, io.EOF) && answersTLS(l.raw.RemoteAddr().String()) {
			wrong = errWantsTLS
		}
		l.reach.told(l.raw, wrong)
	}
	return n, err
}

// firstWord is what is wrong with the first bytes read. HTTP/2 begins with a SETTINGS frame (RFC
// 9113, 3.4), whose length is below 2^16 bytes: so the first byte is zero.
func firstWord(text []byte, err error) error {
	const tlsAlert = 21 // RFC 8446, 5.1
	switch {
	case len(text) == 0 && err == nil:
		return io.EOF
	case len(text) == 0:
		return err
	case text[0] == tlsAlert, strings.Contains(string(text), "HTTPS"): // as Go's servers say
		return errWantsTLS
	case text[0] != 0:
		return errNoEtcd
	}
	return nil
}

// A server that is addressed with the wrong protocol closes the connection without a word, and so
// does one that is about to end. So it is addressed once with the other protocol.
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
	return firstWord(first, err) == nil
}

func answersTLS(address string) bool {
	conn, err := dialFor(otherWay, address)
	if err != nil {
		return false
	}
	defer conn.Close()
	// Nothing is sent over it, so the server need not prove its identity.
	err = tls.Client(conn, &tls.Config{InsecureSkipVerify: true}).Handshake()
	var refused *net.OpError
	return err == nil || errors.As(err, &refused) && refused.Op == "remote error"
}

// dialFor connects, with that deadline for all.
func dialFor(most time.Duration, address string) (net.Conn, error) {
	conn, err := net.DialTimeout("tcp", address, most)
	if err == nil {
		err = conn.SetDeadline(time.Now().Add(most))
	}
	return conn, err
}
