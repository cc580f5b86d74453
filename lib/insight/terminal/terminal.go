// Package terminal finds out what a reader's terminal can show: colour, the width of a line, characters
// beyond ASCII. It also makes foreign names safe to print.
package terminal

import (
	"encoding/hex"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"

	"adlock/lib/fault"
	"adlock/lib/sysfile"
)

func Is(f *os.File) bool { return sysfile.IsTerminal(int(f.Fd())) }

// Width is how many columns f has: $COLUMNS, else the terminal's, else 80.
func Width(f *os.File) int {
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	if columns, _ := sysfile.Columns(int(f.Fd())); columns > 0 {
		return columns
	}
	return 80
}

// Limit is the largest width of a line on f; 0 means no limit, as in a file or a mail if $COLUMNS is not set.
func Limit(f *os.File) int {
	if !Is(f) && os.Getenv("COLUMNS") == "" {
		return 0
	}
	return Width(f)
}

// Unicode reports whether the first non-empty one of LC_ALL, LC_CTYPE and LANG names UTF-8 (POSIX.1-2017, 8.2).
func Unicode() bool {
	for _, key := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if value := os.Getenv(key); value != "" {
			value = strings.ToLower(value)
			return strings.Contains(value, "utf-8") || strings.Contains(value, "utf8")
		}
	}
	return false
}

// Paint says whether text is coloured. If it is false, Text returns texts unchanged.
type Paint bool

// Colours is the Paint for f: true only on a terminal that has colour, and not with NO_COLOR (no-color.org).
func Colours(f *os.File) Paint {
	term := os.Getenv("TERM")
	return Paint(os.Getenv("NO_COLOR") == "" && term != "" && term != "dumb" && Is(f))
}

// Style is a colour or weight: the parameter of a terminal's escape sequence for them (SGR in ECMA-48).
type Style string

const (
	Plain   Style = ""
	Bold    Style = "1"
	Dim     Style = "2"
	Red     Style = "31"
	Green   Style = "32"
	Yellow  Style = "33"
	Magenta Style = "35"
	Cyan    Style = "36"
	Alarm   Style = "1;31"
)

// Text returns text in the style if p is true, else unchanged.
func (p Paint) Text(style Style, text string) string {
	if !p || style == Plain || text == "" {
		return text
	}
	return "\x1b[" + string(style) + "m" + text + "\x1b[0m"
}

// Clean makes foreign text safe to show: it replaces each character that does not print by '?'.
func Clean(text string) string { return fault.Plain(text) }

// Escaped replaces bytes of characters that do not print by \xNN, and doubles backslashes: texts stay distinct.
func Escaped(text string) string {
	var b strings.Builder
	for rest := strings.ReplaceAll(text, `\`, `\\`); rest != ""; {
		r, size := utf8.DecodeRuneInString(rest)
		if strconv.IsPrint(r) && (r != utf8.RuneError || size > 1) {
			b.WriteString(rest[:size])
		} else {
			for _, c := range []byte(rest[:size]) {
				b.WriteString(`\x` + hex.EncodeToString([]byte{c}))
			}
		}
		rest = rest[size:]
	}
	return b.String()
}

// cells counts a wide character of East Asia as two columns, a combining one as none, ambiguous ones as one.
var cells = &runewidth.Condition{}

func Columns(text string) int { return cells.StringWidth(text) }

// Cut shortens text to width columns (not if width is below 1). gap replaces the middle, as a path's end says most.
func Cut(text string, width int, gap string) string {
	if Columns(text) <= width || width < 1 {
		return text
	}
	left := max(0, width-Columns(gap))
	head := cells.Truncate(text, left/3, "")
	return head + gap + cells.TruncateLeft(text, Columns(text)-(left-Columns(head)), "")
}

// Fold breaks text into lines of at most width columns, at spaces if possible. All lines but the first begin with the
// indent. If width is no larger than the indent, or is 0, the text stays one line.
func Fold(text, indent string, width int) (lines []string) {
	for width > Columns(indent) && Columns(text) > width {
		line := cells.Truncate(text, width, "")
		if strings.TrimSpace(line) == "" { // not even one character fits
			break
		}
		rest := text[len(line):]
		if space := strings.LastIndexByte(line, ' '); rest[0] != ' ' && strings.TrimSpace(line[:max(space, 0)]) != "" {
			line, rest = line[:space], text[space:]
		}
		lines = append(lines, strings.TrimRight(line, " "))
		text = indent + strings.TrimLeft(rest, " ")
	}
	return append(lines, text)
}

func Pad(text string, width int) string { return cells.FillRight(text, width) }
