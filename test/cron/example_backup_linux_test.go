package cron

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"adlock/test/support/helper"
	"adlock/test/support/must"
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

func TestABackupThatIsRepeatedByHandCopiesOnlyWhatFailed(t *testing.T) {
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

func TestADirectoryThatHangsHoldsUpItsOwnBackupAlone(t *testing.T) {
	p, line := backups(t, "20h", "${LIMIT:-20h}")
	real := must.Get(exec.LookPath("rsync"))(t)
	p.command("rsync", `case $* in *{dir}/etc*) [ -e {dir}/mended ] || { : >{dir}/hangs; sleep 1000; } ;; esac
		exec `+real+` "$@"`)
	p.write("srv/file", "1", 0o644)
	hung := p.line(line...).Start(t)
	p.there("hangs")
	p.silent(line...)
	if p.kept("home/file") != "1" || p.kept("srv/file") != "1" || p.has("kept"+p.path("etc")) {
		t.Error("the directories behind the one that hangs were not copied")
	}
	must.Do(t, os.WriteFile(p.path("mended"), nil, 0o600))
	r := p.line(append(line, "LIMIT=0")...).Run(t)
	if r.Status != 0 || !strings.Contains(r.Err, "by force") || strings.Count(r.Err, "\n") != 1 {
		t.Errorf("%+v", r)
	}
	if p.kept("etc/file") != "1" {
		t.Error("not copied after the one that hung was ended")
	}
	helper.Eventually(t, "the one that hung is gone", hung.Ended)
}
