//go:build soak

package network

import (
	"bufio"
	"context"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	ftpclient "github.com/jlaffaye/ftp"

	"adlock/test/support/helper"
)

// echo starts a server that sends every line back, and sends the lines it got to heard.
func echo(t *testing.T) (address string, heard chan string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	heard = make(chan string, 100)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				lines := bufio.NewScanner(conn)
				for lines.Scan() {
					heard <- lines.Text()
					_, _ = conn.Write([]byte(lines.Text() + "\n"))
				}
			}()
		}
	}()
	return l.Addr().String(), heard
}

func TestARelayThatIsCutOneWayCarriesTheOther(t *testing.T) {
	address, heard := echo(t)
	r := newRelay(t, address)
	conn, err := net.Dial("tcp", r.address())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	answers := bufio.NewReader(conn)
	say := func(word string) {
		if _, err := conn.Write([]byte(word + "\n")); err != nil {
			t.Fatal(err)
		}
	}
	say("one")
	if got, err := answers.ReadString('\n'); got != "one\n" {
		t.Fatal(got, err)
	}
	<-heard
	r.cut(toClient)
	say("two")
	if got := <-heard; got != "two" {
		t.Fatal(got)
	}
	_ = conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if got, err := answers.ReadString('\n'); err == nil {
		t.Errorf("%q came through", got)
	}
	_ = conn.SetReadDeadline(time.Time{})
	r.mend()
	if got, err := answers.ReadString('\n'); got != "two\n" {
		t.Fatal(got, err)
	}
	r.cut(toServer)
	say("three")
	select {
	case got := <-heard:
		t.Errorf("%q came through", got)
	case <-time.After(50 * time.Millisecond):
	}
}

func TestConnectionsThatAreLateOvertakeEachOther(t *testing.T) {
	address, heard := echo(t)
	r := newRelay(t, address)
	late := []time.Duration{2 * time.Second, 0}
	r.slow(func() time.Duration { d := late[0]; late = late[1:]; return d })
	for n, word := range []string{"first", "second"} {
		conn, err := net.Dial("tcp", r.address())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		helper.Eventually(t, "it is connected", func() bool {
			r.mu.Lock()
			defer r.mu.Unlock()
			return len(late) == 1-n
		})
		if _, err := conn.Write([]byte(word + "\n")); err != nil {
			t.Fatal(err)
		}
	}
	if one, other := <-heard, <-heard; one != "second" || other != "first" {
		t.Errorf("%s came before %s", one, other)
	}
}

func TestTheClockOfAnFTPServerStepsForWhatIsWrittenFromThenOn(t *testing.T) {
	f := startFTP(t, "")
	r := newFTPRelayAt(t, "127.0.0.1", f.address)
	conn := loggedIn(t, r.address())
	times := func(name string) time.Time {
		at, err := conn.GetTime("locks/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	store := func(name string) {
		if err := conn.Stor("locks/"+name, strings.NewReader("")); err != nil {
			t.Fatal(err)
		}
	}
	store("before")
	past := time.Now().Add(-10 * second)
	if err := os.Chtimes(f.root+"/before", past, past); err != nil {
		t.Fatal(err)
	}
	r.setClock(time.Hour)
	store("behind")
	if apart := times("behind").Sub(times("before")); apart < time.Hour || apart > time.Hour+helper.Patience {
		t.Errorf("%v apart", apart)
	}
}

func TestACommandOfAnFTPServerHangsUntilItIsOver(t *testing.T) {
	f := startFTP(t, "")
	r := newFTPRelayAt(t, "127.0.0.1", f.address)
	for _, what := range []string{"command", "answer", "data"} {
		conn := loggedIn(t, r.address())
		over := r.hang(1, what)
		done := make(chan error, 1)
		go func() { _, err := conn.NameList("locks"); done <- err }()
		select {
		case err := <-done:
			t.Errorf("%s: it did not hang: %v", what, err)
		case <-time.After(200 * time.Millisecond):
		}
		over()
		if err := <-done; err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func loggedIn(t *testing.T, address string) *ftpclient.ServerConn {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), helper.Patience)
	t.Cleanup(cancel)
	conn, err := ftpclient.Dial(address, ftpclient.DialWithContext(ctx))
	if err == nil {
		err = conn.Login("anonymous", "secret")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Quit() })
	return conn
}
