package process

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"adlock/test/support/helper"
)

// opened reports whether the process has opened the directory: it has been asked for before.
func opened(pid int, dir string) bool {
	links, _ := filepath.Glob("/proc/" + itoa(pid) + "/fd/*")
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && to == dir {
			return true
		}
	}
	return false
}

func TestOfManyReplacingStartsTheNewestRunsInTheEnd(t *testing.T) {
	t.Parallel()
	const starts = 20
	a := helper.NewAtom(t)
	dir, err := filepath.EvalSymlinks(a.Dir)
	must(t, err)
	ran := filepath.Join(t.TempDir(), "ran")
	var all []*helper.Process
	for n := 1; n <= starts; n++ {
		job := fmt.Sprintf(`trap 'sleep 0.0%d; exit 1' INT TERM; echo %d >>"$0"; while :; do sleep 0.05; done`, rand.IntN(10), n)
		p := helper.Command{Args: []string{"sh", "-c", `exec $run --replace --pause=500ms -- sh -c "$1" "$2"`, "sh", job, ran}, Env: a.Env()}.Start(t)
		helper.Eventually(t, "it was asked for", func() bool { return p.Ended() || opened(p.PID, dir) })
		all = append(all, p)
		time.Sleep(rand.N(40 * time.Millisecond))
	}
	newest := all[starts-1]
	for n, p := range all[:starts-1] {
		if status := p.Wait(t); status == 0 {
			t.Errorf("start %d: status 0", n+1)
		}
	}
	helper.Eventually(t, "the newest runs", func() bool {
		text, _ := os.ReadFile(ran)
		return newest.Ended() || strings.HasSuffix("\n"+string(text), fmt.Sprintf("\n%d\n", starts))
	})
	text, _ := os.ReadFile(ran)
	if newest.Ended() || a.OwnerPID(t) != newest.PID {
		t.Errorf("the newest has ended: %s%s\n%s", newest.Output(), text, a.Runlog())
	}
	last := 0
	for line := range strings.Lines(string(text)) {
		n, err := strconv.Atoi(strings.TrimSpace(line))
		must(t, err)
		if n < last {
			t.Errorf("%d ran after a newer start:\n%s", n, text)
		}
		last = n
	}
}
