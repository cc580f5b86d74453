package learn

import (
	"math"
	"strconv"
	"strings"
	"time"

	"adlock/lib/limit"
)

const prefix = "learn."

type field struct {
	key  string
	text string // the value to write; "": the key is left out
	read func(string) bool
}

func (s *State) fields() [11]field {
	return [...]field{
		number("runs", &s.Runs, math.MaxInt32),
		logarithm("mean", &s.mean),
		logarithm("deviation", &s.deviation),
		logarithm("longest", &s.now),
		logarithm("longest_before", &s.before),
		age("ended", &s.ended),
		number("doubled", &s.doubled, tries),
		number("ended_in_a_row", &s.inARow, mostInRow),
		number("since_ended", &s.since, calm),
		flag("hangs", &s.hangs),
		number("stretched", &s.stretched, stretches),
	}
}

// Lines returns the state as key=value lines, none for the zero State.
func (s State) Lines() []string {
	var lines []string
	for _, f := range s.fields() {
		if f.text != "" {
			lines = append(lines, prefix+f.key+"="+f.text)
		}
	}
	return lines
}

// Parse reads what Lines wrote. If a value is invalid it returns the zero State: learning then starts anew.
func Parse(values map[string]string) State {
	var s State
	for _, f := range s.fields() {
		if text, there := values[prefix+f.key]; there && !f.read(text) {
			return State{}
		}
	}
	return s
}

// Is reports whether a key of a file belongs to a state.
func Is(key string) bool { return strings.HasPrefix(key, prefix) }

// value makes a field, which is left out if it is zero. valid reports whether a state can have the value.
func value[T comparable](key string, to *T, format func(T) string, parse func(string) (T, error), valid func(T) bool) field {
	f := field{key: key, read: func(text string) bool {
		v, err := parse(text)
		*to = v
		return err == nil && valid(v)
	}}
	if *to != *new(T) {
		f.text = format(*to)
	}
	return f
}

func number(key string, to *int, most int) field {
	return value(key, to, strconv.Itoa, strconv.Atoi, func(n int) bool { return n >= 0 && n <= most })
}

func logarithm(key string, to *float64) field {
	format := func(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }
	parse := func(text string) (float64, error) { return strconv.ParseFloat(text, 64) }
	return value(key, to, format, parse, func(x float64) bool { return x >= 0 && x < 40 }) // not NaN either
}

func age(key string, to *time.Duration) field {
	return value(key, to, limit.Exact, time.ParseDuration, func(d time.Duration) bool { return d >= 0 })
}

func flag(key string, to *bool) field {
	return value(key, to, func(bool) string { return "yes" }, func(text string) (bool, error) { return text == "yes", nil }, func(set bool) bool { return set })
}
