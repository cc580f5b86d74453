package crontab

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"mvdan.cc/sh/v3/syntax"

	"adlock/lib/cronline"
)

// WithoutSleep returns a command without the shell around it and the sleep before it, if any. sleep has the arguments
// of that sleep; "" if there is none.
func WithoutSleep(text string) (rest, sleep string) {
	rest = strings.TrimSpace(text)
	if file, err := Parse(rest); err == nil && len(file.Stmts) == 1 {
		if call, is := file.Stmts[0].Cmd.(*syntax.CallExpr); is {
			if inner := calledShell(wordsOf(rest, call)); inner != nil {
				return WithoutSleep(inner[0])
			}
		}
	}
	if sleep, after, ok := cronline.CutSleep(rest); ok {
		return after, sleep
	}
	return rest, ""
}

var (
	amounts  = regexp.MustCompile(`^(\d+(?:\.\d+)?[smhd]?\s*)+$`)
	amount   = regexp.MustCompile(`(\d+(?:\.\d+)?)([smhd]?)`)
	modulo   = regexp.MustCompile(`%\s*\d`)
	division = regexp.MustCompile(`[*/]`)
	digits   = regexp.MustCompile(`\$\{RANDOM:\d+:(\d)\}`)
	shuffled = regexp.MustCompile(`\bshuf\b.*-i\s*\d+-(\d+)`)
	units    = map[string]time.Duration{"": time.Second, "s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour}
)

// noticeable says that a sleep shorter than 1/noticeable of the time between starts hardly matters.
const noticeable = 10

// LongSleep returns the arguments of the sleep with which the command begins, and the longest time that it lasts. The
// time is 0 if there is no sleep, or if the sleep is too short to matter for the lock (noticeable).
func (l *Line) LongSleep(command string) (words string, longest time.Duration) {
	_, words = WithoutSleep(command)
	if longest = longestSleep(words); l.Schedule.Shortest == 0 || noticeable*longest < l.Schedule.Shortest {
		return words, 0
	}
	return words, longest
}

const mostRandom = 32767

// longestSleep returns the longest duration of a sleep with these words; 0 if unknown. $RANDOM counts as mostRandom.
func longestSleep(words string) (longest time.Duration) {
	unit := units[""]
	if last := len(words) - 1; last > 0 && strings.IndexByte(")}`", words[last-1]) >= 0 {
		unit = max(unit, units[words[last:]])
	}
	seconds := func(text string) time.Duration {
		n, _ := strconv.ParseUint(text, 10, 24) // out of range: n is the largest number
		return time.Duration(n) * unit
	}
	switch {
	case amounts.MatchString(words), modulo.MatchString(words) && !division.MatchString(words):
		for _, found := range amount.FindAllStringSubmatch(words, -1) {
			n, _ := strconv.ParseFloat(found[1], 64)
			longest += time.Duration(min(n, 1<<24) * float64(max(unit, units[found[2]])))
		}
		return longest
	case digits.MatchString(words):
		return seconds(strings.Repeat("9", int(digits.FindStringSubmatch(words)[1][0]-'0')))
	case shuffled.MatchString(words):
		return seconds(shuffled.FindStringSubmatch(words)[1])
	case strings.Contains(words, "RANDOM") && !division.MatchString(words):
		return mostRandom * unit
	}
	return 0
}
