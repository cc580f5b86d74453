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
	later := strings.NewReplacer("format=1", "format=2")
	refuses := func(t *testing.T, a, b *host, change func()) {
		a.start(t, "sleep 60")
		change()
		for _, wait := range []string{"--wait=0", "--wait=20s"} {
			b.run(t, "echo ran", wait).Refused(t, 74, "of an unknown format")
		}
	}
	t.Run("etcd", func(t *testing.T) {
		nodes := startEtcd(t, 1)
		refuses(t, newHost(t, url(nodes...)), newHost(t, url(nodes...)), func() {
			key := keysOf(t, nodes, "/adlock/p.shared.o.x/line/")[0]
			ctl(t, nodes, "put", key, "--", later.Replace(ctl(t, nodes, "get", key, "--print-value-only")))
		})
	})
	t.Run("FTP", func(t *testing.T) {
		f := startFTP(t, "")
		refuses(t, f.host(t), f.host(t), func() {
			file := f.Root + "/lock.p.shared.o.x.1/owner"
			record, err := os.ReadFile(file)
			if err == nil {
				err = os.WriteFile(file, []byte(later.Replace(string(record))), 0)
			}
			if err != nil {
				t.Fatal(err)
			}
		})
	})
}
