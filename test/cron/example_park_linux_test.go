package cron

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"adlock/test/support/helper"
	"adlock/test/support/must"
)

func TestTheSetupScriptSetsUpAMachineAndThenChangesNothing(t *testing.T) {
	p := newPlace(t)
	for _, dir := range []string{"cron.d", "collector", "rules"} {
		must.Do(t, os.Mkdir(p.path(dir), 0o755))
	}
	p.write("setup", strings.NewReplacer("/etc/cron.d/", p.path("cron.d")+"/", "/var/lib/prometheus/node-exporter", p.path("collector"),
		"/etc/prometheus/rules", p.path("rules"), "/etc/adlock.conf", p.path("adlock.conf"), "/usr/lib/adlock", p.path("lib/adlock")).Replace(p.source("park/setup")), 0o755)
	rules := must.Get(os.ReadFile(filepath.Join(helper.Root(), "cmd/adlock-report/adlock-alerts.yml")))(t)
	p.write("lib/adlock/adlock-alerts.yml", string(rules), 0o644)
	const jobs = "\nMAILTO=root\n*/5 * * * *  root  : feeds ; /bin/true\n"
	p.write("cron.d/site", " SHELL\t= /bin/bash"+jobs, 0o600)

	first := p.line(p.path("setup")).Run(t)
	for _, file := range []string{"adlock.conf", "cron.d/site", "cron.d/adlock-metrics", "rules/adlock-alerts.yml"} {
		if !strings.Contains(first.Out, "changed: "+p.path(file)+"\n") {
			t.Errorf("%s is not changed", file)
		}
	}
	if got, want := p.read("cron.d/site"), "SHELL="+p.path("lib/adlock")+"/shell\nADLOCK_SHELL= /bin/bash"+jobs; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	for file, want := range map[string]os.FileMode{"cron.d/site": 0o600, "cron.d/adlock-metrics": 0o644} {
		if info, err := os.Stat(p.path(file)); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v, want mode %v", file, info.Mode(), err, want)
		}
	}
	if p.read("rules/adlock-alerts.yml") != string(rules) {
		t.Error("the rules are others")
	}
	p.silent(p.path("setup"))
	if left, err := filepath.Glob(p.path("*/*.new")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}
