package main

import (
	"errors"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"adlock/lib/config"
	"adlock/test/support/must"
)

// A watchdog runs in the root directory.
func TestTheWatchdogGetsAnAbsoluteLogDirectory(t *testing.T) {
	t.Setenv("ADLOCK_LOGDIR", "logs")
	if rec, err := recorderIn(t.TempDir(), "h", nil); err != nil || !filepath.IsAbs(rec.Log.Dir) {
		t.Errorf("%+v, %v", rec.Log, err)
	}
}

func TestTheTableOfStoresHasExactlyTheKnownSchemes(t *testing.T) {
	if rows := slices.Sorted(maps.Keys(stores)); !slices.Equal(rows, config.Schemes) {
		t.Errorf("%v, want %v", rows, config.Schemes)
	}
}

// short is a listener whose process is out of descriptors at first.
type short struct {
	net.Listener
	failed bool
}

func (s *short) Accept() (net.Conn, error) {
	if !s.failed {
		s.failed = true
		return nil, errors.New("too many open files")
	}
	return s.Listener.Accept()
}

func TestASilentConnectionDoesNotBlockALaterRelease(t *testing.T) {
	h := &holder{leaseArgs: newLease(), socket: &short{Listener: must.Get(net.Listen("unix", t.TempDir()+"/socket"))(t)}}
	asked := make(chan bool, 1)
	go h.listen(asked)
	for _, says := range []string{"", `{"Status":3}`} {
		line := must.Get(net.Dial("unix", h.socket.Addr().String()))(t)
		defer line.Close()
		must.Get(line.Write([]byte(says)))(t)
	}
	select {
	case <-asked:
		if h.status.Value != 3 {
			t.Errorf("status %d", h.status.Value)
		}
	case <-time.After(time.Minute):
		t.Error("it hears nothing")
	}
}
