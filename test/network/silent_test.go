//go:build soak

package network

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"adlock/test/support/helper"
)

// signal sends the signal to the server and its session processes.
func (f *ftpd) signal(t testing.TB, sig syscall.Signal) {
	t.Helper()
	for range 2 { // the server may have started another process meanwhile
		for _, pid := range helper.With(f.mark()) {
			_ = syscall.Kill(pid, sig) // it may have ended
		}
	}
}

// If a store is silent, run gives up after --wait, one more question (five seconds) and the attempt
// to leave its place (one).
func TestAWaitForASilentStoreEndsWhenItsTimeIsUp(t *testing.T) {
	waits := func(t *testing.T, h *host, send func(testing.TB, syscall.Signal), inLine bool) {
		t.Parallel()
		h.start(t, "sleep 60")
		if !inLine {
			send(t, syscall.SIGSTOP)
		}
		began := time.Now()
		waiter := h.command("echo ran", "--wait=8s").Start(t)
		if inLine {
			helper.Eventually(t, "it waits", func() bool { return strings.Contains(h.runlog(), "event=wait") })
			send(t, syscall.SIGSTOP)
		}
		status := waiter.Wait(t)
		took := time.Since(began).Round(100 * time.Millisecond)
		send(t, syscall.SIGCONT)
		if said := waiter.Output(); status != 69 || took > 24*time.Second || !strings.Contains(said, "no answer in time") || strings.Count(said, "\n") != 1 {
			t.Errorf("status %d after %v: %s", status, took, said)
		}
	}
	for _, inLine := range []bool{false, true} {
		t.Run(fmt.Sprint("etcd, in line already: ", inLine), func(t *testing.T) {
			m := startEtcd(t, 1)[0]
			waits(t, newHost(t, url(m)).leased(15*time.Second), m.signal, inLine)
		})
		t.Run(fmt.Sprint("FTP, in line already: ", inLine), func(t *testing.T) {
			f := startFTP(t, "")
			waits(t, f.host(t).leased(15*time.Second), f.signal, inLine)
		})
	}
}
