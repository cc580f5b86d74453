package runlog

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Values are quoted as logfmt has it, which is to say as JSON strings, so any
// logfmt reader takes our lines. What logfmt cannot say is a byte that is no
// UTF-8 (go-logfmt and log/slog turn it into U+FFFD, and two atoms into one):
// such a byte is written as the lone surrogate \udc80 to \udcff, as Python's
// surrogateescape does (PEP 383). No valid text has surrogates, so this can be
// read back; to other readers it is a replacement character.
//
// Whatever does not print is escaped too, so that a runlog may be shown on a
// terminal.

const hexDigits = "0123456789abcdef"

// escapedByte is the surrogate that stands for the byte 0; only 0x80 and above occur.
const escapedByte = 0xdc00

// appendValue appends s, in quotes where it needs them.
func appendValue(b []byte, s string) []byte {
	if isBare(s) {
		return append(b, s...)
	}
	b = append(b, '"')
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && size == 1:
			b = appendUnit(b, escapedByte|rune(s[0]))
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case strconv.IsPrint(r):
			b = append(b, s[:size]...)
		default:
			b = appendEscape(b, r)
		}
		s = s[size:]
	}
	return append(b, '"')
}

// isBare says whether s means itself without quotes.
func isBare(s string) bool {
	for i := 0; i < len(s); i++ {
		if !isBareByte(s[i]) || s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return s != ""
}

// isBareByte says whether c may stand in a value without quotes.
func isBareByte(c byte) bool {
	return c > ' ' && c != '"' && c != '=' && c != '\\' && c != 0x7f
}

// appendEscape appends a character that does not print.
func appendEscape(b []byte, r rune) []byte {
	switch r {
	case '\n':
		return append(b, '\\', 'n')
	case '\r':
		return append(b, '\\', 'r')
	case '\t':
		return append(b, '\\', 't')
	}
	if r1, r2 := utf16.EncodeRune(r); r1 != utf8.RuneError {
		return appendUnit(appendUnit(b, r1), r2)
	}
	return appendUnit(b, r)
}

// EscapeJSON returns a JSON text with each character that does not print escaped, as in a
// runlog; encoding/json leaves many of them as they are. Line feeds stay.
func EscapeJSON(text []byte) []byte {
	b := make([]byte, 0, len(text))
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		if r == '\n' || strconv.IsPrint(r) {
			b = append(b, text[:size]...)
		} else {
			b = appendEscape(b, r)
		}
		text = text[size:]
	}
	return b
}

// appendUnit appends one UTF-16 unit as \uHHHH.
func appendUnit(b []byte, u rune) []byte {
	return append(b, '\\', 'u', hexDigits[u>>12&15], hexDigits[u>>8&15], hexDigits[u>>4&15], hexDigits[u&15])
}

// unquote is the value of what stands between two quotes. ok is false if an
// escape is none.
func unquote(q []byte) (s string, ok bool) {
	var out strings.Builder
	out.Grow(len(q))
	for len(q) > 0 {
		if q[0] != '\\' {
			out.WriteByte(q[0])
			q = q[1:]
			continue
		}
		if len(q) < 2 {
			return "", false
		}
		if q[1] == 'u' {
			if q, ok = unescapeUnit(&out, q); !ok {
				return "", false
			}
			continue
		}
		i := strings.IndexByte(`"\/nrtbf`, q[1])
		if i < 0 {
			return "", false
		}
		out.WriteByte("\"\\/\n\r\t\b\f"[i])
		q = q[2:]
	}
	return out.String(), true
}

// unescapeUnit writes what the \uHHHH at the beginning of q stands for, with
// the second half of a pair if it is the first, and returns what follows.
func unescapeUnit(out *strings.Builder, q []byte) (rest []byte, ok bool) {
	u, ok := unit(q)
	if !ok {
		return nil, false
	}
	q = q[6:]
	if u >= escapedByte+0x80 && u <= escapedByte+0xff {
		out.WriteByte(byte(u))
		return q, true
	}
	if utf16.IsSurrogate(u) {
		low, ok := unit(q)
		if u = utf16.DecodeRune(u, low); !ok || u == utf8.RuneError {
			return nil, false
		}
		q = q[6:]
	}
	out.WriteRune(u)
	return q, true
}

// unit is the value of the \uHHHH at the beginning of q.
func unit(q []byte) (u rune, ok bool) {
	if len(q) < 6 || q[0] != '\\' || q[1] != 'u' {
		return 0, false
	}
	v, err := strconv.ParseUint(string(q[2:6]), 16, 16)
	return rune(v), err == nil
}
