package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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
		if err := t.run("", exactly(reach{test: test}), 5*time.Minute, "-test.coverprofile", profile); err != nil {
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

// steps puts the tests in the order in which they are tried on a mutant: those
// that run through it and are quick, then the other ones that do, and then the
// rest, as what a test starts as a second process is in no profile.
func steps(m mutant, all []reach) [][]reach {
	var parts [4][]reach
	for _, r := range all {
		part := 0
		if r.took >= quick {
			part++
		}
		if !r.through(m) {
			part += 2
		}
		parts[part] = append(parts[part], r)
	}
	return slices.DeleteFunc(parts[:], func(part []reach) bool { return len(part) == 0 })
}

// quick tests take no longer.
const quick = 300 * time.Millisecond

func (r reach) through(m mutant) bool {
	return slices.ContainsFunc(r.blocks, func(b block) bool { return b.has(m) })
}

// exactly matches these tests and no others.
func exactly(tests ...reach) string {
	var names []string
	for _, r := range tests {
		names = append(names, regexp.QuoteMeta(r.test))
	}
	return "^(" + strings.Join(names, "|") + ")$"
}

// try tells what becomes of a mutant that the binary is or holds.
func (t *target) try(m mutant, number string, all []reach) (fate, error) {
	for _, tests := range steps(m, all) {
		if f, err := judge(t.run(number, exactly(tests...), patience(tests))); f != survived || err != nil {
			return f, err
		}
	}
	return survived, nil
}

// patience is what tests may take on a machine that others use.
func patience(tests []reach) time.Duration {
	limit := 20 * time.Second
	for _, r := range tests {
		limit += 4 * r.took
	}
	return limit
}

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
