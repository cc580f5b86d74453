package network

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// The status of a run is its job's, even if the lock was lost meanwhile: standard error and the
// hook report that, and 75 would mean that the job did not run.
func TestARunWhoseLockWasLostHasItsJobsStatus(t *testing.T) {
	t.Parallel()
	lose := func(t *testing.T, h *host, remove func()) {
		h.env = append(h.env, "ADLOCK_LEASE=9s", "ADLOCK_PAUSE=10s") // on a busy machine the job needs time to handle the signal
		for script, want := range map[string][]int{
			"trap 'exit 3' INT TERM; " + ready + "while :; do sleep 0.1; done": {3}, // it handles the signal
			"sleep 60": {130, 143}, // ended by INT, or by TERM, which comes a millisecond later
		} {
			owner := h.start(t, script)
			remove()
			if status := owner.Wait(t); !slices.Contains(want, status) || strings.Count(owner.Output(), "\n") != 1 || !strings.Contains(owner.Output(), "lost") {
				t.Errorf("%s: status %d, said %q", script, status, owner.Output())
			}
		}
	}
	t.Run("etcd", func(t *testing.T) {
		nodes := startEtcd(t, 1)
		lose(t, newHost(t, url(nodes...)), func() { ctl(t, nodes, "del", "--prefix", "/adlock/p.shared.o.x/") })
	})
	t.Run("FTP", func(t *testing.T) {
		f := startFTP(t, "")
		lose(t, f.host(t), func() {
			left, err := os.ReadDir(f.root)
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range left {
				if err := os.RemoveAll(f.root + "/" + file.Name()); err != nil {
					t.Fatal(err)
				}
			}
		})
	})
}
