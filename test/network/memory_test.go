//go:build soak

package network

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"adlock/lib/process"
	"adlock/test/support/helper"
)

// inMemory makes a directory in memory for a member's data: slow disks are not under test. The name
// identifies the process of the test, so that the next chaos can remove what a killed one left.
func (c *chaos) inMemory() string {
	const memory = "/dev/shm"
	removeDead(memory)
	me, err := process.Of(os.Getpid())
	if err != nil {
		return c.TempDir()
	}
	dir, err := os.MkdirTemp(memory, dataOf(me)+"*")
	if err != nil {
		return c.TempDir()
	}
	c.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// ownData is the beginning of a name: the process, and its namespace.
const ownData = "adlock-chaos-%d.%d.%d.%d-"

func dataOf(id process.Identity) string {
	return fmt.Sprintf(ownData, id.PID, id.Start, id.PIDNS, id.TimeNS)
}

// removeDead removes the directories of processes that are proved dead.
func removeDead(memory string) {
	left, _ := filepath.Glob(memory + "/adlock-chaos-*") // cannot fail: the pattern is valid
	for _, dir := range left {
		id := process.Here() // memory does not outlive the boot
		n, _ := fmt.Sscanf(filepath.Base(dir), ownData, &id.PID, &id.Start, &id.PIDNS, &id.TimeNS)
		if n == 4 && id.Life() == process.Dead {
			_ = os.RemoveAll(dir) // another test may remove it at the same time
		}
	}
}

func TestTheNextChaosRemovesTheDataOfAKilledChaos(t *testing.T) {
	sleeper := exec.Command("sleep", "60")
	if err := helper.StartWithin(sleeper); err != nil {
		t.Fatal(err)
	}
	lives, err := process.Of(sleeper.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	dies, elsewhere := lives, lives
	dies.Start--
	elsewhere.PIDNS, elsewhere.Start = 1, 1
	memory := t.TempDir()
	names := map[string]bool{dataOf(lives) + "1": true, dataOf(dies) + "2": false, dataOf(elsewhere) + "3": true, "adlock-chaos-4": true, "other": true}
	removed := func() {
		t.Helper()
		removeDead(memory)
		for name, stays := range names {
			if exists(memory+"/"+name) != stays {
				t.Errorf("%s: should it stay: %v", name, stays)
			}
		}
	}
	for name := range names {
		if err := os.MkdirAll(memory+"/"+name+"/member", 0o700); err != nil {
			t.Fatal(err)
		}
	}
	removed()
	_ = sleeper.Process.Kill()
	_ = sleeper.Wait() // it was killed
	names[dataOf(lives)+"1"] = false
	removed()
}
