package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"adlock/test/support/need"
	"adlock/test/support/story"
)

// dashboard has the expressions of a dashboard of Grafana (its JSON model).
type dashboard struct {
	Templating struct{ List []struct{ Definition string } }
	Panels     []struct {
		Title   string
		Targets []struct{ Expr string }
	}
}

var (
	metricName = regexp.MustCompile(`adlock_[a-z_]+`)
	ofAnAtom   = regexp.MustCompile(`(?m)^(adlock_[a-z_]+)\{`)
)

func TestTheDashboardUsesOnlyExistingMetrics(t *testing.T) {
	need.Tools(t, "promtool")
	p := newPlace(t)
	p.write(t, story.Day())
	text := p.ok(t, "metrics")
	var d dashboard
	must(t, json.Unmarshal([]byte(read(t, "adlock-dashboard.json")), &d))
	var rules strings.Builder
	rules.WriteString("groups:\n- name: panels\n  rules:\n")
	asked := ""
	for _, panel := range d.Panels {
		for _, target := range panel.Targets {
			asked += target.Expr + "\n"
			rules.WriteString("  - record: panel:expr\n    labels: {panel: '" + panel.Title + "'}\n    expr: |\n      " + target.Expr + "\n")
		}
	}
	for _, v := range d.Templating.List {
		asked += v.Definition + "\n"
	}
	for _, name := range metricName.FindAllString(asked, -1) {
		if !strings.Contains(text, "# TYPE "+name+" ") {
			t.Errorf("adlock metrics has no %s", name)
		}
	}
	for _, line := range ofAnAtom.FindAllStringSubmatch(text, -1) {
		name := line[1]
		if alerts, err := os.ReadFile("adlock-alerts.yml"); err != nil || !strings.Contains(asked+string(alerts), name) {
			t.Errorf("no panel and no rule needs %s", name)
		}
	}
	file := filepath.Join(t.TempDir(), "panels.yml")
	must(t, os.WriteFile(file, []byte(rules.String()), 0o600))
	promtool(t, "check", "rules", file)
}
