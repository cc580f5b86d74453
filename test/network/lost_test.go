package network

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"adlock/lib/lease"
	"adlock/test/support/helper"
	"adlock/test/support/must"
)

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
