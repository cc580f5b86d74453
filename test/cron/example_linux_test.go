package cron

// These tests run the files of test/examples, and try what their comments promise.

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"adlock/lib/runlog"
	"adlock/test/support/check"
	"adlock/test/support/helper"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

// place is where one example runs: it has the library as `make install` leaves it (lib),
// the example and its programs (bin), the locks, and the files that the test reads.
type place struct {
	*testing.T
	dir string
}

func newPlace(t *testing.T) *place {
	t.Helper()
	t.Parallel()
	return placeIn(t, t.TempDir())
}

func placeIn(t *testing.T, dir string) *place {
	t.Helper()
	p := &place{t, dir}
	for _, name := range []string{"lib", "bin"} {
		must.Do(t, os.Mkdir(p.path(name), 0o755))
	}
	p.write("lib/adlock.sh", p.installed("adlock.sh", helper.Binary(t)), 0o644)
	p.write("lib/adlock.mk", p.source("../../sh/adlock.mk"), 0o644)
	return p
}

func (p *place) path(name string) string { return filepath.Join(p.dir, name) }

// source returns the text of a file, by its path from test/examples.
func (p *place) source(name string) string {
	p.Helper()
	text, err := os.ReadFile(filepath.Join(helper.Root(), "test/examples", name))
	must.Do(p.T, err)
	return string(text)
}

// installed returns a file of sh as `make install` leaves it, with the helper's path.
func (p *place) installed(name, bin string) string {
	p.Helper()
	const unset = "_adlock_installed=''"
	text := p.source("../../sh/" + name)
	if strings.Count(text, unset) != 1 {
		p.Fatalf("sh/%s has no line %s", name, unset)
	}
	return strings.Replace(text, unset, "_adlock_installed="+bin, 1)
}

// write writes a file; {dir} stands for the place.
func (p *place) write(name, text string, mode os.FileMode) {
	p.Helper()
	must.Do(p.T, os.MkdirAll(filepath.Dir(p.path(name)), 0o755))
	must.Do(p.T, need.WriteProgram(p.path(name), []byte(strings.ReplaceAll(text, "{dir}", p.dir)), mode))
}

// command writes a stand-in for a program of that name.
func (p *place) command(name, script string) {
	p.Helper()
	p.write("bin/"+name, "#!/bin/sh\n"+script+"\n", 0o755)
}

// example copies an example into the place. It replaces the library's directory, and the texts
// in changes, pairs of an old and a new one: for example a time that is too long for a test.
func (p *place) example(name, to string, changes ...string) string {
	p.Helper()
	text := strings.ReplaceAll(p.source(name), "/usr/lib/adlock/", p.path("lib")+"/")
	for i := 0; i < len(changes); i += 2 {
		if !strings.Contains(text, changes[i]) {
			p.Fatalf("%s has no %q", name, changes[i])
		}
		text = strings.ReplaceAll(text, changes[i], changes[i+1])
	}
	p.write(to, text, 0o755)
	return p.path(to)
}

// line returns a command that runs in the place; words such as NAME=value go to its environment.
func (p *place) line(words ...string) helper.Command {
	c := helper.Command{Dir: p.dir, Env: []string{
		"PATH=" + p.path("bin") + ":" + filepath.Dir(helper.Binary(p)) + ":" + os.Getenv("PATH"), "LC_ALL=C",
		"ADLOCK_DIR=" + p.path("locks"), "ADLOCK_HOST=" + host, "ADLOCK_PAUSE=1s",
	}}
	for _, word := range words {
		if name, _, is := strings.Cut(word, "="); is && name == strings.ToUpper(name) {
			c.Env = append(c.Env, word)
		} else {
			c.Args = append(c.Args, word)
		}
	}
	if c.Args[0] == "adlock" {
		c.Args[0] = helper.Binary(p)
	}
	return c
}

// silent runs a command line to its end, and expects status 0 and no output.
func (p *place) silent(words ...string) {
	p.Helper()
	p.line(words...).Run(p).Is(p, 0, "", "")
}

// notes returns what the commands of an example have noted, line by line.
func (p *place) notes() []string {
	text, err := os.ReadFile(p.path("notes"))
	if err != nil {
		return nil
	}
	return strings.Fields(string(text))
}

func (p *place) wantNotes(want string) {
	p.Helper()
	check.Equal(p, "noted", strings.Join(p.notes(), " "), want)
}

// there waits until the file exists.
func (p *place) there(name string) {
	p.Helper()
	helper.Eventually(p, name+" is there", func() bool { return p.has(name) })
}

func (p *place) has(name string) bool {
	_, err := os.Lstat(p.path(name))
	return err == nil
}

func (p *place) read(name string) string {
	p.Helper()
	text, err := os.ReadFile(p.path(name))
	must.Do(p.T, err)
	return string(text)
}

// await, in a script, waits for a file of the place, as long as the test may wait for something else
// meanwhile (helper.Patience), so that no process outlives the test by much.
const await = `await() { n=0; until [ -e "{dir}/$1" ]; do n=$((n + 1)); [ $n -lt 1800 ] || exit 99; sleep 0.05; done; }
`

// events returns the runlog's events of one kind.
func (p *place) events(kind runlog.Kind) []runlog.Event { return p.eventsOf(host, kind) }

func (p *place) eventsOf(host string, kind runlog.Kind) []runlog.Event {
	p.Helper()
	var list []runlog.Event
	for e, err := range runlog.Read(p.path("locks"), host, math.MaxInt64) {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // no newcomer has asked yet
		}
		must.Do(p.T, err)
		if e.Kind == kind {
			list = append(list, e)
		}
	}
	return list
}

func TestShellcheckHasNoComplaintAboutTheExamples(t *testing.T) {
	need.Tools(t, "shellcheck")
	p := newPlace(t)
	// Shellcheck cannot read the library here (1091), which uses what seems unused (2034).
	words := []string{"shellcheck", "--severity=warning", "--exclude=SC1091,SC2034"}
	for _, name := range scripts(t) {
		words = append(words, filepath.Join(helper.Root(), "test/examples", name))
	}
	p.silent(words...)
}

// scripts are the examples that a shell runs.
func scripts(t *testing.T) []string {
	t.Helper()
	var list []string
	root := filepath.Join(helper.Root(), "test/examples")
	must.Do(t, filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if first, _, _ := strings.Cut(string(text), "\n"); strings.HasPrefix(first, "#!") && strings.HasSuffix(first, "sh") {
			name, _ := filepath.Rel(root, path)
			list = append(list, name)
		}
		return err
	}))
	return list
}
