package cron

import (
	"os"
	"strings"
	"testing"

	"adlock/test/support/must"
	"adlock/test/support/need"
)

// eachMake runs a test with GNU make and with BSD make.
func eachMake(t *testing.T, test func(p *place, program string)) {
	for _, program := range []string{"make", "bmake"} {
		t.Run(program, func(t *testing.T) {
			need.Tools(t, program)
			p := newPlace(t)
			p.example("make/Makefile", "Makefile")
			test(p, program)
		})
	}
}

// suites writes test suites that note whether two use the database at once. Each preparation lasts until all
// eight have begun.
func (p *place) suites() {
	p.Helper()
	p.write("prepare", "#!/bin/sh\n"+await+`: >>{dir}/begun; echo >>{dir}/begun
		[ "$(wc -l <{dir}/begun)" -lt 8 ] || : >{dir}/all
		await all`, 0o755)
	p.write("suite", `#!/bin/sh
		mkdir {dir}/in || echo overlap >>{dir}/notes
		sleep 0.05
		echo "$1" >>{dir}/notes
		rmdir {dir}/in`, 0o755)
}

func TestRecipesRunInParallelExceptForWhatTheyShare(t *testing.T) {
	eachMake(t, func(p *place, program string) {
		p.suites()
		p.line(program, "-j8", "test").Run(p).Is(p, 0, "…", "")
		if notes := p.notes(); len(notes) != 8 || strings.Contains(strings.Join(notes, " "), "overlap") {
			p.Errorf("noted %q", notes)
		}
	})
}

func TestADownloadIsRepeatedIfItFailedOrItsFileIsMissing(t *testing.T) {
	eachMake(t, func(p *place, program string) {
		p.fetches()
		p.write("offline", "", 0o644)
		if r := p.line(program, "refresh").Run(p); r.Status == 0 || p.has("words.gz") {
			p.Errorf("offline: %+v", r)
		}
		must.Do(p.T, os.Remove(p.path("offline")))
		for range 2 {
			p.silently(program, "refresh")
		}
		p.wantNotes("fetched")
		must.Do(p.T, os.Remove(p.path("words.gz")))
		p.silently(program, "refresh")
		p.wantNotes("fetched fetched")
		if p.read("words.gz") != "words 2\n" {
			p.Errorf("got %q", p.read("words.gz"))
		}
	})
}

// silently is like silent, but make may print its directory.
func (p *place) silently(words ...string) {
	p.Helper()
	p.line(words...).Run(p).Is(p, 0, "…", "")
}
