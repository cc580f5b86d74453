package cron

import (
	"os"
	"strings"
	"testing"

	"adlock/lib/runlog"
	"adlock/test/support/helper"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

// deployments makes a place with the example, and with a release that begins, waits for a file of its own
// name, and ends.
func deployments(t *testing.T) (p *place, line func(release string, more ...string) []string) {
	t.Helper()
	p = newPlace(t)
	deploy := p.example("ci/deploy", "bin/deploy")
	p.command("release.sh", await+`echo begin:$1 >>{dir}/notes; await "$1"; echo end:$1 >>{dir}/notes`)
	return p, func(release string, more ...string) []string {
		return append([]string{deploy, "production", "release.sh", release}, more...)
	}
}

func (p *place) noted(word string) {
	p.Helper()
	helper.Eventually(p, word+" is noted", func() bool { return strings.Contains(p.read("notes"), word) })
}

func TestDeploysWaitForTheirTurn(t *testing.T) {
	p, line := deployments(t)
	p.write("notes", "", 0o644)
	first := p.line(line("one")...).Start(t)
	p.noted("begin:one")
	second := p.line(line("two")...).Start(t)
	helper.Eventually(t, "the second waits", func() bool { return len(p.events(runlog.Wait)) == 1 })
	p.line(line("three", "DEPLOY_WAIT=1s")...).Run(t).Denied(t)
	p.write("two", "", 0o644)
	p.write("one", "", 0o644)
	first.Is(p, 0, "…")
	second.Is(p, 0, "…")
	p.wantNotes("begin:one end:one begin:two end:two")
}

func TestADeployWaitsForProcessesOfTheOneBefore(t *testing.T) {
	need.Tools(t, "setsid")
	p, line := deployments(t)
	p.command("release.sh", await+`echo deploy:$1 >>{dir}/notes
		[ "$1" = next ] || setsid sh -c '`+await+`await go; echo migrated >>{dir}/notes' >/dev/null 2>&1 &`)
	first := p.line(line("first")...).Start(t)
	p.there("notes")
	next := p.line(line("next")...).Start(t)
	helper.Eventually(t, "the next waits", func() bool { return len(p.events(runlog.Wait)) == 1 })
	p.write("go", "", 0o644)
	first.Is(p, 0, "…")
	next.Is(p, 0, "…")
	p.wantNotes("deploy:first migrated deploy:next")
}

// fetches installs a curl that notes its runs.
func (p *place) fetches() {
	p.Helper()
	p.command("curl", await+`[ ! -e {dir}/held ] || await go
		[ ! -e {dir}/offline ] || exit 22
		echo fetched >>{dir}/notes; echo words $(wc -l <{dir}/notes)`)
}

func TestJobsShareADownload(t *testing.T) {
	p := newPlace(t)
	p.fetches()
	line := []string{p.example("ci/download", "bin/download"), "https://example.org/x", p.path("cache/x")}
	must.Do(t, os.Mkdir(p.path("cache"), 0o755))

	p.write("offline", "", 0o644)
	if r := p.line(line...).Run(t); r.Status != 22 || p.has("cache/x") {
		t.Errorf("offline: %+v", r)
	}
	must.Do(t, os.Remove(p.path("offline")))

	p.write("held", "", 0o644)
	var jobs []*helper.Process
	for range 3 {
		jobs = append(jobs, p.line(line...).Start(t))
	}
	helper.Eventually(t, "two wait", func() bool { return len(p.events(runlog.Wait)) == 2 })
	p.write("go", "", 0o644)
	for _, job := range jobs {
		job.Is(p, 0, "…")
	}
	p.silent(line...)
	p.wantNotes("fetched")

	must.Do(t, os.Remove(p.path("cache/x")))
	p.silent(line...)
	if p.read("cache/x") != "words 2\n" {
		t.Errorf("got %q", p.read("cache/x"))
	}
}
