// Package json writes JSON text (RFC 8259), value by value. It is a writer
// only: the helper prints JSON and never reads it, and the standard library's
// package, which does both by reflection, is 135 KB of a program that has to
// start quickly and be copied about.
package json

import (
	"strconv"
	"time"
	"unicode/utf8"

	"adlock/lib/limit"
	"adlock/lib/runlog"
)

// Writer collects one JSON text. Members of an object are written with their
// key, elements of an array and the text itself with the key "". The zero value
// is ready; it is not for concurrent use.
type Writer struct {
	text  []byte
	comma bool
}

// Bytes is what was written, with a newline behind it.
func (w *Writer) Bytes() []byte { return append(w.text, '\n') }

// Reset forgets what was written and keeps the memory.
func (w *Writer) Reset() { w.text, w.comma = w.text[:0], false }

// Object writes an object whose members are written by members.
func (w *Writer) Object(key string, members func()) { w.nest(key, '{', '}', members) }

// Array writes an array whose elements are written by elements.
func (w *Writer) Array(key string, elements func()) { w.nest(key, '[', ']', elements) }

func (w *Writer) nest(key string, open, end byte, inside func()) {
	w.begin(key)
	w.text = append(w.text, open)
	w.comma = false
	inside()
	w.text = append(w.text, end)
	w.comma = true
}

func (w *Writer) begin(key string) {
	if w.comma {
		w.text = append(w.text, ',')
	}
	w.comma = true
	if key != "" {
		w.text = append(appendString(w.text, key), ':')
	}
}

// Text writes a string. Bytes that are no UTF-8 become U+FFFD.
func (w *Writer) Text(key, value string) {
	w.begin(key)
	w.text = appendString(w.text, value)
}

// Some writes a string that is left out where it is empty.
func (w *Writer) Some(key, value string) {
	if value != "" {
		w.Text(key, value)
	}
}

// Int writes a whole number.
func (w *Writer) Int(key string, n int) {
	w.begin(key)
	w.text = strconv.AppendInt(w.text, int64(n), 10)
}

// OptInt writes a whole number that may be absent.
func (w *Writer) OptInt(key string, n runlog.Opt[int]) {
	if n.Set {
		w.Int(key, n.Value)
	}
}

// Float writes a number, which must be finite.
func (w *Writer) Float(key string, n float64) {
	w.begin(key)
	w.text = strconv.AppendFloat(w.text, n, 'f', -1, 64)
}

// Bool writes true or false.
func (w *Writer) Bool(key string, b bool) {
	w.begin(key)
	w.text = strconv.AppendBool(w.text, b)
}

// Seconds writes a duration as a number of seconds, limit.Never as "never".
func (w *Writer) Seconds(key string, d time.Duration) {
	if d == limit.Never {
		w.Text(key, "never")
		return
	}
	w.Float(key, d.Seconds())
}

// OptSeconds writes a duration that may be absent.
func (w *Writer) OptSeconds(key string, d runlog.Opt[time.Duration]) {
	if d.Set {
		w.Seconds(key, d.Value)
	}
}

// Time writes a time in UTC as RFC 3339 has it; the zero time is left out.
func (w *Writer) Time(key string, t time.Time) {
	if !t.IsZero() {
		w.Text(key, t.UTC().Format(time.RFC3339Nano))
	}
}

const hexDigits = "0123456789abcdef"

func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, '\\', 'n')
		case r < ' ' || r == 0x7f:
			b = append(b, '\\', 'u', '0', '0', hexDigits[r>>4], hexDigits[r&15])
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}
