package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"adlock/test/support/need"
	"adlock/test/support/story"
)

// dashboard has the fields that Grafana requires (its JSON model).
type dashboard struct {
	Title, UID    string
	SchemaVersion int
	Time          struct{ From, To string }
	Templating    struct {
		List []struct{ Name, Type, Definition string }
	}
	Panels []panel
}

type panel struct {
	ID          int
	Type, Title string
	Datasource  datasource
	GridPos     struct{ H, W, X, Y int }
	Targets     []struct {
		Expr, RefID string
		Datasource  datasource
	}
}

type datasource struct{ Type, UID string }

func shippedDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	text, err := os.ReadFile("adlock-dashboard.json")
	if err == nil {
		err = json.Unmarshal(text, &d)
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestGrafanaReadsTheDashboard(t *testing.T) {
	t.Parallel()
	d := shippedDashboard(t)
	if d.Title == "" || d.UID == "" || len(d.UID) > 40 || d.SchemaVersion < 30 || d.Time.From == "" || d.Time.To == "" {
		t.Errorf("%+v", d)
	}
	var ids []int
	for i, p := range d.Panels {
		at := p.GridPos
		if p.ID == 0 || slices.Contains(ids, p.ID) || p.Title == "" || !slices.Contains([]string{"stat", "timeseries", "table"}, p.Type) || len(p.Targets) == 0 {
			t.Errorf("%+v", p)
		}
		ids = append(ids, p.ID)
		if at.W <= 0 || at.H <= 0 || at.X < 0 || at.X+at.W > 24 {
			t.Errorf("%s is not on the grid", p.Title)
		}
		for _, other := range d.Panels[:i] {
			o := other.GridPos
			if at.X < o.X+o.W && o.X < at.X+at.W && at.Y < o.Y+o.H && o.Y < at.Y+at.H {
				t.Errorf("%s lies on %s", p.Title, other.Title)
			}
		}
		for _, target := range p.Targets {
			if of := (datasource{"prometheus", "${datasource}"}); target.RefID == "" || target.Datasource != of || p.Datasource != of {
				t.Errorf("%s: %+v", p.Title, target)
			}
		}
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
	d := shippedDashboard(t)
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
