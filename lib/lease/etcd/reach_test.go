package etcd

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"adlock/lib/fault"
)

// listening returns the address of a port that is listened on until shut.
func listening(t *testing.T) (address string, shut func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().String(), func() { l.Close() }
}

func TestClosedPortsAreReportedAtOnce(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "")
	t.Setenv("https_proxy", "")
	one, shut := listening(t)
	shut()
	other, shut := listening(t)
	shut()
	began := time.Now()
	err := look(t, Scheme+one+","+other+"/prod")
	if fault.KindOf(err) != fault.Unavailable || !strings.Contains(err.Error(), ": connection refused") {
		t.Errorf("error %v", err)
	}
	if spent := time.Since(began); spent > 90*time.Second {
		t.Errorf("it took %v", spent)
	}
}

func look(t *testing.T, address string) error {
	t.Helper()
	s, err := Open(address)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	_, err = s.Look(ctx, "p.h.o.x", false)
	return err
}

func TestAMemberThatMayAnswerIsWaitedFor(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "")
	t.Setenv("https_proxy", "")
	closed, shut := listening(t)
	shut()
	silent, _ := listening(t)
	s, err := Open(Scheme + closed + "," + silent + "/prod")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	if _, err := s.Look(ctx, "p.h.o.x", false); ctx.Err() == nil || !strings.Contains(err.Error(), "no answer in time") {
		t.Errorf("too early: %v", err)
	}
}
