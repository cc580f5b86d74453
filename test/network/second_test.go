//go:build soak

package network

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"adlock/test/support/helper"
)

// The tests of this file stand on a second in which the store has to answer.

func TestAWaiterThatIsEndedLeavesTheLine(t *testing.T) {
	t.Parallel()
	s := url(startEtcd(t, 1)...)
	a, b, c := newHost(t, s), newHost(t, s), newHost(t, s)
	owner := a.start(t, "sleep 60")
	listed := func(p *helper.Process) bool { return strings.Contains(a.verb(t, "status").Out, itoa(p.PID)+" on ") }
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		c := b.command("echo ran", "--wait=forever")
		c.Env = append(slices.Clip(c.Env), "ADLOCK_LEASE=10m")
		waiter := c.Start(t)
		helper.Eventually(t, "it waits", func() bool { return listed(waiter) })
		waiter.Signal(t, sig)
		if status := waiter.Wait(t); status != 128+int(sig) || waiter.Output() != "" {
			t.Errorf("%v: status %d: %s", sig, status, waiter.Output())
		}
		if listed(waiter) {
			t.Errorf("%v: its place is there", sig)
		}
	}
	stop(t, owner)
	if r := c.command("echo ran", "--wait=60s").Run(t); r.Status != 0 || r.Out != "ran\n" {
		t.Errorf("%+v", r)
	}
}

// Each of two newcomers could otherwise own the atom, in the cluster that it happens to reach.
func TestMembersOfTwoClustersRunNothing(t *testing.T) {
	t.Parallel()
	one, other := startEtcd(t, 1)[0], startEtcd(t, 1)[0]
	h := newHost(t, url(one, other))
	for _, asked := range []string{"--if-elapsed=0", "--dry-run"} {
		r := h.run(t, "echo ran", asked)
		if r.Status != 69 || r.Out != "" || strings.Count(r.Err, " is of cluster ") != 2 || !strings.Contains(r.Err, one.client+" is") || !strings.Contains(r.Err, other.client+" is") {
			t.Errorf("%s: %+v", asked, r)
		}
	}
	if r := newHost(t, url(other)).run(t, "echo ran", "--dry-run"); r.Status != 0 {
		t.Errorf("it has left something: %+v", r)
	}
}
