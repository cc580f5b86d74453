package network

import (
	"os"
	"strings"
	"testing"
)

// A store is used by one version of adlock at a time. A record of another version may be the
// lock of a running job.
func TestALockOfAnotherVersionInAStoreIsRefusedAloud(t *testing.T) {
	t.Parallel()
	const said = "of an unknown format"
	nodes := startEtcd(t, 1)
	a, b := newHost(t, url(nodes...)), newHost(t, url(nodes...))
	owner := a.start(t, "sleep 60")
	key := strings.TrimSpace(ctl(t, nodes, "get", "--prefix", "/adlock/p.shared.o.x/line/", "--keys-only"))
	record, err := etcdctl(nodes, "get", key, "--print-value-only").Output()
	if err != nil {
		t.Fatal(err)
	}
	ctl(t, nodes, "put", key, "--", strings.Replace(string(record), "format=1", "format=2", 1))
	for _, wait := range []string{"--wait=0", "--wait=20s"} {
		b.run(t, "echo ran", wait).Refused(t, 74, said)
	}
	owner.Kill(t)

	f := startFTP(t, "")
	a, b = f.host(t), f.host(t)
	owner = a.start(t, "sleep 60")
	file := f.root + "/lock.p.shared.o.x.1/owner"
	if record, err = os.ReadFile(file); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(record), "format=1", "format=2", 1)), 0); err != nil {
		t.Fatal(err)
	}
	for _, wait := range []string{"--wait=0", "--wait=20s"} {
		b.run(t, "echo ran", wait).Refused(t, 74, said)
	}
	owner.Kill(t)
}
