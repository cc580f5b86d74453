package examples

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"adlock/lib/runlog"
	"adlock/test/helper"
	"adlock/test/need"
)

const jobs = "/usr/local/sbin/" // of root; a user's are in /usr/local/bin

// unit copies a systemd example into the place, with the programs that exist.
func (p *place) unit(name string) {
	p.Helper()
	p.write("unit/"+name, strings.NewReplacer("/usr/bin/adlock", helper.Binary(p), jobs, p.path("bin")+"/",
		"/usr/local/bin/", p.path("bin")+"/", "/var/lib/", p.path("lib")+"/").Replace(p.source("systemd/"+name)), 0o644)
}

// setting is a unit's setting of a key.
func (p *place) setting(name, key string) string {
	p.Helper()
	for line := range strings.Lines(p.read("unit/" + name)) {
		if value, is := strings.CutPrefix(line, key+"="); is {
			return strings.TrimSpace(value)
		}
	}
	p.Fatalf("%s says nothing of %s", name, key)
	return ""
}

func TestUnitsAreUnderstoodBySystemd(t *testing.T) {
	need.Tools(t, "systemd-analyze")
	p := newPlace(t)
	p.command("nightly-backup", ":")
	p.command("site-refresh", ":")
	all, err := os.ReadDir(filepath.Join(helper.Root(), "test/examples/systemd"))
	must(t, err)
	words := []string{"systemd-analyze", "verify", "--man=no"}
	for _, entry := range all {
		if name := entry.Name(); strings.HasSuffix(name, ".service") || strings.HasSuffix(name, ".timer") {
			p.unit(name)
			words = append(words, p.path("unit/"+name))
		}
	}
	p.silent(words...)
}

func TestAServiceThatIsDeniedHasNotFailed(t *testing.T) {
	p := newPlace(t)
	p.unit("nightly-backup.service")
	p.command("nightly-backup", await+`echo $1 >>{dir}/notes; await go`)
	line := p.setting("nightly-backup.service", "ExecStart")
	byHand := p.line("adlock", "run", "--name", "nightly-backup", "nightly-backup", "by-hand").Start(t)
	p.there("notes")
	if r := p.line("sh", "-c", line).Run(t); r.Out+r.Err != "" || strconv.Itoa(r.Status) != p.setting("nightly-backup.service", "SuccessExitStatus") {
		t.Errorf("%+v", r)
	}
	p.write("go", "", 0o644)
	p.ends(byHand, 0)
	p.silent("sh", "-c", line)
	p.wantNotes("by-hand /backup")
}

// The signals of KillMode=mixed, and of the default.
func TestAServiceThatIsStoppedIsToldOnce(t *testing.T) {
	p := newPlace(t)
	p.unit("nightly-backup.service")
	if mode := p.setting("nightly-backup.service", "KillMode"); mode != "mixed" {
		t.Fatalf("KillMode is %s", mode)
	}
	p.command("nightly-backup", `trap 'echo told >>{dir}/notes; exit 3' TERM; : >{dir}/ready; while :; do sleep 0.05; done`)
	service := p.line("sh", "-c", "exec "+p.setting("nightly-backup.service", "ExecStart")).Start(t)
	p.there("ready")
	service.Signal(t, syscall.SIGTERM)
	p.ends(service, 3)
	p.wantNotes("told")
}

func TestTheJournalIsToldWhatTheRunlogSays(t *testing.T) {
	p := newPlace(t)
	p.unit("adlock-journal.service")
	p.silent("adlock", "run", "--name", "before", "true")
	follower := p.line("sh", "-c", "exec "+p.setting("adlock-journal.service", "ExecStart")).Start(t)
	helper.Eventually(t, "it tells of a run", func() bool {
		p.silent("adlock", "run", "--name", "after", "true")
		return strings.Contains(follower.Output(), "after")
	})
	if said := follower.Output(); strings.Contains(said, "before") {
		t.Errorf("it tells of what was: %s", said)
	}
	if len(p.events(runlog.Release)) < 2 {
		t.Error("the runlog does not say so")
	}
}

func TestTmpfilesMakesLockDirectories(t *testing.T) {
	need.Root(t)
	need.Tools(t, "systemd-tmpfiles")
	p := newPlace(t)
	p.unit("adlock.tmpfiles.conf")
	p.silent("systemd-tmpfiles", "--create", p.path("unit/adlock.tmpfiles.conf"))
	for name, owner := range map[string]uint32{"adlock": 0, "adlock-www-data": 33} {
		info, err := os.Stat(p.path("lib/" + name))
		must(t, err)
		if uid := info.Sys().(*syscall.Stat_t).Uid; uid != owner || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, user %d", name, info.Mode(), uid)
		}
	}
	p.silent("ADLOCK_DIR="+p.path("lib/adlock"), "adlock", "run", "--name", "x", "true")
}
