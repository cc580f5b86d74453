package cron

import (
	"strings"
	"testing"

	"adlock/test/support/need"
)

// backups makes a place with three directories, the last of which does not exist yet.
func backups(t *testing.T, changes ...string) (p *place, line []string) {
	t.Helper()
	need.Tools(t, "rsync")
	p = newPlace(t)
	for _, name := range []string{"etc", "home"} {
		p.write(name+"/file", "1", 0o644)
	}
	return p, []string{p.example("nightly-backup", "bin/nightly-backup", changes...), p.path("kept"), p.path("etc"), p.path("home"), p.path("srv")}
}

func (p *place) kept(name string) string {
	p.Helper()
	return p.read("kept" + p.path(name))
}

func TestARepeatedBackupCopiesOnlyWhatFailed(t *testing.T) {
	p, line := backups(t)
	if r := p.line(line...).Run(t); r.Status != 23 || !strings.Contains(r.Err, "rsync") {
		t.Fatalf("%+v", r)
	}
	if p.kept("etc/file") != "1" || p.kept("home/file") != "1" {
		t.Error("not copied")
	}
	p.write("etc/file", "changed", 0o644)
	p.write("srv/file", "1", 0o644)
	p.silent(line...)
	if p.kept("etc/file") != "1" || p.kept("srv/file") != "1" {
		t.Error("the one that was copied was copied again, or the one that failed was not")
	}
}
