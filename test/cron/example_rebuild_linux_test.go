package cron

import (
	"testing"

	"adlock/lib/runlog"
	"adlock/test/support/helper"
)

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
		if r := start(source); r.Wait(t) != 0 || r.Output() != "" {
			t.Errorf("the %s is not dropped: %s", source, r.Output())
		}
	}
	p.write("go", "", 0o644)
	p.ends(first, 0)
	p.ends(second, 0)
	p.wantNotes("first built fourth built")
	p.silent(line...)
	p.wantNotes("first built fourth built fourth built")
}
