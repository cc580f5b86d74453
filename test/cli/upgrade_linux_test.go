package cli

import (
	"os"
	"strings"
	"testing"

	"adlock/test/support/helper"
)

func TestAnUpgradeDoesNotDisturbARunningJob(t *testing.T) {
	for claim, change := range map[string]func(path, stranger string) error{
		"upgraded": func(path, stranger string) error { return os.Rename(stranger, path) },
		"removed":  func(path, _ string) error { return os.Remove(path) },
	} {
		t.Run(claim, func(t *testing.T) {
			s := newStage(t)
			program := s.in("adlock", s.read(helper.Binary(s)))
			stranger := s.in("stranger", "#!/bin/sh\necho \"$0 $*\" >>"+s.in("strange")+"\n")
			c := s.command(append(job("sh", "-c", "until test -e go; do sleep 0.01; done; exit 3"), s.notes("told"))...)
			c.Args[0] = program
			p := c.Start(t)
			helper.Eventually(t, "the job runs", func() bool { return s.held("a") })
			must(t, change(program, stranger))
			s.in("go", "")
			if status := p.Wait(t); status != 3 || p.Output() != "" || s.held("a") {
				t.Errorf("status %d, held: %v, %s", status, s.held("a"), p.Output())
			}
			if line := s.told("told", 1)[0]; !strings.HasPrefix(line, "fail job.dax.run.a 3 ") {
				t.Errorf("the hook was told %q", line)
			}
			if exists(s.in("strange")) {
				t.Errorf("another program was started in place of its own: %s", s.read(s.in("strange")))
			}
		})
	}
}
