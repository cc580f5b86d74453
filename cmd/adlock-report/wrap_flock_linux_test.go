package main

import (
	"path/filepath"
	"strings"
	"testing"

	"adlock/test/support/helper"
	"adlock/test/support/need"
)

// underFlock returns what wrap --flock makes of the line, and checks that unwrap restores the line.
func (p place) underFlock(t *testing.T, line string) (wrapped string) {
	t.Helper()
	r := p.wrap(t, line, "--flock")
	if r.Status != 0 || !strings.Contains(r.Out, " --flock ") {
		t.Fatalf("%s: status %d: %s%s", line, r.Status, r.Out, r.Err)
	}
	p.wrap(t, r.Out, "--unwrap", "--flock").Is(t, 0, line, "adlock: standard input: lines unwrapped: 1\n")
	return r.Out
}

// hold starts flock(1), which holds the file f in dir until the test ends.
func hold(t *testing.T, dir string, options ...string) *helper.Process {
	t.Helper()
	holder := helper.Command{Dir: dir, Args: append(append([]string{"flock", "-F"}, options...), "f", "sh", "-c", "echo held; exec sleep 1000")}.Start(t)
	helper.Eventually(t, "flock holds f", func() bool { return holder.Output() != "" })
	return holder
}

// Each line runs before and after wrap, started as cron does, while no process has the file f, while
// flock(1) holds it, and while flock(1) shares it.
func TestAWrappedFlockLineBehavesAsBefore(t *testing.T) {
	t.Parallel()
	need.Tools(t, "flock")
	for _, how := range []string{"free", "held", "shared"} {
		t.Run(how, func(t *testing.T) {
			p, dir := newPlace(t), t.TempDir()
			must(t, need.WriteProgram(filepath.Join(dir, "job"), []byte("#!/bin/sh\necho \"$#:$*\"; exit 9\n"), 0o755))
			switch how {
			case "held":
				hold(t, dir)
			case "shared":
				hold(t, dir, "-s")
			}
			for _, line := range []string{
				`flock -n f ./job a "b  c"`, `/usr/bin/flock -xn f ./job $HOME; echo $?`, `flock -nE 7 f ./job || echo denied $?`, `flock -w .05 f ./job`, `flock -w 0 --conflict-exit-code=0 -- f ./job && echo 0`,
				`flock -sn f ./job`, `flock -ns f -c './job "a b"; exit 5'`, `cd .; A=b flock -n f sh -c 'echo $A; exit 4' >out 2>&1; cat out`, `flock -n f cat%in \% %put`, `flock -n f sh -c 'kill -9 $$'`,
				`flock -n f true && flock -n g ./job | tr 0-9 a-z`, `flock -n g flock -n f ./job`, `exec nice flock -n f ./job`, `flock -n . ./job`, `flock -n "f" --command "exit 3"`, `flock -n f true & wait $!; echo $?`,
			} {
				before := "* * * * * " + line + "\n"
				want, got := p.cron(t, dir, "/bin/sh", before), p.cron(t, dir, "/bin/sh", p.underFlock(t, before))
				if got.Out != want.Out || got.Status != want.Status || alike(got.Err) != alike(want.Err) {
					t.Errorf("%s:\n%+v, before\n%+v", line, got, want)
				}
			}
		})
	}
}
