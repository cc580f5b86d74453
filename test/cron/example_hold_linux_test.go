package cron

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"adlock/lib/runlog"
	"adlock/test/support/check"
	"adlock/test/support/helper"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

// languages are the examples that speak with hold, and their interpreters.
var languages = map[string]string{"checksums.py": "python3", "checksums.pl": "perl"}

// checksums makes a place with a directory in which one file is a pipe: its reader waits until the test writes to it.
func checksums(t *testing.T, name string) (p *place, data string) {
	t.Helper()
	need.Tools(t, languages[name])
	p = newPlace(t)
	p.write("data/a", "a\n", 0o644)
	p.write("data/below/c", "c\n", 0o644)
	must.Do(t, syscall.Mkfifo(p.path("data/b"), 0o600))
	p.example(name, "bin/"+name)
	data = must.Get(filepath.EvalSymlinks(p.path("data")))(t)
	return p, data
}

func (p *place) holds(data string) {
	p.Helper()
	helper.Eventually(p, "it is at work", func() bool { return len(p.events(runlog.Acquire)) > 0 })
	helper.Eventually(p, "no process is at its lock", func() bool { return helper.Unguarded(p.locks()[0]) })
	check.Equal(p, "the lock is of", p.events(runlog.Acquire)[0].Operand, "checksums "+data)
}

const sumsOfFiles = "87428fc522803d31065e7bce3cf03fe475096631e5e07bbd7a0fde60c4cf25c7  a\n" +
	"0263829989b6fd954f72baaf2fc64bc2e2f01d692d4de72986ea808f6e99813f  b\n"

func TestProgramsInTwoLanguagesExcludeEachOther(t *testing.T) {
	for first := range languages {
		for second := range languages {
			t.Run(first+" and "+second, func(t *testing.T) {
				p, data := checksums(t, first)
				need.Tools(t, languages[second])
				p.example(second, "bin/"+second)
				owner := p.line(p.path("bin/"+first), p.path("data")).Start(t)
				p.holds(data)
				denied := func(verdict string) {
					p.line(p.path("bin/"+second), data).Run(t).Is(t, 0, verdict+": "+"…", "")
				}
				denied("busy")
				must.Do(t, os.WriteFile(p.path("data/b"), []byte("b\n"), 0)) // its reader continues
				owner.Is(p, 0, "…")
				if said := owner.Output(); said != "" || p.read("data/SHA256SUMS") != sumsOfFiles {
					t.Errorf("said %q, wrote %q", said, p.read("data/SHA256SUMS"))
				}
				denied("too-soon")
				if list := p.events(runlog.Release); len(list) != 1 || list[0].Status.Value != 0 {
					t.Errorf("released: %+v", list)
				}
			})
		}
	}
}

func TestAProgramThatFailedMayRunAgainAtOnce(t *testing.T) {
	for name := range languages {
		t.Run(name, func(t *testing.T) {
			p, _ := checksums(t, name)
			must.Do(t, os.Remove(p.path("data/b")))
			must.Do(t, os.Symlink("nowhere", p.path("data/b")))
			if r := p.line(p.path("bin/"+name), p.path("data")).Run(t); r.Status == 0 || r.Err == "" {
				t.Errorf("%+v", r)
			}
			must.Do(t, os.Remove(p.path("data/b")))
			p.write("data/b", "b\n", 0o644)
			p.silent(p.path("bin/"+name), p.path("data"))
			check.Equal(t, "written", p.read("data/SHA256SUMS"), sumsOfFiles)
		})
	}
}
