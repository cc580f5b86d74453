// Package relay carries connections between clients and servers, and disturbs them: a network that tests can
// cut, delay and change.
package relay

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// The two directions of a cable.
const (
	ToServer = iota
	ToClient
)

// Cable carries connections. It can be cut, in both directions or one: then nothing gets
// through, and neither end notices, as with a pulled cable.
type Cable struct {
	mu    sync.Mutex
	gates [2]chan struct{}     // each closed while bytes pass that way
	delay func() time.Duration // drawn for each connection; nil: none
	all   []net.Conn
}

// NewCable returns a cable that is whole.
func NewCable() *Cable {
	c := &Cable{gates: [2]chan struct{}{make(chan struct{}), make(chan struct{})}}
	close(c.gates[ToServer])
	close(c.gates[ToClient])
	return c
}

func (c *Cable) gate(way int) chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gates[way]
}

// Cut blocks these directions (none given: both) until mend.
func (c *Cable) Cut(ways ...int) {
	if len(ways) == 0 {
		ways = []int{ToServer, ToClient}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, way := range ways {
		if isClosed(c.gates[way]) {
			c.gates[way] = make(chan struct{})
		}
	}
}

// Mend lets all through again.
func (c *Cable) Mend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, gate := range c.gates {
		if !isClosed(gate) {
			close(gate)
		}
	}
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Slow delays what later connections carry, each by a time of its own, so that one connection's
// data may overtake another's. nil: no delay.
func (c *Cable) Slow(delay func() time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.delay = delay
}

// Drop closes all connections.
func (c *Cable) Drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.all {
		conn.Close()
	}
	c.all = nil
}

func (c *Cable) track(conns ...net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, conns...)
}

// carry carries a connection; the bytes in read were read from it already. Each piece passes
// through edit (nil: unchanged).
func (c *Cable) carry(in, out net.Conn, read []byte, edit [2]func([]byte) []byte) {
	c.mu.Lock()
	delay := time.Duration(0)
	if c.delay != nil {
		delay = c.delay()
	}
	c.mu.Unlock()
	go c.carryOneWay(out, in, ToServer, delay, read, edit[ToServer])
	c.carryOneWay(in, out, ToClient, delay, nil, edit[ToClient])
}

// piece is the result of one read, and when to write it.
type piece struct {
	bytes []byte
	at    time.Time
}

func (c *Cable) carryOneWay(to, from net.Conn, way int, delay time.Duration, read []byte, edit func([]byte) []byte) {
	defer to.Close()
	defer from.Close()
	pieces := make(chan piece, 1024)
	go func() {
		defer close(pieces)
		source := bufio.NewReader(io.MultiReader(bytes.NewReader(read), from))
		for {
			bytes, err := nextPiece(source, edit != nil)
			if len(bytes) > 0 {
				pieces <- piece{bytes, time.Now().Add(delay)}
			}
			if err != nil {
				return
			}
		}
	}()
	for p := range pieces {
		time.Sleep(time.Until(p.at))
		if edit != nil {
			p.bytes = edit(p.bytes)
		}
		<-c.gate(way)
		if _, err := to.Write(p.bytes); err != nil {
			from.Close() // so that the reader ends
			for range pieces {
			}
			return
		}
	}
}

// nextPiece reads a line, or whatever there is.
func nextPiece(source *bufio.Reader, line bool) ([]byte, error) {
	if line {
		return source.ReadBytes('\n')
	}
	buffer := make([]byte, 32<<10)
	n, err := source.Read(buffer)
	return buffer[:n], err
}

// Relay passes the connections that it accepts on to a server.
type Relay struct {
	*Cable
	listener net.Listener
	to       string

	// Sort returns the cable for a connection by the first bytes of its client; nil: the relay has
	// only one cable.
	Sort func(first []byte) *Cable

	// Edit returns the filters for the lines of a new connection of the client; nil: they pass unread.
	Edit func(client net.Conn) [2]func([]byte) []byte
}

// New starts a relay on the loopback to the server at an address.
func New(t testing.TB, to string) *Relay {
	t.Helper()
	return NewAt(t, "127.0.0.1", to)
}

// NewAt is New on another IP address.
func NewAt(t testing.TB, ip, to string) *Relay {
	t.Helper()
	l, err := net.Listen("tcp", ip+":0")
	if err != nil {
		t.Fatal(err)
	}
	r := &Relay{Cable: NewCable(), listener: l, to: to}
	go r.serve()
	t.Cleanup(r.close)
	return r
}

// Address is where the relay listens.
func (r *Relay) Address() string { return r.listener.Addr().String() }

func (r *Relay) serve() {
	for {
		in, err := r.listener.Accept()
		if err != nil {
			return
		}
		go r.pass(in)
	}
}

func (r *Relay) pass(in net.Conn) {
	r.track(in)
	line, first := r.Cable, []byte(nil)
	if r.Sort != nil {
		first = make([]byte, 32<<10)
		n, err := in.Read(first)
		if err != nil {
			in.Close()
			return
		}
		first = first[:n]
		line = r.Sort(first)
	}
	<-line.gate(ToServer)
	out, err := net.Dial("tcp", r.to)
	if err != nil {
		in.Close()
		return
	}
	line.track(in, out)
	var edit [2]func([]byte) []byte
	if r.Edit != nil {
		edit = r.Edit(in)
	}
	line.carry(in, out, first, edit)
}

func (r *Relay) close() {
	r.listener.Close()
	r.Drop()
	r.Mend()
}
