package learn

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// prefix is what the keys of a state begin with, among other lines of a file.
const prefix = "learn."

// field is one key of the text form.
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

// Lines are the state as key=value lines, none for the zero State.
func (s State) Lines() []string {
	var lines []string
	for _, f := range s.fields() {
		if f.text != "" {
			lines = append(lines, prefix+f.key+"="+f.text)
		}
	}
	return lines
}

// Parse reads what Lines wrote from the keys and values of a file. If a value is invalid it returns
// the zero State: learning then starts anew.
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

func number(key string, to *int, most int) field {
	f := field{key: key, read: func(text string) (ok bool) {
		n, err := strconv.Atoi(text)
		*to = n
		return err == nil && n >= 0 && n <= most
	}}
	if *to != 0 {
		f.text = strconv.Itoa(*to)
	}
	return f
}

func logarithm(key string, to *float64) field {
	f := field{key: key, read: func(text string) bool {
		x, err := strconv.ParseFloat(text, 64)
		*to = x
		return err == nil && x >= 0 && x < 40 // not NaN either
	}}
	if *to != 0 {
		f.text = strconv.FormatFloat(*to, 'g', 6, 64)
	}
	return f
}

func age(key string, to *time.Duration) field {
	f := field{key: key, read: func(text string) bool {
		d, err := time.ParseDuration(text)
		*to = d
		return err == nil && d >= 0
	}}
	if *to != 0 {
		f.text = to.String()
	}
	return f
}

func flag(key string, to *bool) field {
	f := field{key: key, read: func(text string) bool {
		*to = text == "yes"
		return *to
	}}
	if *to {
		f.text = "yes"
	}
	return f
}
