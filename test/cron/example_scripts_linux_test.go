package cron

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"adlock/lib/runlog"
	"adlock/test/support/check"
	"adlock/test/support/helper"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

// withoutTheLine is the script before the line was added.
func withoutTheLine(t *testing.T, text string) string {
	t.Helper()
	var kept []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") || !strings.Contains(line, "adlock") {
			kept = append(kept, line)
		}
	}
	if n := strings.Count(text, "\n") - len(kept); n != 1 {
		t.Fatalf("%d lines were added", n)
	}
	return strings.Join(kept, "")
}

func TestOneLineKeepsALegacyScriptFromRunningTwiceAtOnce(t *testing.T) {
	for name, guarded := range map[string]bool{"with the line": true, "without it": false} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			script := p.example("legacy-script", "bin/legacy-script")
			if !guarded {
				p.write("bin/legacy-script", withoutTheLine(t, p.source("legacy-script")), 0o755)
			}
			sort := must.Get(exec.LookPath("sort"))(t)
			p.command("sort", await+`echo $$ >>{dir}/notes; : >{dir}/sorts; await go; exec `+sort+` "$@"`)
			must.Do(t, os.Mkdir(p.path("www"), 0o755))
			line := []string{script, p.path("in"), p.path("www")}
			p.write("in/-n.log", "hit\nhit\n", 0o644)
			first := p.line(line...).Start(t)
			p.there("sorts")
			p.write("in/b.log", "late\n", 0o644)
			second := p.line(line...).Start(t)
			if guarded {
				second.Is(t, 0, "")
			} else {
				helper.Eventually(t, "both run", func() bool { return len(p.notes()) == 2 })
			}
			p.write("go", "", 0o644)
			first.Is(p, 0, "…")
			second.Is(p, 0, "…")
			check.Equal(t, "what came in is left for later", p.has("in/b.log"), guarded)
			if !strings.HasPrefix(first.Output(), "page.") {
				t.Errorf("it does not end by ls: %q", first.Output())
			}
			pages := must.Get(filepath.Glob(p.path("www/page.*")))(t)
			if len(pages) == 0 {
				t.Error("no page")
			}
		})
	}
}

// guardedCrontab makes a place with the guarded crontab. line starts the line with these words as
// cron does, by its SHELL and with -c; shell_linux_test.go does so with real crons.
func guardedCrontab(t *testing.T) (p *place, line func(words string) helper.Command) {
	t.Helper()
	p = newPlace(t)
	p.write("lib/shell", p.source("../../sh/shell"), 0o755)
	p.example("guarded-crontab", "crontab", "/usr/local/bin/", p.path("bin")+"/", "/run/lock/", p.path("lib")+"/", "/srv/site", p.dir)
	shell := regexp.MustCompile(`(?m)^SHELL=(.*)$`).FindStringSubmatch(p.read("crontab"))[1]
	return p, func(words string) helper.Command {
		t.Helper()
		for text := range strings.Lines(p.read("crontab")) {
			if !strings.HasPrefix(text, "#") && strings.Contains(text, words) {
				return p.line(shell, "-c", commandOf(t, text), "ADLOCK_BIN="+helper.Binary(t), "SHELL="+shell)
			}
		}
		t.Fatalf("no line has %q", words)
		return helper.Command{}
	}
}

// commandOf returns the command that cron reads from a line: the text after the five fields,
// without the backslashes before %.
func commandOf(t *testing.T, line string) string {
	t.Helper()
	fields := regexp.MustCompile(`^(?:\S+\s+){5}(.*)\n$`).FindStringSubmatch(line)
	if fields == nil {
		t.Fatalf("no line of a crontab: %q", line)
	}
	return strings.ReplaceAll(fields[1], `\%`, "%")
}

func TestLinesOfAGuardedCrontabRunAsBeforeButNotTwiceAtOnce(t *testing.T) {
	need.Tools(t, "make")
	p, line := guardedCrontab(t)
	p.command("fetch-feeds", await+`: >{dir}/runs; await go; echo "$@" $SHELL`)
	p.command("store", `read -r said; echo "$said" into "$1", $# words`)
	first := line("fetch-feeds").Start(t)
	p.there("runs")
	line("fetch-feeds").Run(t).Is(t, 75, "", "")
	p.write("go", "", 0o644)
	first.Is(p, 0, "…")
	check.Equal(t, "it said", first.Output(), "--all /bin/sh into my feeds, 2 words\n")
	check.Equal(t, "runs", len(p.events(runlog.Acquire)), 1)
	p.write("Makefile", "index:\n\techo made >>notes\n", 0o644)
	line("make --silent index").Run(t).Is(t, 0, "", "")
	p.wantNotes("made")
}

func TestABuildIsRepeatedOnceForAllChangesDuringIt(t *testing.T) {
	p := newPlace(t)
	p.command("build", await+`cat source >>{dir}/notes; : >{dir}/begun; await go; echo built >>{dir}/notes`)
	line := []string{p.example("rebuild", "bin/rebuild"), "site", "build"}
	start := func(source string) *helper.Process {
		p.write("source", source+"\n", 0o644)
		return p.line(line...).Start(t)
	}
	first := start("first")
	p.there("begun")
	second := start("second")
	helper.Eventually(t, "the second waits for the first", func() bool { return len(p.events(runlog.Wait)) == 1 })
	for _, source := range []string{"third", "fourth"} {
		start(source).Is(t, 0, "") // it is dropped
	}
	p.write("go", "", 0o644)
	first.Is(p, 0, "…")
	second.Is(p, 0, "…")
	p.wantNotes("first built fourth built")
	p.silent(line...)
	p.wantNotes("first built fourth built fourth built")
}

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

const atoms = 32

// wantOnce expects that each atom of the example was acquired once.
func (p *place) wantOnce() {
	p.Helper()
	taken, distinct := p.events(runlog.Acquire), map[string]bool{}
	for _, e := range taken {
		distinct[e.Operator+" "+e.Operand] = true
	}
	if len(taken) != atoms || len(distinct) != atoms {
		p.Errorf("%d atoms were taken %d times", len(distinct), len(taken))
	}
}

// The pass maintains a small machine that the test has made.
func TestAPassRunsItsAtomsAndTheNextFindsThemTooSoon(t *testing.T) {
	p := newPlace(t)
	p.write("root/etc/motd", "Welcome.\n", 0o644)
	must.Do(t, os.MkdirAll(p.path("root/usr"), 0o755))
	p.command("pgrep", ":") // the example finds cron running
	line := []string{p.example("site-pass", "bin/site-pass"), p.path("root")}
	p.silent(line...)
	p.wantOnce()
	if info, err := os.Stat(p.path("root/home/shared")); err != nil || info.Mode().Perm() != 0o775 || info.Mode()&os.ModeSetgid == 0 {
		t.Errorf("%v (%v)", info, err)
	}
	check.Equal(t, "the copy", p.read("root/usr/local/etc/motd"), "Welcome.\nReport trouble to root.\n")
	if to, err := os.Readlink(p.path("root/var/adm")); err != nil || to != "../var/log" {
		t.Errorf("%q (%v)", to, err)
	}
	must.Do(t, os.RemoveAll(p.path("root/srv/www")))
	p.silent(line...)
	p.wantOnce()
	helper.Absent(t, p.path("root/srv/www")) // no atom ran again within its 15 minutes
	if left, _ := filepath.Glob(p.path("locks/lock.*")); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

func TestTheSetupScriptSetsUpAMachineAndThenChangesNothing(t *testing.T) {
	p := newPlace(t)
	for _, dir := range []string{"cron.d", "collector", "rules"} {
		must.Do(t, os.Mkdir(p.path(dir), 0o755))
	}
	p.write("setup", strings.NewReplacer("/etc/cron.d/", p.path("cron.d")+"/", "/var/lib/prometheus/node-exporter", p.path("collector"),
		"/etc/prometheus/rules", p.path("rules"), "/etc/adlock.conf", p.path("adlock.conf"), "/usr/lib/adlock", p.path("lib/adlock")).Replace(p.source("park/setup")), 0o755)
	rules := must.Get(os.ReadFile(filepath.Join(helper.Root(), "cmd/adlock-report/adlock-alerts.yml")))(t)
	p.write("lib/adlock/adlock-alerts.yml", string(rules), 0o644)
	const jobs = "\nMAILTO=root\n*/5 * * * *  root  : feeds ; /bin/true\n\n\n" // with blank lines at the end
	p.write("cron.d/site", " SHELL\t= /bin/bash"+jobs, 0o600)

	first := p.line(p.path("setup")).Run(t)
	for _, file := range []string{"adlock.conf", "cron.d/site", "cron.d/adlock-metrics", "rules/adlock-alerts.yml"} {
		helper.Contains(t, first.Out, "changed: "+p.path(file)+"\n")
	}
	if got, want := p.read("cron.d/site"), "SHELL="+p.path("lib/adlock")+"/shell\nADLOCK_SHELL= /bin/bash"+jobs; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	for file, want := range map[string]os.FileMode{"cron.d/site": 0o600, "cron.d/adlock-metrics": 0o644} {
		if info, err := os.Stat(p.path(file)); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v, want mode %v", file, info.Mode(), err, want)
		}
	}
	check.Equal(t, "the rules", p.read("rules/adlock-alerts.yml"), string(rules))
	p.silent(p.path("setup"))
	if left, err := filepath.Glob(p.path("*/*.new")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
	before := p.read("cron.d/site")
	p.command("sed", "echo cut short; exit 4")
	p.line(p.path("setup")).Run(t).Is(t, 4, "", "")
	check.Equal(t, "the crontab", p.read("cron.d/site"), before)
}
