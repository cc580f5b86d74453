package flock

import (
	"path/filepath"
	"testing"

	"adlock/test/support/helper"
	"adlock/test/support/must"
)

// A supervisor that has left a queue may live on for long, and must not keep the file.
func TestAClosedWaiterDoesNotKeepTheFileLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	opened := func() *File { return must.Get(Open(path, false, true))(t) }
	holder, waiter, next := opened(), opened(), opened()
	if free, err := holder.TryLock(); !free || err != nil {
		t.Fatal(free, err)
	}
	must.Get(waiter.Await())(t)
	waiter.Close()
	holder.Close()
	helper.Eventually(t, "the file is free", func() bool {
		free, err := next.TryLock()
		return free && err == nil
	})
	next.Close()
}
