// Package lint finds the usual mistakes with locks in shell scripts and crontabs. It
// says only what is certain or nearly so: of what depends on more than the file says it
// is silent, as a checker that is often wrong is not asked again. Scripts are parsed
// by mvdan.cc/sh, crontabs read by package crontab; nothing is ever run.
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
	Elsewhere  []string        // directories in which a command may be that cron's PATH does not have
	CronPath   string          // PATH in a crontab that does not set it
	Shell      string          // adlock's own for crontabs, as it is installed; "": it is not

	// What `adlock run` says of options, and the shell for crontabs of a line, where they
	// would not take them: run.Refusal and run.LineRefusal.
	Refusal     func(getenv func(name string) string, args []string) error
	LineRefusal func(getenv func(name string) string, l cronline.Line) error
	Nearest     func(variable string) string // the setting that was meant by a variable that is none; ""

	IsUser   func(name string) bool
	Homeless func(user, home string) bool  // crontab.Wrapper has it too
	Longest  func(atom.Atom) time.Duration // the longest run that succeeded; 0: none is known
}

// errNeither is why a text is not checked.
var errNeither = errors.New("is neither a shell script nor a crontab")

// Most is how many bytes a text may have, which is more than any script or crontab
// that a person has written.
const Most = 1 << 20

// Check returns the mistakes in the text of a file, in the order of the lines.
func (c *Checker) Check(path, text string) ([]Mistake, error) {
	switch {
	case len(text) > Most:
		return nil, fmt.Errorf("%w: larger than %d MiB", errNeither, Most>>20)
	case strings.Contains(text, "\x00"):
		return nil, fmt.Errorf("%w: it holds a NUL byte", errNeither)
	case isDeep(text):
		return nil, fmt.Errorf("%w that a person has written: its parts are too deep within each other", errNeither)
	}
	mistakes, err := c.check(path, text)
	lines := strings.Split(text, "\n")
	mistakes = slices.DeleteFunc(mistakes, func(m Mistake) bool { return ignored.MatchString(lines[min(m.Line, len(lines))-1]) })
	slices.SortStableFunc(mistakes, func(a, b Mistake) int { return cmp.Compare(a.Line, b.Line) })
	return mistakes, err
}

// ignored is a line whose mistakes are meant.
var ignored = regexp.MustCompile(`#.*\badlock: *ignore\b`)

// check finds out what the text is. One that tells of no shell and is no crontab is a
// script where it says something of locks in a shell's words.
func (c *Checker) check(path, text string) ([]Mistake, error) {
	shell, whole := shellOf(path, text)
	if shell != "" {
		return c.script(path, text, shell, whole)
	}
	if whole {
		return nil, errNeither
	}
	if lines, err := c.crontab(text); err == nil {
		return c.jobs(lines), nil
	}
	if s, err := parseScript(path, text, "sh", false); err == nil && s.saysLock() {
		return c.script(path, text, "sh", false)
	}
	return nil, errNeither
}

// deepest is how far brackets may stand within each other, and most how many words and
// signs a text may have of those that can: the parser, and whoever walks through what it
// has read, goes down with each, and a text of nothing else would take all memory.
const (
	deepest = 2000
	most    = 50000
)

// nesting are the signs and words that are no brackets and nest.
var nesting = []string{"&&", "|", "if", "while", "until", "for", "case", "!"}

func isDeep(text string) bool {
	count := 0
	for _, word := range nesting {
		count += strings.Count(text, word)
	}
	depth := 0
	for i := 0; i < len(text) && depth <= deepest; i++ {
		switch text[i] {
		case '(', '{', '[':
			depth++
		case ')', '}', ']':
			depth = max(0, depth-1)
		}
	}
	return count > most || depth > deepest
}
