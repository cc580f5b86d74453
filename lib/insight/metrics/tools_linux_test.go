package metrics

import (
	"bytes"
	"os/exec"
	"testing"
	"time"

	"adlock/lib/limit"
	"adlock/test/support/need"
	"adlock/test/support/story"
)

// odd is a story with names that could break the text.
func odd() *story.Story {
	s := story.Day()
	s.Job("p run a\"b\\c\nd } 5", 0, time.Hour).Run(0, time.Second, 0)
	s.Job("p run \xff\xfe", 0, time.Hour).Run(0, time.Second, 0)
	s.Job("p run \xff\xfd", 0, limit.Never).Run(0, time.Second, 0)
	return s
}

func TestPromtoolFindsNoProblem(t *testing.T) {
	need.Tools(t, "promtool")
	command := exec.Command("promtool", "check", "metrics")
	command.Stdin = bytes.NewReader(collect(t, odd(), 24*time.Hour, nil).Text())
	if output, err := command.CombinedOutput(); err != nil || len(output) > 0 {
		t.Errorf("%v\n%s", err, output)
	}
}
