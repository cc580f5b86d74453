// Package limit reads and writes durations the way every setting of adlock
// spells them: "15" is fifteen minutes (the unit of the 1997 paper), "90s",
// "1h30m", "never".
package limit

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
)

// Never is longer than any duration: a limit that is never reached.
const Never = time.Duration(math.MaxInt64)

const day = 24 * time.Hour

var units = []struct {
	letter byte
	length time.Duration
}{{'w', 7 * day}, {'d', day}, {'h', time.Hour}, {'m', time.Minute}, {'s', time.Second}}

// Parse reads a duration: a whole number of minutes, a sum of whole numbers
// with the units s m h d w ("1h30m"), or "never". The error quotes the text.
func Parse(text string) (time.Duration, error) {
	if text == "never" {
		return Never, nil
	}
	if d, ok := scan(text); ok {
		return d, nil
	}
	return 0, errors.New("bad duration " + strconv.Quote(text) + ` (want minutes, a sum such as "1h30m", or "never")`)
}

func scan(text string) (total time.Duration, ok bool) {
	if isDigits(text) {
		text += "m"
	}
	for text != "" {
		digits := strings.IndexFunc(text, func(r rune) bool { return r < '0' || r > '9' })
		if digits <= 0 {
			return 0, false
		}
		n, err := strconv.ParseInt(text[:digits], 10, 64)
		unit := lengthOf(text[digits])
		if err != nil || unit == 0 || n > int64((Never-1-total)/unit) {
			return 0, false
		}
		total += time.Duration(n) * unit
		text = text[digits+1:]
		ok = true
	}
	return total, ok
}

func isDigits(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}

func lengthOf(letter byte) time.Duration {
	for _, unit := range units {
		if unit.letter == letter {
			return unit.length
		}
	}
	return 0
}

// Format writes d in the same notation, to the second ("3m12s", "1d2h"); less
// than a second is "0s". The result can be read by Parse.
func Format(d time.Duration) string {
	if d == Never {
		return "never"
	}
	if d < 0 {
		return "-" + Format(-d)
	}
	text := ""
	for _, unit := range units {
		if n := d / unit.length; n > 0 {
			text += strconv.FormatInt(int64(n), 10) + string(unit.letter)
			d %= unit.length
		}
	}
	if text == "" {
		return "0s"
	}
	return text
}
