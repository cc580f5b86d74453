package network

import (
	"strings"
	"testing"

	"adlock/test/support/helper"
)

// A run without an end in the runlog still runs if the store has its lock.
func TestARunWhoseLockIsInTheStoreIsReportedAsRunning(t *testing.T) {
	t.Parallel()
	nodes := startEtcd(t, 1)
	a, b := newHost(t, url(nodes...)), newHost(t, url(nodes...))
	b.run(t, "echo ran", "--operand=y").Ran(t)
	owner := a.start(t, "sleep 60")
	a.wants(t, `"operand":"x","runs":1,"outcomes":\{"running":1,`, "report", "--json")
	a.wants(t, `(?m)^p o x +#+$`, "timeline")
	a.wants(t, `(?m)^adlock_running_since_timestamp_seconds\{program="p",host="shared",operator="o",operand="x"\} `, "metrics")
	a.wants(t, `acquire +p o x: `, "log")
	if r := a.verb(t, "log"); strings.Contains(r.Out, "p o y") {
		t.Errorf("another host's runs: %+v", r)
	}
	owner.Kill(t)
	helper.Eventually(t, "the lock is cleared", func() bool { return a.verb(t, "clear", "p o x").Status == 0 })
	a.wants(t, `"operand":"x","runs":1,"outcomes":\{"running":0,`, "report", "--json")
}

func TestLogOnATerminalSaysThatItIsThisHosts(t *testing.T) {
	t.Parallel()
	h := newHost(t, url(startEtcd(t, 1)...))
	h.run(t, "echo ran").Ran(t)
	p := onTerminal(t, helper.Command{Args: []string{h.bin, "log"}, Env: h.env})
	shows(t, p, `adlock: etcd://\S+: log tells of the runs of this host alone \(\S+\), as the runlog in \S+ has them`)
	p.Wait(t)
}
