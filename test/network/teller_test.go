package network

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"adlock/test/support/helper"
)

// teller is a relay to an FTP server, also for its data connections. It can answer a command itself,
// keep files under other names, be slow, fall silent, stall a data connection, and make the
// server's clock step.
type teller struct {
	*relay
	t testing.TB

	mu       sync.Mutex
	answer   func(command string) string // its answer in place of the server's; "": the server answers
	named    func(name string) string    // the name under which the server keeps a file; nil: its own
	slow     time.Duration               // before each command
	silent   int                         // after so many more commands, this connection falls silent
	stalled  int                         // after so many more data connections, one stalls
	commands []string
	stepAt   time.Time // files written from then on have a time that differs by step
	step     time.Duration
}

// plenty is more commands than any test sends.
const plenty = 1 << 30

func newTeller(t testing.TB, f *ftpd) *teller {
	t.Helper()
	return newTellerAt(t, "127.0.0.1", f.Address)
}

func newTellerAt(t testing.TB, ip, to string) *teller {
	t.Helper()
	p := &teller{relay: newRelayAt(t, ip, to), t: t, silent: plenty, stalled: plenty}
	p.edit = func(client net.Conn) [2]func([]byte) []byte {
		var gone atomic.Bool // nothing gets through any more, and the client waits
		hear := func(line []byte) []byte {
			line, answer, passes := p.hear(line)
			if !passes {
				gone.Store(true)
			}
			if answer != "" && !gone.Load() {
				_, _ = io.WriteString(client, answer+"\r\n") // it may have gone
			}
			if answer != "" || gone.Load() {
				return nil
			}
			return line
		}
		speak := func(line []byte) []byte {
			if line = p.speak(line); gone.Load() {
				return nil
			}
			return line
		}
		return [2]func([]byte) []byte{hear, speak}
	}
	return p
}

func (p *teller) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

// setClock lets the server's clock step now.
func (p *teller) setClock(by time.Duration) {
	p.set(func() { p.stepAt, p.step = time.Now().Truncate(time.Second), by })
}

// answers makes the teller give this answer to each command that begins with this text.
func (p *teller) answers(begin, answer string) {
	p.set(func() {
		p.answer = func(command string) string {
			if strings.HasPrefix(command, begin) {
				return answer
			}
			return ""
		}
	})
}

// said counts the commands that begin with this text.
func (p *teller) said(begin string) (n int) {
	p.set(func() {
		for _, c := range p.commands {
			if strings.HasPrefix(c, begin) {
				n++
			}
		}
	})
	return n
}

// hear decides about a command.
func (p *teller) hear(line []byte) (passed []byte, answer string, passes bool) {
	command := strings.TrimRight(string(line), "\r\n")
	p.mu.Lock()
	p.commands = append(p.commands, command)
	if p.silent--; p.silent < 0 {
		p.silent = plenty
	} else {
		passes = true
	}
	if p.answer != nil {
		answer = p.answer(command)
	}
	slow, named := p.slow, p.named
	p.mu.Unlock()
	time.Sleep(slow)
	return renamedIn(line, named), answer, passes
}

// renamedIn returns the command with the names under which the server keeps the files.
func renamedIn(line []byte, named func(string) string) []byte {
	word, file, _ := strings.Cut(strings.TrimRight(string(line), "\r\n"), " ")
	if named == nil || !slices.Contains([]string{"MKD", "RMD", "STOR", "RETR", "DELE", "RNFR", "RNTO", "MDTM", "NLST"}, word) {
		return line
	}
	parts := strings.Split(file, "/")
	for i := range parts[1:] { // the first part is the directory of the locks
		parts[i+1] = named(parts[i+1])
	}
	return []byte(word + " " + strings.Join(parts, "/") + "\r\n")
}

// speak passes on an answer of the server.
func (p *teller) speak(line []byte) []byte {
	var port int
	if at := bytes.Index(line, []byte("(|||")); at >= 0 && bytes.HasPrefix(line, []byte("229 ")) {
		if _, err := fmt.Sscanf(string(line[at:]), "(|||%d|)", &port); err == nil {
			return fmt.Appendf(nil, "%s(|||%d|)\r\n", line[:at], p.dataPort(port))
		}
	}
	if stamp, found := strings.CutPrefix(string(line), "213 "); found {
		return []byte("213 " + p.stepped(strings.TrimSpace(stamp)) + "\r\n")
	}
	return line
}

// stepped returns the time of a file as the stepped clock would have shown it.
func (p *teller) stepped(stamp string) string {
	const form = "20060102150405"
	at, err := time.Parse(form, stamp)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil || at.Before(p.stepAt) {
		return stamp
	}
	return at.Add(p.step).Format(form)
}

// dataPort returns a port of the teller's own that passes one connection on to the server's port.
func (p *teller) dataPort(port int) int {
	here, _, _ := net.SplitHostPort(p.address())
	there, _, _ := net.SplitHostPort(p.to)
	l, err := net.Listen("tcp", here+":0")
	if err != nil {
		p.t.Error(err)
		return port
	}
	stalled := false
	p.set(func() {
		if p.stalled--; p.stalled < 0 {
			stalled, p.stalled = true, plenty
		}
	})
	data := &relay{cable: p.cable, listener: l, to: net.JoinHostPort(there, itoa(port))}
	go func() {
		defer l.Close()
		_ = l.(*net.TCPListener).SetDeadline(time.Now().Add(helper.Patience)) // the client may never use the port
		in, err := l.Accept()
		if err != nil {
			return
		}
		if p.track(in); !stalled {
			data.pass(in)
		}
	}()
	return l.Addr().(*net.TCPAddr).Port
}
