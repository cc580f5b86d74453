package main

import (
	"errors"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"adlock/lib/atom"
	"adlock/lib/config"
	"adlock/lib/fault"
	"adlock/lib/locker"
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

func TestOnlyAMissingHolderCountsAsALostLock(t *testing.T) {
	for mode, want := range map[os.FileMode]fault.Kind{0o700: fault.Denied, 0o777: fault.NotPermitted} {
		dir := t.TempDir()
		must.Do(t, os.Chmod(dir, mode)) // a directory that others may change is refused
		_, err := release([]string{"--token", "feed", dir + "/smith.x"})
		_, again := release([]string{"--again", "--token", "feed", dir + "/smith.x"})
		kept := (&keeper{dir: dir}).release(locker.ReleaseRequest{Token: "feed"})
		if fault.KindOf(err) != want || fault.KindOf(kept) != want || (again == nil) != (want == fault.Denied) {
			t.Errorf("mode %o: %v, %v; again: %v", mode, err, kept, again)
		}
	}
	dir, socket := t.TempDir(), atom.HolderSocketName("feed")
	must.Do(t, os.Symlink(socket, dir+"/"+socket)) // it cannot be reached: it leads to itself
	if _, err := release([]string{"--token", "feed", dir + "/smith.x"}); !strings.HasPrefix(err.Error(), dir+"/smith.x: ") {
		t.Errorf("names no lock: %v", err)
	}
}
