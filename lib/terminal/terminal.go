// Package terminal finds out what the person who reads can be shown: colour,
// how wide a line may be, and whether there are characters beyond ASCII. And it
// keeps what others have named from doing anything to their terminal.
package terminal

import (
	"encoding/hex"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// Is says whether f is a terminal.
func Is(f *os.File) bool {
	_, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	return err == nil
}

// Width is how many columns f has: $COLUMNS, else the terminal's, else 80.
func Width(f *os.File) int {
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	if size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ); err == nil && size.Col > 0 {
		return int(size.Col)
	}
	return 80
}

// Unicode says whether the locale has UTF-8: the first of LC_ALL, LC_CTYPE and
// LANG that is not empty decides (POSIX.1-2017, 8.2).
func Unicode() bool {
	for _, key := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if value := os.Getenv(key); value != "" {
			value = strings.ToLower(value)
			return strings.Contains(value, "utf-8") || strings.Contains(value, "utf8")
		}
	}
	return false
}

// Paint colours text, or does not.
type Paint bool

// Colours is the Paint for f: colour only on a terminal that has it, and never
// where NO_COLOR is set and not empty (no-color.org).
func Colours(f *os.File) Paint {
	term := os.Getenv("TERM")
	return Paint(os.Getenv("NO_COLOR") == "" && term != "" && term != "dumb" && Is(f))
}

// Style is what a Paint paints with: a parameter of SGR (ECMA-48).
type Style string

// The styles.
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

// Text is text in the style.
func (p Paint) Text(style Style, text string) string {
	if !p || style == Plain || text == "" {
		return text
	}
	return "\x1b[" + string(style) + "m" + text + "\x1b[0m"
}

// Clean makes text that anybody may have chosen fit to be shown: on one line,
// without control characters, and as UTF-8.
func Clean(text string) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !strconv.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
}

// Escaped is Clean for programs: each byte of what Clean hides is written as \xNN,
// so that two texts stay two.
func Escaped(text string) string {
	var b strings.Builder
	for rest := text; rest != ""; {
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

// Cut shortens text to width columns, one for each character; its end is the
// more telling half of a path or command line, so it is cut in the middle.
// Where there is no Unicode the gap is "~".
func Cut(text string, width int, gap string) string {
	runes := []rune(text)
	if len(runes) <= width || width < 1 {
		return text
	}
	head := (width - 1) / 3
	return string(runes[:head]) + gap + string(runes[len(runes)-(width-1-head):])
}

// Pad adds spaces to text up to width columns.
func Pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(text)))
}
