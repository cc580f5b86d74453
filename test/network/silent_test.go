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
	for _, pid := range helper.With(f.mark()) {
		if err := syscall.Kill(pid, sig); err != nil && err != syscall.ESRCH {
			t.Fatal(err)
		}
	}
}

// If a store is silent, run gives up after --wait, one more question (five seconds) and the attempt
// to leave its place (one).
func TestAWaitForASilentStoreEndsWhenItsTimeIsUp(t *testing.T) {
	waits := func(t *testing.T, h *host, stop func(syscall.Signal), whenWaiting bool) {
		if !whenWaiting {
			stop(syscall.SIGSTOP)
		}
		began := time.Now()
		waiter := h.command("echo ran", "--wait=8s").Start(t)
		if whenWaiting {
			time.Sleep(2 * time.Second) // it is in line by now
			stop(syscall.SIGSTOP)
		}
		status := waiter.Wait(t)
		took := time.Since(began).Round(100 * time.Millisecond)
		stop(syscall.SIGCONT)
		t.Logf("%d after %v: %s", status, took, waiter.Output())
		if status != 69 || took > 24*time.Second || !strings.Contains(waiter.Output(), "no answer in time") || strings.Count(waiter.Output(), "\n") != 1 {
			t.Errorf("status %d after %v: %s", status, took, waiter.Output())
		}
	}
	for _, whenWaiting := range []bool{false, true} {
		t.Run(fmt.Sprint("etcd, waiting already: ", whenWaiting), func(t *testing.T) {
			t.Parallel()
			m := startEtcd(t, 1)[0]
			a, b := newHost(t, url(m)).brief(), newHost(t, url(m)).brief()
			b.env = append(b.env, "ADLOCK_LEASE=15s")
			a.start(t, "sleep 60")
			waits(t, b, func(s syscall.Signal) { m.signal(t, s) }, whenWaiting)
		})
		t.Run(fmt.Sprint("FTP, waiting already: ", whenWaiting), func(t *testing.T) {
			t.Parallel()
			f := startFTP(t, "")
			a, b := f.host(t).brief(), f.host(t).brief()
			b.env = append(b.env, "ADLOCK_LEASE=15s")
			a.start(t, "sleep 60")
			waits(t, b, func(s syscall.Signal) { f.signal(t, s) }, whenWaiting)
		})
	}
}
