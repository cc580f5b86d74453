package cron

import (
	"regexp"
	"strings"
	"testing"

	"adlock/lib/runlog"
	"adlock/test/support/helper"
	"adlock/test/support/need"
)

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
	if r := line("fetch-feeds").Run(t); r.Out+r.Err != "" {
		t.Errorf("while it runs: %+v", r)
	}
	p.write("go", "", 0o644)
	p.ends(first, 0)
	if got := first.Output(); got != "--all /bin/sh into my feeds, 2 words\n" {
		t.Errorf("it said %q", got)
	}
	if n := len(p.events(runlog.Acquire)); n != 1 {
		t.Errorf("%d runs", n)
	}
	p.write("Makefile", "index:\n\techo made >>notes\n", 0o644)
	line("make --silent index").Run(t).Is(t, 0, "", "")
	p.wantNotes("made")
}
