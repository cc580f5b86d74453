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
	command.Stdin = bytes.NewReader(collect(t, odd(), 24*time.Hour, nil).Text(Prometheus))
	if output, err := command.CombinedOutput(); err != nil || len(output) > 0 {
		t.Errorf("%v\n%s", err, output)
	}
}

// The reference parser of the OpenMetrics project.
func TestOpenMetricsParserAgrees(t *testing.T) {
	python := pythonWithParser()
	if python == "" {
		need.Skip(t, "python3-prometheus-client is not installed")
	}
	const script = `
import sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families
n = sum(len(f.samples) for f in text_string_to_metric_families(sys.stdin.read()))
assert n > 60, n
`
	command := exec.Command(python, "-c", script)
	command.Stdin = bytes.NewReader(collect(t, odd(), 24*time.Hour, nil).Text(OpenMetrics))
	if output, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}

// pythonWithParser is the first python3 that has the parser: the system's may
// not be the first on PATH.
func pythonWithParser() string {
	for _, python := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(python, "-c", "import prometheus_client.openmetrics.parser").Run() == nil {
			return python
		}
	}
	return ""
}
