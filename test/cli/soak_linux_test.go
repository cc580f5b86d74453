//go:build soak

package cli

import (
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"adlock/test/support/helper"
	"adlock/test/support/need"
)

func TestAHandOverWakesNoneOf900OtherWaiters(t *testing.T) { wakesNoOther(t, 100, 900) }

// Ten samples of each are compared, as two equally fair queues differ by chance: one of them has the
// wider shares in at least 90 of the 100 pairs once in 1,300 runs (Mann and Whitney, 1947).
func TestManyContendersShareTheAtomAsEvenlyAsWithFlock(t *testing.T) {
	need.Tools(t, "flock")
	s := newStage(t)
	// Each asks whether another is within, and leaves a mark if so.
	job := []string{"sh", "-c", "cd '" + s.dir + "' && mkdir within || : >two; rmdir within"}
	const samples, most = 10, 89
	var flock, adlock []int
	for range samples {
		flock = append(flock, s.width(append([]string{"flock", s.in("file")}, job...)))
		adlock = append(adlock, s.width(append([]string{helper.Binary(t), "run", "--name", "a", "--wait", "forever"}, job...)))
	}
	wider := 0
	for _, a := range adlock {
		for _, f := range flock {
			if a > f {
				wider++
			}
		}
	}
	t.Logf("the widths of the shares: %v, with flock %v", adlock, flock)
	if wider > most {
		t.Errorf("the shares are wider than with flock in %d of %d pairs of samples", wider, samples*samples)
	}
	helper.Absent(t, s.in("two"))
}

// width lets 64 contenders take 1,000 turns, and returns the sum of the squares of what each has got:
// it is least where all have the same share.
func (s *stage) width(words []string) (squares int) {
	const contenders, turns = 64, 1000
	var turn atomic.Int64
	got := make([]int, contenders)
	var all sync.WaitGroup
	for n := range got {
		all.Go(func() {
			for turn.Add(1) <= turns {
				c := exec.Command(words[0], words[1:]...)
				c.Env = append(os.Environ(), "ADLOCK_DIR="+s.locks)
				if out, err := c.CombinedOutput(); err != nil {
					s.Errorf("%v: %s", err, out)
					return
				}
				got[n]++
			}
		})
	}
	all.Wait()
	for _, n := range got {
		squares += n * n
	}
	return squares
}

// The Go runtime's handler ends a process in several steps, the last of them a tgkill(2), while the
// other threads go on. Here they may go on for long.
func TestASignalWhoseHandlerIsSlowLeavesNoJob(t *testing.T) {
	need.Tools(t, "strace")
	signalsAtInstants(t, unix.SIGTERM, func(*helper.Process) bool { return true }, 80,
		"strace", "-D", "-f", "-qq", "-o", "/dev/null", "-e", "trace=tgkill", "-e", "inject=tgkill:delay_enter=100000")
}
