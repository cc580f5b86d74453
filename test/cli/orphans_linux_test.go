package cli

import (
	"strconv"
	"strings"
	"testing"

	"adlock/test/support/helper"
	"adlock/test/support/need"
)

// Under qemu, a program of another architecture cannot become a subreaper.
func TestWithoutASubreaperOnlyTheOptionWholeJobIsRefused(t *testing.T) {
	s := newStage(t)
	need.Tools(t, "strace")
	without := func(words ...string) helper.Result {
		c := s.command(words...)
		c.Args = append([]string{"strace", "-f", "--seccomp-bpf", "-qq", "-o", "/dev/null", "-e", "trace=prctl", "-e", "inject=prctl:error=EINVAL"}, c.Args...)
		return c.Run(t)
	}
	without(job("sh", "-c", "echo ran; exit 3")...).Is(t, 3, "ran\n", "")
	if s.held("a") {
		t.Error("the atom is held still")
	}
	without(job("--whole-job", "true")...).Refused(t, 69, "--whole-job: ")
	r := without(job("--enforce", "--expire-after", "1s", "sh", "-c", "(sleep 9m >/dev/null 2>&1 & echo $!); sleep 9m")...)
	pid, err := strconv.Atoi(strings.TrimSpace(r.Out))
	if r.Status != 124 || err != nil || helper.Alive(pid) {
		t.Errorf("%+v, %v, and an orphan of the job lives on", r, err)
	}
}
