package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"adlock/test/support/story"
)

// drawn are command lines to which the name of a file is added, by the text at the end of that file.
var drawn = map[string][]string{
	"</svg>\n":  {"timeline", "--since", "2026-11-20", "--until", "2026-11-21", "--svg"},
	"</html>\n": {"report", "--html"},
}

func TestAnOutputFileIsReplacedAndADashIsStandardOutput(t *testing.T) {
	p := newPlace(t)
	p.write(t, story.Day())
	for end, verb := range drawn {
		file := filepath.Join(t.TempDir(), "file")
		must(t, os.WriteFile(file, []byte("old"), 0o600))
		if out := p.ok(t, append(verb, file)...); out != "" {
			t.Errorf("%q says %.100q", verb, out)
		}
		kept, err := os.ReadFile(file)
		if err != nil || !strings.HasSuffix(string(kept), end) || strings.HasPrefix(string(kept), "old") {
			t.Errorf("%q wrote %.100q, %v", verb, kept, err)
		}
		has(t, p.ok(t, append(verb, "-")...), end, "backup run")
		if left, _ := filepath.Glob(filepath.Join(filepath.Dir(file), "*")); len(left) != 1 {
			t.Errorf("%q left %q", verb, left)
		}
	}
}

func TestALinkToAnOutputFileStaysAndItsTargetIsReplaced(t *testing.T) {
	p := newPlace(t)
	p.write(t, story.Day())
	for _, verb := range [][]string{{"report", "--html", "<!DOCTYPE html>"}, {"metrics", "--output", "# HELP "}} {
		dir := t.TempDir()
		must(t, os.WriteFile(dir+"/target", []byte("old text\n"), 0o600))
		must(t, os.Symlink("target", dir+"/link.prom"))
		p.ok(t, append(verb[:2:2], dir+"/link.prom")...)
		if to, err := os.Readlink(dir + "/link.prom"); to != "target" || !strings.HasPrefix(read(t, dir+"/target"), verb[2]) {
			t.Errorf("%q: the link leads to %q, %v, or the target is not replaced", verb, to, err)
		}
	}
}

func TestOnlyRegularOutputFilesAreReplaced(t *testing.T) {
	p := newPlace(t)
	p.write(t, story.Day())
	dir := t.TempDir()
	for _, verb := range drawn {
		for file, want := range map[string]string{
			dir: "adlock: " + dir + ": is a directory: want the name of a file\n", dir + "/no/file.prom": "adlock: " + dir + "/no/file.prom: open: no such file or directory\n",
		} {
			p.command(append(verb, file)...).Run(t).Is(t, 73, "", want)
		}
		p.command(append(verb, "")...).Run(t).Refused(t, 64, "adlock: ")
		p.ok(t, append(verb, "/dev/null")...)
		if info, err := os.Stat("/dev/null"); err != nil || info.Mode().IsRegular() {
			t.Fatalf("%q replaced /dev/null: %v", verb, err)
		}
	}
}
