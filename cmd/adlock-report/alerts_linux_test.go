package main

import (
	"bytes"
	"os/exec"
	"testing"

	"adlock/test/need"
)

// The rules are for the metrics that package metrics writes.
func TestAlertsFireWhenTheyShould(t *testing.T) {
	need.Tools(t, "promtool")
	for _, args := range [][]string{{"check", "rules", "adlock-alerts.yml"}, {"test", "rules", "testdata/alerts_test.yml"}} {
		output, err := exec.Command("promtool", args...).CombinedOutput()
		if err != nil || bytes.Contains(output, []byte("FAILED")) {
			t.Errorf("promtool %q: %v\n%s", args, err, output)
		}
	}
}
