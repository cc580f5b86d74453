package network

import (
	"bytes"
	"net"
	"sync"
	"testing"
)

// relay passes connections on to a server, until it is cut: then nothing gets
// through, and nobody is told, as when a cable is pulled.
type relay struct {
	listener net.Listener
	to       string

	mu    sync.Mutex
	open  chan struct{} // closed while the relay passes
	until string        // once a client has said so, and it was passed on, the relay is cut
	all   []net.Conn
}

func newRelay(t testing.TB, to string) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{listener: l, to: to, open: make(chan struct{})}
	close(r.open)
	go r.serve()
	t.Cleanup(r.close)
	return r
}

func (r *relay) address() string { return r.listener.Addr().String() }

func (r *relay) serve() {
	for {
		in, err := r.listener.Accept()
		if err != nil {
			return
		}
		go r.pass(in)
	}
}

func (r *relay) pass(in net.Conn) {
	r.track(in)
	<-r.gate()
	out, err := net.Dial("tcp", r.to)
	if err != nil {
		in.Close()
		return
	}
	r.track(out)
	go r.copy(out, in)
	r.copy(in, out)
}

func (r *relay) copy(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		<-r.gate()
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
			r.hear(buffer[:n])
		}
		if err != nil {
			return
		}
	}
}

func (r *relay) hear(said []byte) {
	r.mu.Lock()
	heard := r.until != "" && bytes.Contains(said, []byte(r.until))
	if heard {
		r.until = ""
	}
	r.mu.Unlock()
	if heard {
		r.cut()
	}
}

func (r *relay) gate() chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.open
}

func (r *relay) track(c net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, c)
}

// cut lets nothing through until mend.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open = make(chan struct{})
}

func (r *relay) mend() {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.open)
}

// drop closes every connection there is.
func (r *relay) drop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.all {
		c.Close()
	}
	r.all = nil
}

func (r *relay) close() {
	r.listener.Close()
	r.drop()
	select {
	case <-r.gate():
	default:
		r.mend()
	}
}
