package cron

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"adlock/test/support/check"
	"adlock/test/support/helper"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

const jobs = "/usr/local/sbin/" // of root; a user's are in /usr/local/bin

// unit copies a systemd example into the place, with the programs that exist.
func (p *place) unit(name string) {
	p.Helper()
	p.write("unit/"+name, strings.NewReplacer("/usr/bin/adlock", helper.Binary(p), jobs, p.path("bin")+"/",
		"/usr/local/bin/", p.path("bin")+"/", "/var/lib/", p.path("lib")+"/").Replace(p.source("systemd/"+name)), 0o644)
}

// setting returns a unit's value for a key.
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

func TestSystemdAcceptsTheUnitsOfTheExamples(t *testing.T) {
	need.Tools(t, "systemd-analyze")
	p := newPlace(t)
	p.command("nightly-backup", ":")
	p.command("site-refresh", ":")
	p.command("hook-mail", ":")
	all := must.Get(os.ReadDir(filepath.Join(helper.Root(), "test/examples/systemd")))(t)
	words := []string{"systemd-analyze", "verify", "--man=no"}
	for _, entry := range all {
		if name := entry.Name(); strings.HasSuffix(name, ".service") || strings.HasSuffix(name, ".timer") {
			p.unit(name)
			words = append(words, p.path("unit/"+name))
		}
	}
	p.silent(words...)
}

func TestADeniedServiceDoesNotFail(t *testing.T) {
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
	byHand.Is(p, 0, "…")
	p.silent("sh", "-c", line)
	p.wantNotes("by-hand /backup")
}

// systemd starts OnFailure= only if the status is neither 0 nor in SuccessExitStatus.
func TestTroubleWithAServiceIsReportedOnceByHookOrOnFailure(t *testing.T) {
	for name, c := range map[string]struct {
		job     string
		options string
		before  func(p *place)
		event   string // that the hook is started for; "": it is not
		told    string
	}{
		"well":    {"exit 0", "--expire-after 6h --enforce", nil, "", ""},
		"failed":  {"exit 3", "--expire-after 6h --enforce", nil, "fail", "OnFailure"},
		"hung":    {"sleep 60", "--expire-after 1s --enforce", nil, "fail", "OnFailure"},
		"not run": {":", "--expire-after 6h --enforce", func(p *place) { p.write("locks", "", 0o644) }, "not-run", "OnFailure"},
		"overdue": {"until [ -e {dir}/hooked ]; do sleep 0.05; done", "--notice 10ms", nil, "overdue", "overdue"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			p.unit("nightly-backup.service")
			p.command("nightly-backup", c.job)
			p.command("hook-mail", `echo "$ADLOCK_EVENT" >>{dir}/notes`)
			check.Equal(t, "OnFailure", p.setting("nightly-backup.service", "OnFailure"), "adlock-failed@%n.service")
			p.setting("nightly-backup.service", "ExecStop") // a hook has time to end
			if c.before != nil {
				c.before(p)
			}
			line := strings.Replace(p.setting("nightly-backup.service", "ExecStart"), "--expire-after 6h --enforce", c.options, 1)
			hook := strings.Trim(p.setting("nightly-backup.service", "Environment"), `"`)
			r := p.line(hook+"; echo $ADLOCK_EVENT >>"+p.path("hooked"), "sh", "-c", line).Run(t)
			if status := strconv.Itoa(r.Status); status != "0" && status != p.setting("nightly-backup.service", "SuccessExitStatus") {
				must.Do(t, exec.Command("sh", "-c", "echo OnFailure >>"+p.path("notes")).Run())
			}
			if c.event != "" {
				helper.Eventually(t, "the hook has heard of it", func() bool { return p.has("hooked") && p.read("hooked") == c.event+"\n" })
			}
			if got := strings.Join(p.notes(), " "); got != c.told || p.line("adlock", "log", "--event", "hook").Run(t).Out != "" {
				t.Errorf("told by %q, want %q, or a hook failed: %+v", got, c.told, r)
			}
		})
	}
}

func TestTmpfilesMakesLockDirectories(t *testing.T) {
	need.Root(t)
	need.Tools(t, "systemd-tmpfiles")
	p := newPlace(t)
	p.unit("adlock.tmpfiles.conf")
	p.silent("systemd-tmpfiles", "--create", p.path("unit/adlock.tmpfiles.conf"))
	for name, owner := range map[string]uint32{"adlock": 0, "adlock-33": 33} {
		info := must.Get(os.Stat(p.path("lib/" + name)))(t)
		if uid := info.Sys().(*syscall.Stat_t).Uid; uid != owner || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, user %d", name, info.Mode(), uid)
		}
	}
	p.silent("ADLOCK_DIR="+p.path("lib/adlock"), "adlock", "run", "--name", "x", "true")
}
