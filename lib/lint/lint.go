// Package lint finds the usual mistakes with locks in crontabs. It reports only what the file and
// this machine show for certain, or nearly so: people stop using a checker that is often wrong.
// Package crontab reads the lines, mvdan.cc/sh parses the commands in them; nothing is ever run.
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

type Mistake struct {
	Line   int
	What   string
	Reason string
	Cure   string
}

// IsNote reports whether the line is right, but its author may have meant something else.
func (m Mistake) IsNote() bool { return m.What == "note" }

// Checker checks crontabs. Its fields are what a crontab's text does not contain.
type Checker struct {
	Options    []config.Option // of `adlock run`
	Host       string          // the host of the atoms
	UserColumn bool            // crontabs have a user column, whatever they look like
	Elsewhere  []string        // directories besides cron's PATH in which a command may be
	CronPath   string          // PATH in a crontab that does not set it
	Shell      string          // the path of adlock's own shell for crontabs; "": it is not installed

	// Refusal is run.Refusal, for `adlock run`; LineRefusal is run.LineRefusal, for adlock's SHELL. Both may be nil.
	Refusal     func(getenv func(name string) string, args []string) error
	LineRefusal func(getenv func(name string) string, l cronline.Line) error
	Nearest     func(variable string) string // the setting that was probably meant by a variable that is none; "": unknown

	IsUser   func(name string) bool
	Unknown  func(name string) bool           // cron finds no such user for a line of the system's crontabs; nil: not checked
	Homeless func(user, home string) bool     // as in crontab.Wrapper
	Dir      func(user, home string) string   // the lock directory of the user ("": unknown) with that HOME ("": the user's own), if no variable names another; "": none known
	Stranger func(dir string) string          // the user to whom a directory belongs, if that is neither root nor this process's user
	Filed    func(user, variable string) bool // a settings file of the user ("": unknown) sets the variable; nil: none does
	Zone     string                           // TZ of this process
	Differs  func(zone string) bool           // a zone's clock differs from the machine's, which cron uses; nil: none
	Missing  func(user, path string) bool     // there is no such file, as that user ("": unknown) sees it

	IsNetwork func(user, path string) bool // a file, as that user ("": unknown) sees it, is on another machine; nil: none is

	// Longest returns how long the longest successful run of the user's ("": unknown) atom took; 0 if none is known.
	Longest func(user string, a atom.Atom) time.Duration

	locked map[string]taken // locks of the crontabs that were checked
	used   map[string]taken // lock directories of the crontabs that were checked
	twins  map[string]taken // jobs of the crontabs that were checked, by place, schedule, command (without its sleep) and input
	listed map[string]map[string]bool
}

type tab struct {
	path, user string // user: the crontab's owner, if known and if the lines name no users
	lines      []crontab.Line
	isUsers    bool                     // a user's own crontab: its lines name no users
	set        map[string]*crontab.Line // the variables above the job that is being checked
	distinct   uint64                   // a hash of set without the variables of cron and of adlock ((*tab).see updates it)
}

func (t *tab) setting(name string) (value string, set bool) {
	if l := t.set[name]; l != nil {
		return l.Value, true
	}
	return "", false
}

// StandardInput is the path of a text from standard input, as `crontab -l` prints it.
const StandardInput = "-"

var errNone = errors.New("is no crontab")

// Most is how many bytes a text may have: more than any crontab that a person has written.
const Most = 1 << 20

// Check returns the mistakes in text, the crontab at path, in line order, except those of lines with `adlock: ignore`.
// A lock that two crontabs share is a mistake of the one checked later. The error says why text is no crontab.
func (c *Checker) Check(path, text string) ([]Mistake, error) {
	if c.locked == nil {
		c.locked, c.used, c.twins, c.listed = map[string]taken{}, map[string]taken{}, map[string]taken{}, map[string]map[string]bool{}
	}
	t, err := c.read(path, text)
	if err != nil {
		return nil, err
	}
	if reason, cure := crontab.Unread(path); reason != "" {
		f := findings{known: map[Mistake]bool{}}
		f.add(1, "a file that cron never reads", reason, cure)
		return f.all, nil // its jobs never run, and so share nothing with others
	}
	mistakes := slices.DeleteFunc(c.jobs(t), func(m Mistake) bool { return ignored.MatchString(t.lines[m.Line-1].Text()) })
	slices.SortStableFunc(mistakes, func(a, b Mistake) int { return cmp.Compare(a.Line, b.Line) })
	return mistakes, nil
}

var ignored = regexp.MustCompile(`#.*\badlock: *ignore\b`)

// mostLines is how many lines Debian's cron accepts (CVE-2019-9705).
const mostLines = 10000

// read reads a crontab, with a user column if its place or UserColumn requires one, or, outside a spool and
// standard input, if most of its jobs seem to have one. It returns an error if text is no crontab.
func (c *Checker) read(path, text string) (*tab, error) {
	switch {
	case len(text) > Most:
		return nil, fmt.Errorf("%w: larger than %d MiB", errNone, Most>>20)
	case strings.Count(text, "\n") > mostLines:
		return nil, fmt.Errorf("%w: more than %d lines", errNone, mostLines)
	}
	userColumn, user := crontab.Place(path)
	if user != "" {
		text = text[len(spoolHead.FindString(text)):]
	}
	userColumn = userColumn || c.UserColumn
	t := &tab{path: path, user: user, lines: crontab.Read(text, userColumn), set: map[string]*crontab.Line{}}
	if isScript(t.lines) {
		return nil, fmt.Errorf("%w, but a script: shellcheck looks for mistakes in those", errNone)
	}
	if err := crontab.Refuse(t.lines); err != nil {
		return nil, err
	}
	isUser := func(word string) bool { return c.IsUser != nil && c.IsUser(word) }
	if !userColumn && user == "" && path != StandardInput {
		if _, userColumn = crontab.Misread(t.lines, false, isUser, c.isCommand); userColumn {
			t.lines = crontab.Read(text, true)
		}
	}
	t.isUsers = !userColumn
	return t, nil
}

// spoolHead matches the comments of Debian's crontab(1) above a user's lines; `crontab -l` hides them.
var spoolHead = regexp.MustCompile(`^# DO NOT EDIT THIS FILE.*\n(?:#.*\n){0,2}`)

// isScript reports whether a text is a script: its first line names an interpreter, and it has no job, or has lines that
// cron refuses.
func isScript(lines []crontab.Line) bool {
	if len(lines) == 0 || !strings.HasPrefix(lines[0].Text(), "#!") {
		return false
	}
	of := func(kind crontab.Kind) bool {
		return slices.ContainsFunc(lines, func(l crontab.Line) bool { return l.Kind == kind })
	}
	return !of(crontab.Job) || of(crontab.Unknown)
}
