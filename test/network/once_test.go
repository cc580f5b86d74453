package network

import (
	"strings"
	"testing"

	"adlock/test/support/helper"
)

func TestOnlyARunThatCountsUsesATick(t *testing.T) {
	t.Parallel()
	const ever = "--once-per=520w" // no such tick ends while a test runs
	a, b := onEtcd(t)
	owner := a.start(t, "sleep 60")
	b.run(t, "echo ran", ever).Denied(t)
	stop(t, owner)
	if why := b.run(t, "", ever, "--dry-run"); why.Status != 0 || !strings.Contains(why.Out, "; not run yet in this tick of 520w, which began at ") {
		t.Errorf("busy has used the tick, or the dry run: %+v", why)
	}
	for range 2 {
		a.run(t, "exit 3", ever, "--retry-failed").Is(t, 3, "…", "…") // it does not count
	}
	a.run(t, "exit 3", ever).Is(t, 3, "…", "…")
	b.run(t, "echo ran", ever).Denied(t)
	b.run(t, "echo ran", ever, "--wait=forever", "--wait-elapsed").Denied(t)
	const used = `too soon: ran already in this tick of 520w, which began at `
	b.explains(t, "^"+used, ever)
	b.wants(t, `"due_in_seconds":[1-9].*"takeable":false,"why":"`+used, "status", "--json")
	b.run(t, "echo ran", "--once-per=1h").Ran(t)
	dead := a.start(t, "sleep 60", "--operand=y", ever)
	helper.KillSession(dead.PID)
	dead.Wait(t)
	b.run(t, "echo ran", "--operand=y", ever, "--wait=60s").Denied(t)
}
