package relay

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"adlock/test/support/helper"
)

// Teller is a relay to an FTP server, also for its data connections. It can answer a command itself,
// keep files under other names, be slow, fall silent, stall a data connection, and make the
// server's clock step.
type Teller struct {
	*Relay
	t testing.TB

	mu       sync.Mutex
	Answer   func(command string) string // its answer in place of the server's; "": the server answers
	Named    func(name string) string    // the name under which the server keeps a file; nil: its own
	Delay    time.Duration               // before each command
	Silent   int                         // after so many more commands, this connection falls silent
	Stalled  int                         // after so many more data connections, one stalls
	commands []string
	stepAt   time.Time // files written from then on have a time that differs by step
	step     time.Duration
}

// plenty is more commands than any test sends.
const plenty = 1 << 30

// NewTeller starts a teller on an IP address to the FTP server at an address.
func NewTeller(t testing.TB, ip, to string) *Teller {
	t.Helper()
	p := &Teller{Relay: NewAt(t, ip, to), t: t, Silent: plenty, Stalled: plenty}
	p.Edit = func(client net.Conn) [2]func([]byte) []byte {
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

// Set changes the fields while connections are open.
func (p *Teller) Set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

// SetClock lets the server's clock step now.
func (p *Teller) SetClock(by time.Duration) {
	p.Set(func() { p.stepAt, p.step = time.Now().Truncate(time.Second), by })
}

// Answers makes the teller give this answer to each command that begins with this text.
func (p *Teller) Answers(begin, answer string) {
	p.Set(func() {
		p.Answer = func(command string) string {
			if strings.HasPrefix(command, begin) {
				return answer
			}
			return ""
		}
	})
}

// Said counts the commands that begin with this text.
func (p *Teller) Said(begin string) (n int) {
	p.Set(func() {
		for _, c := range p.commands {
			if strings.HasPrefix(c, begin) {
				n++
			}
		}
	})
	return n
}

// hear decides about a command.
func (p *Teller) hear(line []byte) (passed []byte, answer string, passes bool) {
	command := strings.TrimRight(string(line), "\r\n")
	p.mu.Lock()
	p.commands = append(p.commands, command)
	if p.Silent--; p.Silent < 0 {
		p.Silent = plenty
	} else {
		passes = true
	}
	if p.Answer != nil {
		answer = p.Answer(command)
	}
	slow, named := p.Delay, p.Named
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
func (p *Teller) speak(line []byte) []byte {
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
func (p *Teller) stepped(stamp string) string {
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
func (p *Teller) dataPort(port int) int {
	here, _, _ := net.SplitHostPort(p.Address())
	there, _, _ := net.SplitHostPort(p.to)
	l, err := net.Listen("tcp", here+":0")
	if err != nil {
		p.t.Error(err)
		return port
	}
	stalled := false
	p.Set(func() {
		if p.Stalled--; p.Stalled < 0 {
			stalled, p.Stalled = true, plenty
		}
	})
	data := &Relay{Cable: p.Cable, listener: l, to: net.JoinHostPort(there, strconv.Itoa(port))}
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
