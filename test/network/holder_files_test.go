package network

import (
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"adlock/test/support/helper"
)

func TestTheNextHolderRemovesTheFilesOfAKilledHolder(t *testing.T) {
	t.Parallel()
	h := startFTP(t, "").host(t)
	left := h.startScript(t, "sleep 60")
	if err := syscall.Kill(holderOf(t, left.pid), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	left.said(t) // the watchdog has ended it
	old := time.Now().Add(-2 * time.Minute)
	files := globbed(t, h.dir+"/smith.*")
	for _, file := range files {
		if err := os.Chtimes(file, old, old); err != nil {
			t.Fatal(err)
		}
	}
	gate := t.TempDir() + "/gate"
	next := h.startScript(t, until(gate)+"adlock_release")
	helper.Eventually(t, "what was left is gone", func() bool { return !slices.ContainsFunc(files, exists) })
	if own := globbed(t, h.dir+"/smith.*"); len(own) != 2 {
		t.Errorf("besides %v there is %v", files, own)
	}
	touch(t, gate)
	if said := next.said(t); said != "" {
		t.Errorf("said %q", said)
	}
}
