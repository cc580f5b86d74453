package network

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// contents lists the files, with the times at which they were written.
func (f *ftpd) contents() (all string) {
	_ = filepath.Walk(f.Root, func(path string, info os.FileInfo, err error) error {
		if err == nil {
			all += fmt.Sprintln(path, info.Size(), info.ModTime().UnixNano())
		}
		return nil
	})
	return all
}

// contents lists the keys with their revisions, and the leases.
func (m *node) contents() string {
	keys, _ := etcdctl([]*node{m}, "get", "--from-key", "", "-w", "json").Output()
	_, kvs, _ := strings.Cut(string(keys), `"kvs"`) // without the header, which counts requests
	leases, _ := etcdctl([]*node{m}, "lease", "list").Output()
	return kvs + string(leases)
}

func TestDryRunAndStatusWriteNothingToAStore(t *testing.T) {
	t.Parallel()
	asks := func(t *testing.T, runner, asker *host, held func() string) {
		asker.env = append(asker.env, "ADLOCK_DIR="+t.TempDir()+"/none")
		ask := func(want string) {
			before := held()
			r := asker.run(t, "", "--if-elapsed=1h", "--dry-run")
			if !strings.HasPrefix(r.Out, want) || r.Err != "" {
				t.Errorf("%+v, want %q", r, want)
			}
			for _, words := range [][]string{{"status"}, {"status", "--json"}} {
				asker.verb(t, words...).Is(t, 0, "…", "")
			}
			if after := held(); after != before {
				t.Errorf("before:\n%s\nafter:\n%s", before, after)
			}
			if left, _ := filepath.Glob(asker.dir + "/*"); left != nil {
				t.Errorf("here there is %v", left)
			}
		}
		ask("free: ")
		runner.run(t, "echo ran").Ran(t)
		ask("too soon: completed ")
		runner.env = append(runner.env, "ADLOCK_LEASE=1h") // it is not renewed meanwhile
		owner := runner.start(t, "sleep 60", "--operand=y")
		ask("too soon: completed ")
		owner.Kill(t)
	}
	t.Run("etcd", func(t *testing.T) {
		m := startEtcd(t, 1)[0]
		asks(t, newHost(t, url(m)), newHost(t, url(m)), m.contents)
	})
	t.Run("FTP", func(t *testing.T) {
		f := startFTP(t, "")
		asks(t, f.host(t), f.host(t), f.contents)
	})
}
