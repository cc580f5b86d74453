// Package limit reads and writes durations as settings spell them: "90s", "1h30m", "1.5h", "0", "never".
package limit

import (
	"cmp"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
)

// Never is longer than any duration: a limit that is never reached.
const Never = time.Duration(math.MaxInt64)

const day = 24 * time.Hour

const step = time.Millisecond

var units = []struct {
	name   string
	length time.Duration
}{{"w", 7 * day}, {"d", day}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond}}

// Form says how durations are written.
const Form = `numbers with ms s m h d w, as in "90s", "1h30m", "1.5h"; or 0`

// Parse reads a duration: a sum of numbers with the units ms s m h d w, "0" or "never". It refuses what
// would be rounded to 0, as 0 has a meaning of its own. It refuses a number without a unit too: some people
// mean seconds, and others minutes.
func Parse(text string) (time.Duration, error) {
	if text == "never" {
		return Never, nil
	}
	if d, ok := scan(InMinutes(text)); ok && d < Never && (d == 0 || !LacksUnit(text)) {
		return d, nil
	}
	if LacksUnit(text) {
		return 0, errors.New(text + ": say " + text + "s or " + text + "m")
	}
	return 0, Bad(text, `"never"`)
}

// Bad returns the error for a text that is no duration. words lists the words that are allowed too.
func Bad(text, words string) error {
	want := "want " + Form + ", " + words
	if TooLong(text) {
		want = "too long: at most 15250w"
	}
	return errors.New("bad duration " + strconv.Quote(text) + " (" + want + ")")
}

// LacksUnit reports whether text is a number that would be a duration if it had a unit.
func LacksUnit(text string) bool {
	d, ok := scan(text + "m")
	return ok && d < Never && strings.Trim(text, digits) == ""
}

// TooLong reports whether text would be a duration if a time.Duration could be that long.
func TooLong(text string) bool {
	d, ok := scan(text)
	return ok && d == Never
}

// InMinutes adds the unit m to a number without a unit, as in the 1997 paper. It is for IfElapsed
// and ExpireAfter in the library's arguments and in variables.
func InMinutes(text string) string {
	if LacksUnit(text) {
		return text + "m"
	}
	return text
}

func scan(text string) (total time.Duration, ok bool) {
	ok = text != ""
	for text != "" {
		number, rest := cutPrefixOf(text, digits)
		unit, rest := cutPrefixOf(rest, "dhmsw")
		d, ok := product(number, lengthOf(unit))
		if !ok {
			return 0, false
		}
		total, text = total+min(d, Never-total), rest
	}
	return total, ok
}

const digits = "0123456789."

func cutPrefixOf(text, set string) (prefix, rest string) {
	rest = strings.TrimLeft(text, set)
	return text[:len(text)-len(rest)], rest
}

func product(number string, unit time.Duration) (d time.Duration, ok bool) {
	whole, fraction, dot := strings.Cut(number, ".")
	n, _ := strconv.ParseInt(whole, 10, 64) // at most math.MaxInt64
	if whole == "" || unit == 0 || dot && fraction == "" {
		return 0, false
	}
	part, err := strconv.ParseFloat("0."+fraction, 64)
	if err != nil {
		return 0, false
	}
	d = time.Duration(n)*unit + time.Duration(math.Round(part*float64(unit/step)))*step
	if n > int64((Never-1)/unit) || d < 0 {
		d = Never
	}
	return d, d > 0 || strings.Trim(number, "0.") == ""
}

func lengthOf(name string) time.Duration {
	for _, unit := range units {
		if unit.name == name {
			return unit.length
		}
	}
	return 0
}

// Format writes d in the notation of Parse, in whole milliseconds. For measured times use FormatAge.
func Format(d time.Duration) string {
	if d == Never {
		return "never"
	}
	if d < 0 {
		return "-" + Format(-max(d, -Never))
	}
	text := ""
	for _, unit := range units {
		if n := d / unit.length; n > 0 {
			text += strconv.FormatInt(int64(n), 10) + unit.name
			d %= unit.length
		}
	}
	return cmp.Or(text, "0s")
}

// Exact writes d to the nanosecond for [time.ParseDuration], in ASCII, as yash's read stops at a µ.
func Exact(d time.Duration) string { return strings.Replace(d.String(), "µ", "u", 1) }

// FormatAge cuts off fractions of a second, so that no age looks as if it had reached a limit before it has.
func FormatAge(d time.Duration) string {
	if d == Never {
		return "never"
	}
	return Format(d.Truncate(time.Second))
}

// FormatLeft rounds up to whole seconds, so that age and time left add up to the limit. A negative d gives "0s".
func FormatLeft(d time.Duration) string { return FormatAge(Up(max(0, d), time.Second)) }

// Up rounds d, which must not be negative, up to a whole number of steps; Never stays Never.
func Up(d, step time.Duration) time.Duration {
	if down := d.Truncate(step); d != Never && down < d {
		return down + step
	}
	return d
}

// The bounds of a lease. A sixth of the shortest is a second, the least time that package killer gives KILL.
const (
	ShortestLease = 6 * time.Second
	LongestLease  = time.Hour
)
