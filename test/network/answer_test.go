package network

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"adlock/lib/atom"
	"adlock/lib/lease"
	"adlock/lib/lease/ftp"
	"adlock/test/support/helper"
)

// A release whose answer was lost is repeated, and finds no lock: the lock was not lost. The
// same holds for a clear.
func TestAReleaseWithoutAnAnswerIsNotReportedAsLost(t *testing.T) {
	t.Parallel()
	nodes := startEtcd(t, 1)
	direct := newHost(t, url(nodes...))
	unanswered := func(r *relay, before func()) {
		t.Helper()
		r.cut(toClient)
		before()
		helper.Eventually(t, "it is carried out", func() bool { return len(keysOf(t, nodes, "/adlock/p.shared.o.x/line/")) == 0 })
		r.drop()
		r.mend()
	}
	t.Run("release", func(t *testing.T) {
		r := newRelay(t, nodes[0].client)
		h := newHost(t, "etcd://"+r.address()+"/adlock")
		file := t.TempDir() + "/go"
		owner := h.start(t, "until [ -e '"+file+"' ]; do sleep 0.05; done")
		unanswered(r, func() {
			touch(t, file)
		})
		endsWith(t, owner, 0, "")
		if log := h.runlog(); strings.Contains(log, "event=lost") || !strings.Contains(log, "event=release") {
			t.Error(log)
		}
		direct.run(t, "echo ran", "--if-elapsed=1h").Denied(t) // it is stamped
	})
	t.Run("clear", func(t *testing.T) {
		r := newRelay(t, nodes[0].client)
		s, record := open(t, "etcd://"+r.address()+"/adlock"), aRecord(t, false)
		ctx := limited(t)
		if _, _, err := s.Enter(ctx, "p.shared.o.x", record, time.Minute, true); err != nil {
			t.Fatal(err)
		}
		cleared := make(chan error, 1)
		unanswered(r, func() { go func() { cleared <- s.Remove(ctx, "p.shared.o.x", record.Token) }() })
		if err := <-cleared; err != nil {
			t.Error(err)
		}
		if err := s.Remove(ctx, "p.shared.o.x", record.Token); !errors.Is(err, lease.ErrGone) {
			t.Errorf("what is not there was removed: %v", err)
		}
	})
}

// A `tune --reset` whose answer was lost is repeated, and finds nothing to reset.
func TestAForgettingThatWasCarriedOutAndNotAnsweredSucceeds(t *testing.T) {
	t.Parallel()
	forgets := func(t *testing.T, s lease.Store, r *relay, done func() bool, h *host) {
		t.Helper()
		carriedOut(t, r, done, func() error { return (&lease.Locker{Store: s, Question: helper.Patience}).Forget("p.shared.o.x") })
		h.explains(t, "ExpireAfter never: 0 successful runs", "--expire-after=auto")
		h.run(t, "echo ran", "--if-elapsed=1h").Denied(t) // nothing has completed
		h.run(t, "echo ran").Ran(t)
	}
	t.Run("etcd", func(t *testing.T) {
		nodes := startEtcd(t, 1)
		direct := newHost(t, url(nodes...))
		direct.taught(t)
		r := newRelay(t, nodes[0].client)
		s := &leftUnder{Store: open(t, "etcd://"+r.address()+"/adlock"), trouble: func() { r.cut(toClient) }}
		forgets(t, s, r, func() bool { return s.left.Load() && len(keysOf(t, nodes, "/adlock/p.shared.o.x/line/")) == 0 }, direct)
	})
	t.Run("ftp", func(t *testing.T) {
		f := startFTP(t, "")
		direct := f.host(t)
		direct.taught(t)
		s, r := f.unanswered(t, "/released")
		forgets(t, s, r, func() bool { return exists(f.root + "/lock.p.shared.o.x.6/released") }, direct)
	})
}

// carriedOut lets answers through again once the request was carried out, and fails the test if the
// request fails.
func carriedOut(t *testing.T, r *relay, done func() bool, ask func() error) {
	t.Helper()
	asked := make(chan error, 1)
	go func() { asked <- ask() }()
	helper.Eventually(t, "it is carried out", func() bool { return done() || len(asked) > 0 })
	r.drop()
	r.mend()
	if err := <-asked; err != nil {
		t.Error(err)
	}
}

// unanswered returns the store through a relay that drops all that the server sends after a rename
// to that name.
func (f *ftpd) unanswered(t *testing.T, name string) (*ftp.Store, *relay) {
	r := newRelay(t, f.address)
	commands := func(line []byte) []byte {
		if bytes.HasPrefix(line, []byte("RNTO ")) && bytes.HasSuffix(line, []byte(name+"\r\n")) {
			r.cut(toClient)
		}
		return line
	}
	r.edit = func(net.Conn) [2]func([]byte) []byte { return [2]func([]byte) []byte{toServer: commands} }
	return openFTP(t, r.address()), r
}

// leftUnder is a store that calls trouble when a process first leaves its place.
type leftUnder struct {
	lease.Store
	trouble func()
	left    atomic.Bool
}

func (s *leftUnder) Enter(ctx context.Context, name atom.Name, r lease.Record, length time.Duration, line bool) (lease.Place, lease.Snapshot, error) {
	p, seen, err := s.Store.Enter(ctx, name, r, length, line)
	return placeUnder{p, s}, seen, err
}

type placeUnder struct {
	lease.Place
	*leftUnder
}

func (p placeUnder) Leave(ctx context.Context, stamp *lease.Last) error {
	if p.left.CompareAndSwap(false, true) {
		p.trouble()
	}
	return p.Place.Leave(ctx, stamp)
}
