// Package lint finds the usual mistakes with locks in crontabs. It reports only what is certain
// or nearly so: about what depends on more than the file it is silent, as people stop using a
// checker that is often wrong. Package crontab reads the lines, mvdan.cc/sh parses the commands
// in them; nothing is ever run.
package lint

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"adlock/lib/atom"
	"adlock/lib/config"
	"adlock/lib/cronline"
	"adlock/lib/crontab"
)

// Mistake is one mistake, at a line of the file.
type Mistake struct {
	Line   int
	What   string
	Reason string
	Cure   string
}

// Checker checks texts. Its fields are what a text does not say.
type Checker struct {
	Options    []config.Option // of `adlock run`
	Host       string          // where the atoms are
	UserColumn bool            // crontabs have one, whatever they look like
	Elsewhere  []string        // further directories than cron's PATH in which a command may be
	CronPath   string          // PATH in a crontab that does not set it
	Shell      string          // adlock's own for crontabs, as installed; "": it is not

	// The errors of `adlock run` about options, and of the shell for crontabs about a line:
	// run.Refusal and run.LineRefusal.
	Refusal     func(getenv func(name string) string, args []string) error
	LineRefusal func(getenv func(name string) string, l cronline.Line) error
	Nearest     func(variable string) string // the setting that was meant by a variable that is none; ""

	IsUser   func(name string) bool
	Homeless func(user, home string) bool  // crontab.Wrapper has it too
	Longest  func(atom.Atom) time.Duration // the longest run that succeeded; 0: none is known

	locked map[string]taken // locks of the crontabs so far
	used   map[string]taken // lock directories of theirs
}

// tab is a crontab.
type tab struct {
	path, user string // user: its owner, if known, and the lines name none
	lines      []crontab.Line
}

// errNone is why a text is not checked.
var errNone = errors.New("is no crontab")

// Most is how many bytes a text may have, which is more than any crontab that a person has
// written.
const Most = 1 << 20

// Check returns the mistakes in the text of the crontab at path, in the order of the lines.
// What it finds depends on the crontabs that were checked before: two may have one lock.
func (c *Checker) Check(path, text string) ([]Mistake, error) {
	t, err := c.read(path, text)
	if err != nil {
		return nil, err
	}
	if c.locked == nil {
		c.locked, c.used = map[string]taken{}, map[string]taken{}
	}
	mistakes := slices.DeleteFunc(c.jobs(t), func(m Mistake) bool { return ignored.MatchString(t.lines[m.Line-1].Text()) })
	slices.SortStableFunc(mistakes, func(a, b Mistake) int { return cmp.Compare(a.Line, b.Line) })
	return mistakes, nil
}

// ignored matches a line whose mistakes are intended.
var ignored = regexp.MustCompile(`#.*\badlock: *ignore\b`)

// mostLines is how many lines a crontab may have: Debian's cron takes no more
// (CVE-2019-9705).
const mostLines = 10000

// read reads a text as a crontab, with a user column if its place requires one, or if it seems to
// have one.
func (c *Checker) read(path, text string) (*tab, error) {
	switch {
	case len(text) > Most:
		return nil, fmt.Errorf("%w: larger than %d MiB", errNone, Most>>20)
	case strings.Count(text, "\n") > mostLines:
		return nil, fmt.Errorf("%w: more than %d lines", errNone, mostLines)
	}
	userColumn, user := place(path)
	userColumn = userColumn || c.UserColumn
	t := &tab{path: path, user: user, lines: crontab.Read(text, userColumn)}
	if isScript(t.lines) {
		return nil, fmt.Errorf("%w, but a script: shellcheck looks for mistakes in those", errNone)
	}
	if err := crontab.Refuse(t.lines); err != nil {
		return nil, err
	}
	isUser := func(word string) bool { return c.IsUser != nil && c.IsUser(word) }
	if !userColumn && user == "" && crontab.Misread(t.lines, false, isUser, c.isCommand) != nil {
		t.lines = crontab.Read(text, true)
	}
	return t, nil
}

// isScript reports whether a text names an interpreter in its first line, which is a comment in a
// crontab. If it has jobs, and no line that cron does not understand, it is a crontab all the
// same.
func isScript(lines []crontab.Line) bool {
	if len(lines) == 0 || !strings.HasPrefix(lines[0].Text(), "#!") {
		return false
	}
	of := func(kind crontab.Kind) bool {
		return slices.ContainsFunc(lines, func(l crontab.Line) bool { return l.Kind == kind })
	}
	return !of(crontab.Job) || of(crontab.Unknown)
}
