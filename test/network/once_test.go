package network

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"adlock/test/support/helper"
)

// onceEver asks for ticks so long that none ends while a test runs.
const onceEver = "--once-per=520w"

// whatUsesATick checks which runs and denials use the tick, on two hosts of one store.
func whatUsesATick(t *testing.T, a, b *host) {
	t.Helper()
	owner := a.start(t, "sleep 60")
	b.run(t, "echo ran", onceEver).Denied(t)
	owner.Signal(t, syscall.SIGTERM)
	owner.Wait(t)
	if why := b.run(t, "", onceEver, "--dry-run"); why.Status != 0 || !strings.Contains(why.Out, "; not run yet in this tick of 520w, which began at ") {
		t.Errorf("busy has used the tick, or the dry run: %+v", why)
	}
	for range 2 {
		if r := a.run(t, "exit 3", onceEver, "--retry-failed"); r.Status != 3 {
			t.Errorf("a failed run that does not count: %+v", r)
		}
	}
	if r := a.run(t, "exit 3", onceEver); r.Status != 3 {
		t.Errorf("%+v", r)
	}
	b.run(t, "echo ran", onceEver).Denied(t)
	b.run(t, "echo ran", onceEver, "--wait=forever", "--wait-elapsed").Denied(t)
	if why := b.run(t, "", onceEver, "--dry-run"); why.Status != 75 || !strings.HasPrefix(why.Out, "too soon: ran already in this tick of 520w, which began at ") {
		t.Errorf("%+v", why)
	}
	b.wants(t, `"due_in_seconds":[1-9].*"takeable":false,"why":"too soon: ran already in this tick of 520w, which began at `, "status", "--json")
	b.run(t, "echo ran", "--once-per=1h").Ran(t)
	dead := a.start(t, "sleep 60", "--operand=y", onceEver)
	helper.KillSession(dead.PID)
	dead.Wait(t)
	b.run(t, "echo ran", "--operand=y", onceEver, "--wait=60s").Denied(t)
}

func TestOnlyARunThatCountsUsesATickOnEtcd(t *testing.T) {
	t.Parallel()
	s := url(startEtcd(t, 1)...)
	whatUsesATick(t, newHost(t, s), newHost(t, s))
}

func TestOnlyARunThatCountsUsesATickOnFTP(t *testing.T) {
	t.Parallel()
	f := startFTP(t, "")
	whatUsesATick(t, f.host(t), f.host(t))
}

func TestAClaimOfALaterTickOnFTPForgetsTheEarlier(t *testing.T) {
	t.Parallel()
	f := startFTP(t, "")
	h := f.host(t)
	for i := range 12 {
		h.run(t, "echo ran", "--once-per=1m", fmt.Sprint("--now=", 1700000000+60*i)).Ran(t)
	}
	if left, _ := filepath.Glob(f.root + "/tick.*"); len(left) != 10 {
		t.Errorf("the server has %v", left)
	}
}
