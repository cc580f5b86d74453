package network

import (
	"bytes"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"adlock/lib/lease"
	"adlock/lib/lease/ftp"
	"adlock/test/support/helper"
	"adlock/test/support/must"
	"adlock/test/support/relay"
)

// If the answer to a release is lost, the release is repeated and finds no lock. That does not mean that the
// lock was lost. The same holds for a clear.
func TestAReleaseOrClearWithoutAnAnswerIsNotReportedAsLost(t *testing.T) {
	t.Parallel()
	nodes := startEtcd(t, 1)
	r := relay.New(t, nodes[0].Client)
	store := "etcd://" + r.Address() + "/adlock"
	gone := func() bool { return len(keysOf(t, nodes, "/adlock/p.shared.o.x/line/")) == 0 }
	t.Run("release", func(t *testing.T) {
		h := newHost(t, store)
		file := t.TempDir() + "/go"
		owner := h.start(t, until(file))
		r.Cut(relay.ToClient)
		carriedOut(t, r, gone, func() error {
			touch(t, file)
			endsWith(t, owner, 0, "")
			return nil
		})
		if log := h.runlog(); strings.Contains(log, "event=lost") || !strings.Contains(log, "event=release") {
			t.Error(log)
		}
		newHost(t, url(nodes...)).run(t, "echo ran", "--if-elapsed=1h").Denied(t) // it is stamped
	})
	t.Run("clear", func(t *testing.T) {
		s, record, ctx := open(t, store), aRecord(t, false), limited(t)
		_, _, err := s.Enter(ctx, "p.shared.o.x", record, true)
		must.Do(t, err)
		r.Cut(relay.ToClient)
		carriedOut(t, r, gone, func() error { return s.Remove(ctx, "p.shared.o.x", record.Token) })
		if err := s.Remove(ctx, "p.shared.o.x", record.Token); !errors.Is(err, lease.ErrGone) {
			t.Errorf("what is not there was removed: %v", err)
		}
	})
}

func TestForgettingLimitsSucceedsIfOnlyItsAnswerIsLost(t *testing.T) {
	t.Parallel()
	f := startFTP(t, "")
	h := f.host(t)
	h.taught(t)
	s, r := f.unanswered(t, "/released")
	carriedOut(t, r, func() bool { return exists(f.Root + "/lock.p.shared.o.x.6/released") }, func() error {
		return (&lease.Locker{Store: s, Lease: helper.Patience}).Forget("p.shared.o.x")
	})
	h.explains(t, "ExpireAfter never: 0 successful runs", "--expire-after=auto")
	h.run(t, "echo ran", "--if-elapsed=1h").Denied(t) // nothing has completed
	h.run(t, "echo ran").Ran(t)
}

// carriedOut waits until the request was carried out without an answer, and lets answers through again. It
// fails the test if the request fails.
func carriedOut(t *testing.T, r *relay.Relay, done func() bool, ask func() error) {
	t.Helper()
	asked := make(chan error, 1)
	go func() { asked <- ask() }()
	helper.Eventually(t, "it is carried out", func() bool { return done() || len(asked) > 0 })
	if len(asked) > 0 {
		t.Error("it was answered")
	}
	r.Drop()
	r.Mend()
	must.Do(t, <-asked)
}

// unanswered returns the store through a relay that drops all that the server sends after a rename to that name.
func (f *ftpd) unanswered(t *testing.T, name string) (*ftp.Store, *relay.Relay) {
	r := relay.New(t, f.Address)
	commands := func(line []byte) []byte {
		if bytes.HasPrefix(line, []byte("RNTO ")) && bytes.HasSuffix(line, []byte(name+"\r\n")) {
			r.Cut(relay.ToClient)
		}
		return line
	}
	r.Edit = func(net.Conn) [2]func([]byte) []byte { return [2]func([]byte) []byte{relay.ToServer: commands} }
	return openFTP(t, r.Address()), r
}

// A run ends with its job's status even if the lock was lost meanwhile. Standard error and the hook report
// the loss; 75 would mean that the job did not run.
func TestARunWhoseLockWasLostHasItsJobsStatus(t *testing.T) {
	t.Parallel()
	lose := func(t *testing.T, owner *helper.Process, remove func(), want ...int) {
		t.Helper()
		remove()
		status, said := owner.Wait(t), owner.Said()
		if !slices.Contains(want, status) || strings.Count(said, "\n") != 1 || !strings.HasPrefix(said, "adlock: o x: lost: the lease is gone") {
			t.Errorf("status %d, want one of %v: said %q", status, want, said)
		}
	}
	const handles = "trap 'exit 3' INT TERM; " + ready + "while :; do sleep 0.1; done"
	t.Run("etcd", func(t *testing.T) {
		nodes := startEtcd(t, 1)
		remove := func() { ctl(t, nodes, "del", "--prefix", "/adlock/p.shared.o.x/") }
		// KILL comes soon after INT and TERM, perhaps before the job has run.
		lose(t, newHost(t, url(nodes...)).start(t, handles), remove, 3, 137)
		lose(t, newHost(t, url(nodes...)).start(t, "sleep 60"), remove, 130, 143, 137)
	})
	t.Run("FTP", func(t *testing.T) {
		f := startFTP(t, "")
		remove := func() {
			for _, file := range globbed(t, f.Root+"/*") {
				must.Do(t, os.RemoveAll(file))
			}
		}
		lose(t, f.host(t).leased(lease.DefaultLease).start(t, handles), remove, 3, 137)
		end := filepath.Join(t.TempDir(), "end")
		lose(t, f.host(t).start(t, until(end)+"exit 3"), func() { // long before the next renewal
			remove()
			touch(t, end)
		}, 3)
	})
}
