package network

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"adlock/test/support/helper"
)

// teller is a proxy between hosts and an FTP server. It can answer a command itself, be slow, fall
// silent, stall a data connection, and make the server's clock step.
type teller struct {
	listener net.Listener
	to       string

	mu       sync.Mutex
	answer   func(command string) string // its answer in place of the server's; "": the server answers
	named    func(name string) string    // the name under which the server keeps a file; nil: its own
	slow     time.Duration               // before each command
	silent   int                         // after so many more commands, this connection falls silent
	stalled  int                         // after so many more data connections, one stalls
	clock    time.Duration               // how far the server's clock is ahead
	stored   map[string]time.Duration    // by file: how far it was ahead when the file was stored
	commands []string
	open     []net.Conn
}

// plenty is more commands than any test sends.
const plenty = 1 << 30

func newTeller(t testing.TB, f *ftpd) *teller {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &teller{listener: l, to: f.address, silent: plenty, stalled: plenty, stored: map[string]time.Duration{}}
	go p.serve()
	t.Cleanup(func() {
		l.Close()
		p.set(func() {
			for _, c := range p.open {
				c.Close()
			}
		})
	})
	return p
}

func (p *teller) address() string { return p.listener.Addr().String() }

func (p *teller) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
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

func (p *teller) serve() {
	for {
		in, err := p.listener.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", p.to)
		if err != nil {
			in.Close()
			continue
		}
		s := &control{teller: p, in: in, out: out}
		p.set(func() { p.open = append(p.open, in, out) })
		go s.listen()
		go s.speak()
	}
}

// control is one control connection.
type control struct {
	*teller
	in, out net.Conn
	renamed string // the file of the last RNFR

	mu   sync.Mutex
	last string // the command that the server answers now
	gone bool   // nothing gets through any more
}

// listen passes on the client's commands.
func (s *control) listen() {
	defer s.out.Close()
	lines := bufio.NewReader(s.in)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		command := strings.TrimRight(line, "\r\n")
		answer, pass := s.hear(command)
		s.mu.Lock()
		s.last = command
		s.gone = s.gone || !pass
		gone := s.gone
		s.mu.Unlock()
		switch {
		case gone: // and the client waits
		case answer != "":
			_, err = io.WriteString(s.in, answer+"\r\n")
		default:
			_, err = io.WriteString(s.out, s.renamedIn(line))
		}
		if err != nil {
			return
		}
	}
}

// hear decides about a command.
func (s *control) hear(command string) (answer string, pass bool) {
	var slow time.Duration
	s.set(func() {
		s.commands = append(s.commands, command)
		if pass = s.silent != 0; pass {
			s.silent--
		} else {
			s.silent = plenty
		}
		if s.answer != nil {
			answer = s.answer(command)
		}
		switch word, file, _ := strings.Cut(command, " "); word {
		case "STOR":
			s.stored[file] = s.clock
		case "RNFR":
			s.renamed = file
		case "RNTO":
			s.stored[file] = s.stored[s.renamed]
		}
		slow = s.slow
	})
	time.Sleep(slow)
	return answer, pass
}

// renamedIn returns the command with the names under which the server keeps the files.
func (s *control) renamedIn(line string) string {
	var named func(string) string
	s.set(func() { named = s.named })
	word, file, _ := strings.Cut(strings.TrimRight(line, "\r\n"), " ")
	if named == nil || !slices.Contains([]string{"MKD", "RMD", "STOR", "RETR", "DELE", "RNFR", "RNTO", "MDTM", "NLST"}, word) {
		return line
	}
	parts := strings.Split(file, "/")
	for i := range parts[1:] { // the first part is the directory of the locks
		parts[i+1] = named(parts[i+1])
	}
	return word + " " + strings.Join(parts, "/") + "\r\n"
}

var passivePort = regexp.MustCompile(`\|\|\|(\d+)\|`)

// speak passes on the server's answers.
func (s *control) speak() {
	defer s.in.Close()
	lines := bufio.NewReader(s.out)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		s.mu.Lock()
		last, gone := s.last, s.gone
		s.mu.Unlock()
		if port := passivePort.FindStringSubmatch(line); port != nil {
			line = strings.Replace(line, port[1], s.between(port[1]), 1)
		}
		if file, asked := strings.CutPrefix(last, "MDTM "); asked && strings.HasPrefix(line, "213 ") {
			line = s.shifted(file, line)
		}
		if gone {
			continue
		}
		if _, err := io.WriteString(s.in, line); err != nil {
			return
		}
	}
}

// shifted returns the answer to MDTM by the clock that the server had when the file was stored.
func (s *control) shifted(file, line string) string {
	const layout = "20060102150405"
	at, err := time.Parse(layout, strings.TrimSpace(line[4:]))
	if err != nil {
		return line
	}
	s.set(func() { at = at.Add(s.stored[file]) })
	return "213 " + at.Format(layout) + "\r\n"
}

// between opens a port that passes one data connection on to the server's port.
func (s *control) between(port string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return port
	}
	stalled := false
	s.set(func() {
		if stalled = s.stalled == 0; stalled {
			s.stalled = plenty
		} else {
			s.stalled--
		}
	})
	go func() {
		defer l.Close()
		_ = l.(*net.TCPListener).SetDeadline(time.Now().Add(helper.Patience)) // the client may never use the port
		in, err := l.Accept()
		if err != nil {
			return
		}
		host, _, _ := net.SplitHostPort(s.to)
		out, err := net.Dial("tcp", net.JoinHostPort(host, port))
		if err != nil {
			in.Close()
			return
		}
		s.set(func() { s.open = append(s.open, in, out) })
		if stalled {
			return
		}
		go pour(out, in)
		pour(in, out)
	}()
	return fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
}

// pour copies all bytes, and the end of the stream.
func pour(to, from net.Conn) {
	_, _ = io.Copy(to, from) // either may be gone
	_ = to.(*net.TCPConn).CloseWrite()
}
