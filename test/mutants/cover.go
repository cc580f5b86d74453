package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// reach is what one test runs through, and how long it takes.
type reach struct {
	test   string
	took   time.Duration
	blocks []block
}

// block is a stretch of code as a coverage profile has it.
type block struct {
	file                                 string // its last element
	fromLine, fromColumn, toLine, toLast int
}

func (b block) has(m mutant) bool {
	return b.file == filepath.Base(m.file) && !before(m.line, m.column, b.fromLine, b.fromColumn) &&
		before(m.line, m.column, b.toLine, b.toLast)
}

func before(line, column, thanLine, thanColumn int) bool {
	return line < thanLine || line == thanLine && column < thanColumn
}

// measure runs each test alone on the code as it is: what it reaches, and
// whether the suite passes at all.
func (t *target) measure() ([]reach, error) {
	if err := t.build("-cover"); err != nil {
		return nil, err
	}
	tests, err := t.tests()
	if err != nil {
		return nil, err
	}
	profile := filepath.Join(t.work, "profile")
	var all []reach
	for _, test := range tests {
		begun := time.Now()
		if err := t.run("", exactly(test), 5*time.Minute, "-test.coverprofile", profile); err != nil {
			return nil, fmt.Errorf("%s, unchanged: %s: %w", t.ImportPath, test, err)
		}
		took := time.Since(begun)
		text, err := os.ReadFile(profile)
		if err != nil {
			return nil, err
		}
		all = append(all, reach{test, took, covered(string(text))})
	}
	return all, nil
}

// covered reads a profile: lines of file:line.column,line.column statements count.
func covered(profile string) []block {
	var blocks []block
	for line := range strings.Lines(profile) {
		var b block
		var statements, count int
		file, rest, _ := strings.Cut(line, ":")
		n, _ := fmt.Sscanf(rest, "%d.%d,%d.%d %d %d", &b.fromLine, &b.fromColumn, &b.toLine, &b.toLast, &statements, &count)
		if b.file = filepath.Base(file); n == 6 && count > 0 {
			blocks = append(blocks, b)
		}
	}
	return blocks
}

// reaching are the tests that run through the mutant, and their time.
func reaching(m mutant, all []reach) (tests []string, took time.Duration) {
	for _, r := range all {
		for _, b := range r.blocks {
			if b.has(m) {
				tests = append(tests, r.test)
				took += r.took
				break
			}
		}
	}
	return tests, took
}

func exactly(tests ...string) string {
	for i, test := range tests {
		tests[i] = regexp.QuoteMeta(test)
	}
	return "^(" + strings.Join(tests, "|") + ")$"
}

// try tells what becomes of a mutant that the binary is or holds. The tests that
// reach it come first; if they pass, all the others, as what a test starts as a
// second process is in no profile.
func (t *target) try(m mutant, number string, all []reach) (fate, error) {
	var whole time.Duration
	for _, r := range all {
		whole += r.took
	}
	if tests, took := reaching(m, all); len(tests) > 0 && len(tests) < len(all) {
		if f, err := judge(t.run(number, exactly(tests...), patience(took))); f != survived {
			return f, err
		}
	}
	return judge(t.run(number, ".", patience(whole)))
}

// patience is what tests of this length may take on a machine that others use.
func patience(took time.Duration) time.Duration { return 10*time.Second + 4*took }

func judge(err error) (fate, error) {
	switch {
	case err == nil:
		return survived, nil
	case errors.Is(err, errTimeout):
		return hung, nil
	case errors.Is(err, errCaught):
		return caught, nil
	}
	return survived, err
}
