//go:build soak

package network

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"adlock/test/support/helper"
)

// parentEnv, in the environment, makes the test binary the process that starts a play.
const parentEnv = "PLAY_OF"

func TestNeitherServersNorContendersOutliveAPlayThatIsKilled(t *testing.T) {
	if os.Getenv(parentEnv) != "" {
		startAndStay(t)
	}
	needFTP(t) // otherwise the process below would skip, and the count would be wrong
	dir := t.TempDir()
	passable(t, dir)
	mark := parentEnv + "=" + dir
	parent := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$")
	parent.Env = append(os.Environ(), mark, "TMPDIR="+dir) // it does not clean up
	said, err := parent.StdoutPipe()
	if err == nil {
		err = parent.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = parent.Process.Kill()
		for _, pid := range helper.With(mark) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	lines := bufio.NewScanner(said)
	for lines.Scan() && lines.Text() != "all are there" {
	}
	if found := len(helper.With(mark)); found < 3 {
		t.Errorf("%d processes", found)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // it was killed
	helper.Eventually(t, "nothing is left", func() bool { return len(helper.With(mark)) == 0 })
}

// startAndStay starts the processes of a play, stops one, and does not return.
func startAndStay(t *testing.T) {
	c := newChaos(t, 1, second, 1)
	c.onFTP()
	for _, step := range []time.Duration{0, time.Hour} {
		command := exec.Command("sh", "-c", "kill -STOP $$")
		command.SysProcAttr = new(syscall.SysProcAttr)
		if err := (&mast{step: step}).launch(command); err != nil && runtime.GOARCH == "amd64" {
			t.Fatal(err)
		}
	}
	fmt.Println("all are there")
	select {}
}
