//go:build soak

package network

import (
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	ftpclient "github.com/jlaffaye/ftp"

	"adlock/test/support/helper"
)

func TestARelayThatIsCutOneWayCarriesTheOther(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	r := newRelay(t, server.Addr().String())
	passes := func(from, to net.Conn) bool {
		_, err := from.Write([]byte("x"))
		_ = to.SetReadDeadline(time.Now().Add(second / 2))
		n, _ := to.Read(make([]byte, 1))
		return err == nil && n > 0
	}
	for cut, want := range map[int][2]bool{toServer: {false, true}, toClient: {true, false}} {
		client, err := net.Dial("tcp", r.address())
		if err != nil {
			t.Fatal(err)
		}
		other, err := server.Accept()
		if err != nil {
			t.Fatal(err)
		}
		r.cut(cut)
		if got := [2]bool{passes(client, other), passes(other, client)}; got != want {
			t.Errorf("cut in direction %d: passes %v", cut, got)
		}
		r.mend()
		late := []net.Conn{other, client}[cut]
		_ = late.SetReadDeadline(time.Now().Add(helper.Patience))
		if n, err := late.Read(make([]byte, 1)); n != 1 {
			t.Errorf("cut in direction %d, and mended: %v", cut, err)
		}
		client.Close()
		other.Close()
	}
}

func loggedIn(t *testing.T, address string) *ftpclient.ServerConn {
	t.Helper()
	conn, err := ftpclient.Dial(address, ftpclient.DialWithContext(limited(t)))
	if err == nil {
		err = conn.Login("anonymous", "secret")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Quit() })
	return conn
}

func TestTheClockOfAnFTPServerStepsForWhatIsWrittenFromThenOn(t *testing.T) {
	f := startFTP(t, "")
	r := newTeller(t, f)
	conn := loggedIn(t, r.address())
	past := time.Now().Add(-10 * second)
	err := errors.Join(conn.Stor("locks/before", strings.NewReader("")), os.Chtimes(f.root+"/before", past, past))
	r.setClock(time.Hour)
	err = errors.Join(err, conn.Stor("locks/behind", strings.NewReader("")))
	before, failed := conn.GetTime("locks/before")
	behind, wrong := conn.GetTime("locks/behind")
	if err = errors.Join(err, failed, wrong); err != nil {
		t.Fatal(err)
	}
	if apart := behind.Sub(before); apart < time.Hour || apart > time.Hour+helper.Patience {
		t.Errorf("%v apart", apart)
	}
}

func TestACommandOfAnFTPServerHangsUntilItIsOver(t *testing.T) {
	r := newTeller(t, startFTP(t, ""))
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
