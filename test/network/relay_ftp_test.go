package network

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"adlock/test/support/helper"
)

// ftpRelay is a relay to an FTP server, also for the data connections. It can hang at any command,
// and make the server's clock step.
type ftpRelay struct {
	*relay
	t testing.TB

	mu     sync.Mutex
	stall  stall
	stepAt time.Time     // files written from then on have a time that differs by step
	step   time.Duration // 0: none
}

// stall says which commands hang, and where.
type stall struct {
	every int // each command with this number, or a multiple of it, hangs
	count int
	at    string // "command", "answer" or "data": which does not get through
	over  chan struct{}
	next  bool // the next answer, or data connection, hangs
}

func newFTPRelayAt(t testing.TB, ip, to string) *ftpRelay {
	f := &ftpRelay{relay: newRelayAt(t, ip, to), t: t}
	f.edit = func() [2]func([]byte) []byte { return [2]func([]byte) []byte{f.command, f.answer} }
	return f
}

// hang makes every n-th command from now on hang, or its answer or data, until over is called.
func (f *ftpRelay) hang(n int, at string) (over func()) {
	s := stall{every: n, at: at, over: make(chan struct{})}
	f.mu.Lock()
	f.stall = s
	f.mu.Unlock()
	return func() {
		f.mu.Lock()
		f.stall = stall{}
		f.mu.Unlock()
		close(s.over)
	}
}

// setClock lets the server's clock step now.
func (f *ftpRelay) setClock(by time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stepAt, f.step = time.Now().Truncate(time.Second), by
}

func (f *ftpRelay) command(line []byte) []byte {
	f.mu.Lock()
	f.stall.count++
	s := f.stall
	struck := s.over != nil && s.count%s.every == 0
	f.stall.next = f.stall.next || struck && s.at != "command"
	f.mu.Unlock()
	if struck && s.at == "command" {
		<-s.over
	}
	return line
}

func (f *ftpRelay) answer(line []byte) []byte {
	if hangs := f.hangs("answer"); hangs != nil {
		<-hangs
	}
	text := string(line)
	var port int
	if before, _, found := strings.Cut(text, "(|||"); found && strings.HasPrefix(text, "229 ") {
		if _, err := fmt.Sscanf(text[len(before):], "(|||%d|)", &port); err == nil {
			return fmt.Appendf(nil, "%s(|||%d|)\r\n", before, f.dataPort(port))
		}
	}
	if stamp, found := strings.CutPrefix(text, "213 "); found {
		return []byte("213 " + f.stepped(strings.TrimSpace(stamp)) + "\r\n")
	}
	return line
}

// hangs returns the channel to wait for if an answer, or a data connection, has to hang now; else
// nil.
func (f *ftpRelay) hangs(what string) chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.stall.next || f.stall.at != what {
		return nil
	}
	f.stall.next = false
	return f.stall.over
}

// stepped returns the time of a file as the stepped clock would have shown it.
func (f *ftpRelay) stepped(stamp string) string {
	const form = "20060102150405"
	at, err := time.Parse(form, stamp)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil || f.step == 0 || at.Before(f.stepAt) {
		return stamp
	}
	return at.Add(f.step).Format(form)
}

// dataPort returns a port of the relay's own that passes one connection on to the server's port.
func (f *ftpRelay) dataPort(port int) int {
	here, _, _ := net.SplitHostPort(f.address())
	there, _, _ := net.SplitHostPort(f.to)
	l, err := net.Listen("tcp", here+":0")
	if err != nil {
		f.t.Error(err)
		return port
	}
	data := &relay{cable: f.cable, listener: l, to: net.JoinHostPort(there, itoa(port))}
	go func() {
		defer l.Close()
		_ = l.(*net.TCPListener).SetDeadline(time.Now().Add(helper.Patience)) // the client may never use the port
		in, err := l.Accept()
		if err != nil {
			return
		}
		if hangs := f.hangs("data"); hangs != nil {
			<-hangs
		}
		data.pass(in)
	}()
	return l.Addr().(*net.TCPAddr).Port
}
