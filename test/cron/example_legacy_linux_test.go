package cron

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"adlock/test/support/helper"
	"adlock/test/support/must"
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
				p.ends(second, 0)
				if second.Output() != "" {
					t.Errorf("said %q", second.Output())
				}
			} else {
				helper.Eventually(t, "both run", func() bool { return len(p.notes()) == 2 })
			}
			p.write("go", "", 0o644)
			p.ends(first, 0)
			p.ends(second, 0)
			if guarded != p.has("in/b.log") {
				t.Error("the second start counted what came in, or should have")
			}
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
