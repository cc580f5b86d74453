package network

import (
	"path/filepath"
	"testing"

	"adlock/lib/lease"
	"adlock/test/support/helper"
)

func TestScriptThatIsCutOffIsEndedBeforeAnotherJobBegins(t *testing.T) {
	t.Parallel()
	nodes := startEtcd(t, 1)
	cable := newRelay(t, nodes[0].client)
	a, b := newHost(t, "etcd://"+cable.address()+"/adlock").leased(lease.DefaultLease), newHost(t, url(nodes...)).leased(lease.DefaultLease)
	file := t.TempDir() + "/beats"
	script := helper.Command{
		Args: []string{"sh", "-c", `. "$library"; adlock_get o x 0 || exit; ` + beats(file)},
		Env:  append(a.env, "ADLOCK_BIN="+a.bin, "library="+filepath.Join(helper.Root(), "sh/adlock.sh")),
	}
	owner := script.Start(t)
	helper.Eventually(t, "the script has the atom", func() bool { return exists(file) })
	b.run(t, "echo ran").Denied(t)
	cable.cut()
	next := b.run(t, begins, "--wait=60s")
	if next.Status != 0 {
		t.Fatalf("%+v\n%s", next, owner.Output())
	}
	t.Logf("script cut off: margin %v", margin(t, file, next.Out))
	if status := owner.Wait(t); status != 137 {
		t.Errorf("the script's status is %d: %s", status, owner.Output())
	}
}
