package network

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"adlock/lib/lease"
)

// A release whose answer is lost on its way is asked for again, and finds nothing to give
// back: that is no lost lock. Nor has one that was cleared in the same way changed hands.
func TestWhatWasCarriedOutAndNotAnsweredIsNotToldAsLost(t *testing.T) {
	nodes := startEtcd(t, 1)
	direct := newHost(t, url(nodes...))
	unanswered := func(r *relay, before func()) {
		t.Helper()
		r.cut(toClient)
		before()
		waitFor(t, "it is carried out", func() bool { return len(keysOf(t, nodes, "/adlock/p.shared.o.x/line/")) == 0 })
		r.drop()
		r.mend()
	}
	t.Run("release", func(t *testing.T) {
		r := newRelay(t, nodes[0].client)
		h := newHost(t, "etcd://"+r.address()+"/adlock")
		file := t.TempDir() + "/go"
		owner := h.start(t, "until [ -e '"+file+"' ]; do sleep 0.05; done")
		unanswered(r, func() {
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		})
		if status := owner.Wait(t); status != 0 || owner.Output() != "" {
			t.Errorf("%d: %q", status, owner.Output())
		}
		if log := h.runlog(); strings.Contains(log, "event=lost") || !strings.Contains(log, "event=release") {
			t.Error(log)
		}
		direct.run(t, "echo ran", "--if-elapsed=1h").Denied(t) // it is stamped
	})
	t.Run("clear", func(t *testing.T) {
		r := newRelay(t, nodes[0].client)
		s, record := open(t, "etcd://"+r.address()+"/adlock"), aRecord(t, false)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
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
