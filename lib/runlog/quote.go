package runlog

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Values are quoted as JSON strings, so any logfmt reader accepts adlock's lines. logfmt cannot represent a byte that
// is not UTF-8. It is written as a lone surrogate, \udc80 to \udcff, which can be read back, as in Python's
// surrogateescape (PEP 383). Characters that do not print are escaped too, so that a runlog may be shown on a terminal.

const hexDigits = "0123456789abcdef"

// escapedByte plus a byte from 0x80 to 0xff is the surrogate that stands for that byte.
const escapedByte = 0xdc00

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

func isBare(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf || !isBareByte(byte(r)) })
}

func isBareByte(c byte) bool {
	return c > ' ' && c != '"' && c != '=' && c != '\\' && c != 0x7f
}

func appendEscape(b []byte, r rune) []byte {
	if i := strings.IndexRune("\n\r\t", r); i >= 0 {
		return append(b, '\\', "nrt"[i])
	}
	if r1, r2 := utf16.EncodeRune(r); r1 != utf8.RuneError {
		return appendUnit(appendUnit(b, r1), r2)
	}
	return appendUnit(b, r)
}

// EscapeJSON escapes those characters of a JSON text, except line feeds, that do not print.
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

func appendUnit(b []byte, u rune) []byte {
	return append(b, '\\', 'u', hexDigits[u>>12&15], hexDigits[u>>8&15], hexDigits[u>>4&15], hexDigits[u&15])
}

func unquote(q []byte) (out []byte, ok bool) {
	out = make([]byte, 0, len(q))
	for len(q) > 0 {
		if q[0] != '\\' {
			out = append(out, q[0])
			q = q[1:]
			continue
		}
		if len(q) < 2 {
			return nil, false
		}
		if q[1] == 'u' {
			if out, q, ok = unescapeUnit(out, q); !ok {
				return nil, false
			}
			continue
		}
		i := strings.IndexByte(`"\/nrtbf`, q[1])
		if i < 0 {
			return nil, false
		}
		out = append(out, "\"\\/\n\r\t\b\f"[i])
		q = q[2:]
	}
	return out, true
}

// unescapeUnit decodes the \u escape at the beginning of q (or two, for a surrogate pair). It appends the character,
// or the escaped byte, to out, and returns the rest of q.
func unescapeUnit(out, q []byte) (longer, rest []byte, ok bool) {
	u, ok := unit(q)
	if !ok {
		return nil, nil, false
	}
	q = q[6:]
	if u >= escapedByte+0x80 && u <= escapedByte+0xff {
		return append(out, byte(u)), q, true
	}
	if utf16.IsSurrogate(u) {
		low, ok := unit(q)
		if u = utf16.DecodeRune(u, low); !ok || u == utf8.RuneError {
			return nil, nil, false
		}
		q = q[6:]
	}
	return utf8.AppendRune(out, u), q, true
}

func unit(q []byte) (u rune, ok bool) {
	if len(q) < 6 || q[0] != '\\' || q[1] != 'u' {
		return 0, false
	}
	v, err := strconv.ParseUint(string(q[2:6]), 16, 16)
	return rune(v), err == nil
}
