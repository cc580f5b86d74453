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
		for script, want := range map[string][]int{
			"trap 'exit 3' INT TERM; " + ready + "while :; do sleep 0.1; done": {3}, // it handles the signal
			"sleep 60": {130, 143}, // ended by INT, or by TERM, which comes a millisecond later
		} {
			const killed = 137 // soon after the others comes KILL: on a busy machine before the job has run
			status := killed
			for try := 0; status == killed && try < 10; try++ {
				owner := h.start(t, script)
				remove()
				status = owner.Wait(t)
				if strings.Count(owner.Output(), "\n") != 1 || !strings.Contains(owner.Output(), "lost") {
					t.Errorf("%s: said %q", script, owner.Output())
				}
			}
			if !slices.Contains(want, status) {
				t.Errorf("%s: status %d", script, status)
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
