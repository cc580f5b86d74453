package ftp

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/textproto"
	"os"
	"slices"
	"strings"
	"time"

	client "github.com/jlaffaye/ftp"

	"adlock/lib/fault"
	"adlock/lib/lease"
)

const longestWait = 5 * time.Second // how long the server may take for its next bytes

// session is one login. Each wait for the server has a limit.
type session struct {
	*client.ServerConn
	cut context.CancelFunc // closes the connections at once
}

type line struct {
	net.Conn
	patience func() time.Duration // how long to wait for the server's next bytes
	forget   func() bool          // keeps the context from closing the connection
}

func (l *line) Read(b []byte) (int, error) {
	_ = l.SetReadDeadline(time.Now().Add(l.patience())) // if the connection is closed, Read below reports that
	n, err := l.Conn.Read(b)
	l.giveUp(err)
	return n, err
}

func (l *line) Write(b []byte) (int, error) {
	_ = l.SetWriteDeadline(time.Now().Add(l.patience()))
	n, err := l.Conn.Write(b)
	l.giveUp(err)
	return n, err
}

// giveUp closes a connection after a timeout. Otherwise the client library would go on (if EPSV is
// not answered, it sends PASV), and take a late answer for the answer to its next command.
func (l *line) giveUp(err error) {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		l.Close()
	}
}

func (l *line) Close() error {
	l.forget()
	return l.Conn.Close()
}

// connect makes a connection that is closed when ctx is done.
func connect(ctx context.Context, address string, patience func() time.Duration) (*line, error) {
	dialer := net.Dialer{Timeout: patience(), KeepAlive: 5 * time.Second}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return &line{conn, patience, context.AfterFunc(ctx, func() { conn.Close() })}, nil
}

// login connects and logs in. It retries for a second if the server is full: a closed session may still count.
func (a *account) login(ctx context.Context, patience func() time.Duration) (*session, error) {
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		s, err := a.tryLogin(ctx, patience)
		if !isFull(err) || time.Since(began) > time.Second || ctx.Err() != nil {
			return s, err
		}
	}
}

func (a *account) tryLogin(ctx context.Context, patience func() time.Duration) (*session, error) {
	lasting, cut := context.WithCancel(context.Background())
	defer context.AfterFunc(ctx, cut)()
	control, secure, err := a.greet(lasting, patience)
	if err != nil {
		cut()
		return nil, err
	}
	dial := func(_, address string) (net.Conn, error) {
		if first := control; first != nil {
			control = nil
			return first, nil
		}
		data, err := connect(lasting, address, patience)
		if err != nil || !secure {
			return data, err
		}
		return tls.Client(data, a.config), nil
	}
	options := []client.DialOption{client.DialWithDialFunc(dial)}
	if secure {
		options = append(options, client.DialWithTLS(a.config)) // so that Login has data connections encrypted (PBSZ, PROT)
	}
	conn, err := client.Dial(a.host, options...)
	if err == nil {
		err = a.loginRefused(conn.Login(a.user, a.password))
	}
	if err != nil {
		cut()
		return nil, err
	}
	return &session{conn, cut}, nil
}

// greeted is a connection whose greeting has already been read. The library expects a greeting, and reads first.
type greeted struct {
	net.Conn
	first *strings.Reader
}

func (g greeted) Read(b []byte) (int, error) {
	if g.first.Len() > 0 {
		return g.first.Read(b)
	}
	return g.Conn.Read(b)
}

// greet connects, and asks for TLS on the session's own connection: some servers allow no second connection.
// secure is false if the server does not offer TLS and the address does not require it.
func (a *account) greet(ctx context.Context, patience func() time.Duration) (control net.Conn, secure bool, err error) {
	plain, err := connect(ctx, a.host, patience)
	if err != nil {
		return nil, false, err
	}
	talk := textproto.NewConn(plain)
	if err = checkGreeting(talk); err != nil {
		return nil, false, err
	}
	if _, _, err = talk.ReadResponse(client.StatusReady); err != nil {
		return nil, false, err
	}
	if _, err = talk.Cmd("AUTH TLS"); err != nil {
		return nil, false, err
	}
	_, _, err = talk.ReadResponse(client.StatusAuthOK)
	var answer *textproto.Error
	switch {
	case err == nil && talk.R.Buffered() > 0: // plain text that would be taken for a part of the encrypted session
		return nil, false, errors.New("sends more than its answer before TLS begins")
	case err == nil:
		safe := tls.Client(plain, a.config)
		control, secure, err = safe, true, safe.HandshakeContext(ctx)
	case errors.As(err, &answer) && !isFull(err) && !a.secure: // the server does not offer TLS
		control, err = plain, nil
	default:
		err = a.noTLS(err)
	}
	return greeted{control, strings.NewReader("220 \r\n")}, secure, err
}

// do executes one command, and connects first if needed. If a command takes too long, do closes the
// connection: the server may still execute the command.
func (s *Store) do(ctx context.Context, command func(*client.ServerConn) error) error {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return s.wrap(ctx.Err())
	}
	if err := ctx.Err(); err != nil {
		return s.wrap(err)
	}
	if s.session == nil {
		session, err := s.account.login(ctx, s.patience)
		if err != nil {
			return s.wrap(cmp.Or(ctx.Err(), err))
		}
		s.session = session
	}
	awaited := context.AfterFunc(ctx, s.session.cut)
	err := command(s.session.ServerConn)
	late := !awaited()
	if late && err != nil {
		err = ctx.Err()
	}
	if late || err != nil && (!isAnswer(err) || isFull(err)) {
		s.session.cut()
		s.session = nil
	}
	return s.wrap(err)
}

// patience returns how long the server may take for its next bytes. While an atom is held, it leaves time for
// two more tries before the lease runs out.
func (s *Store) patience() time.Duration {
	if lease := time.Duration(s.held.Load()); lease > 0 {
		return min(longestWait, lease/8)
	}
	return longestWait
}

func (s *Store) hangUp() {
	if s.session != nil {
		_ = s.session.Quit() // if this fails, the connection is closed all the same
		s.session.cut()
		s.session = nil
	}
}

func (s *Store) wrap(err error) error {
	var known *fault.Error
	var answer *textproto.Error
	switch {
	case err == nil, errors.As(err, &known), isMissing(err):
		return err
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return fault.New(fault.Unavailable, s.String(), lease.NoAnswer)
	case !errors.As(err, &answer):
		return s.account.unreachable(err)
	}
	kind := kindOf(answer)
	if kind == fault.IO {
		return &fault.Error{Kind: kind, Object: s.String(), Err: &explained{"the server has no room, or cannot write", answer}}
	}
	return &fault.Error{Kind: kind, Object: s.String(), Err: refusal{answer}}
}

func kindOf(answer *textproto.Error) fault.Kind {
	switch answer.Code {
	case client.StatusNotLoggedIn, client.StatusLoginNeedAccount:
		return fault.NotPermitted
	case client.StatusActionAborted, 452, client.StatusExceededStorage, client.StatusTransfertAborted:
		return fault.IO // RFC 959: transfer aborted, local error, no space, quota
	}
	return fault.Unavailable
}

type refusal struct{ answer *textproto.Error }

func (r refusal) Error() string { return strings.TrimSpace(r.answer.Msg) }
func (r refusal) Unwrap() error { return r.answer }

// Is makes a full server's refusal a lease.ErrCrowded.
func (r refusal) Is(target error) bool { return target == lease.ErrCrowded && isFull(r.answer) }

// isAnswer reports whether err is an answer of the server, and not a failure of the connection.
func isAnswer(err error) bool {
	var answer *textproto.Error
	return errors.As(err, &answer)
}

// isFull reports whether the server has no room for another connection now, or is closing this one.
func isFull(err error) bool { return hasCode(err, client.StatusNotAvailable) }

// isMissing reports whether a file may be missing: FTP has only 550 for that, and vsftpd answers STOR in a
// missing directory with 553. Either may also mean that the server cannot read the file, or refuses to.
func isMissing(err error) bool {
	return hasCode(err, client.StatusFileUnavailable, client.StatusBadFileName)
}

func hasCode(err error, codes ...int) bool {
	var answer *textproto.Error
	return errors.As(err, &answer) && slices.Contains(codes, answer.Code)
}

// refused returns fault.NotPermitted, with what was refused, if the answer is that for a missing file
// (isMissing), but the file cannot be missing. It returns any other error unchanged.
func (s *Store) refused(what string, err error) error {
	if isMissing(err) {
		return &fault.Error{Kind: fault.NotPermitted, Object: s.String(), Err: fmt.Errorf("%s: %w", what, err)}
	}
	return err
}
