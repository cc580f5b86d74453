package network

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"adlock/test/helper"
)

// TestCostBesideEtcdctl prints what acquire and release cost beside `etcdctl
// lock`, which does less: no record, no last lock, no guard. The bound is for a
// busy machine; the figure is for the reader.
func TestCostBesideEtcdctl(t *testing.T) {
	m := startEtcd(t, 1)[0]
	h := newHost(t, url(m))
	smith := filepath.Join(filepath.Dir(h.bin), "adlock-locksmith")
	ours := func() *exec.Cmd { return exec.Command(smith, "run", "--", "true") }
	theirs := func() *exec.Cmd { return exec.Command("etcdctl", "--endpoints", m.client, "lock", "bench", "true") }
	var us, them []time.Duration
	for n := range 40 {
		a, b := h.time(t, theirs()), h.time(t, ours())
		if n >= 5 { // warm
			them, us = append(them, a), append(us, b)
		}
	}
	ratio := float64(median(us)) / float64(median(them))
	t.Logf("acquire and release: %v; etcdctl lock: %v; ratio %.2f", median(us), median(them), ratio)
	if ratio > 3 {
		t.Errorf("%.2f times etcdctl lock", ratio)
	}
}

func (h *host) time(t testing.TB, command *exec.Cmd) time.Duration {
	t.Helper()
	command.Env = append(helper.Clean(), h.env...)
	command.Stderr = os.Stderr
	began := time.Now()
	if err := command.Run(); err != nil {
		t.Fatal(err)
	}
	return time.Since(began)
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2].Round(10 * time.Microsecond)
}
