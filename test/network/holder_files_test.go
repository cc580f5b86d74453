package network

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"adlock/test/support/helper"
)

func TestTheNextHolderRemovesTheFilesOfAKilledHolder(t *testing.T) {
	t.Parallel()
	f := startFTP(t, "")
	h := f.host(t)
	script := func(end string) *helper.Process {
		ready := t.TempDir() + "/ready"
		p := helper.Command{
			Args: []string{"sh", "-c", `. "$library"; adlock_get o x 0 || exit; : >'` + ready + `'; ` + end},
			Env:  append(h.env, "ADLOCK_BIN="+h.bin, "library="+filepath.Join(helper.Root(), "sh/adlock.sh")),
		}.Start(t)
		helper.Eventually(t, "the script has the atom", func() bool { return exists(ready) })
		return p
	}
	left := script("sleep 60")
	for _, pid := range helper.With("ADLOCK_DIR=" + h.dir) {
		if args, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); strings.HasPrefix(string(args), "adlock-locksmith\x00holder\x00") {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	left.Wait(t) // the watchdog has ended it
	old := time.Now().Add(-2 * time.Minute)
	files := globbed(t, h.dir+"/smith.*")
	for _, file := range files {
		if err := os.Chtimes(file, old, old); err != nil {
			t.Fatal(err)
		}
	}
	gate := t.TempDir() + "/gate"
	next := script("while [ ! -e '" + gate + "' ]; do sleep 0.1; done; adlock_release")
	helper.Eventually(t, "what was left is gone", func() bool {
		return !slices.ContainsFunc(files, exists)
	})
	if own := globbed(t, h.dir+"/smith.*"); len(own) != 2 {
		t.Errorf("besides %v there is %v", files, own)
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if status := next.Wait(t); status != 0 {
		t.Errorf("%d %s", status, next.Output())
	}
}
