package terminal

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"adlock/lib/limit"
	"adlock/test/support/must"
	_ "adlock/test/support/need" // the same environment, however the suite is started
)

func TestAPipeGetsNoColour(t *testing.T) {
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	r, w, err := os.Pipe()
	must.Do(t, err)
	defer r.Close()
	defer w.Close()
	if Is(w) || bool(Colours(w)) {
		t.Error("a pipe is taken for a terminal")
	}
	if got := Colours(w).Text(Red, "x"); got != "x" {
		t.Errorf("painted %q", got)
	}
}

func TestTheFirstSetLocaleVariableDecidesOnUnicode(t *testing.T) {
	for _, c := range []struct {
		all, ctype, lang string
		want             bool
	}{
		{"", "", "", false},
		{"", "", "en_GB.UTF-8", true},
		{"C", "", "en_GB.UTF-8", false},
		{"", "de_DE.utf8", "C", true},
		{"", "POSIX", "C.UTF-8", false},
	} {
		t.Setenv("LC_ALL", c.all)
		t.Setenv("LC_CTYPE", c.ctype)
		t.Setenv("LANG", c.lang)
		if got := Unicode(); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestNeitherCleanNorEscapedTextCanMoveTheCursor(t *testing.T) {
	if got := Clean("a\x1b[2Jb\nc\xffd\u200e\u00e9"); got != "a?[2Jb?c?d?\u00e9" {
		t.Errorf("cleaned %q", got)
	}
	if got := Escaped("a\x1b[2J\tb\nc\xffd\u200e\u00e9\ufffd\u009b"); got != `a\x1b[2J\x09b\x0ac\xffd\xe2\x80\x8e`+"\u00e9\ufffd"+`\xc2\x9b` {
		t.Errorf("escaped %q", got)
	}
}

func TestWideCharactersTakeTwoColumnsAndCombiningOnesNone(t *testing.T) {
	for text, want := range map[string]int{"": 0, "abc": 3, "\u00e9": 1, "e\u0301": 1, "\u65e5\u672c": 4, "\u2026": 1} {
		if got := Columns(text); got != want {
			t.Errorf("%q takes %d, want %d", text, got, want)
		}
	}
}

func TestTextIsCutAndPaddedToColumns(t *testing.T) {
	const text = "/\u65e5\u672c\u8a9e/e\u0301\u65e5\u672c\u8a9e"
	for width := 1; width < 20; width++ {
		got := Pad(Cut(text, width, "~"), width)
		if Columns(got) != width || !utf8.ValidString(got) {
			t.Errorf("%q takes %d columns, want %d", got, Columns(got), width)
		}
	}
}

func TestDurationHasTwoUnitsAtMost(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                                     "0s",
		1500 * time.Nanosecond:                "1ms",
		250 * time.Millisecond:                "250ms",
		3 * time.Second:                       "3s",
		3250 * time.Millisecond:               "3.2s",
		62*time.Second + 600*time.Millisecond: "1m3s",
		time.Hour - 200*time.Millisecond:      "1h",
		3*time.Hour + 29*time.Minute + 40*time.Second: "3h30m",
		26*time.Hour + 40*time.Minute:                 "1d3h",
		24 * 30 * time.Hour:                           "4w2d",
		-90 * time.Second:                             "-1m30s",
		limit.Never:                                   "never",
		-limit.Never - 1:                              "-never",
	} {
		if got := Duration(d); got != want {
			t.Errorf("%d ns: %s, want %s", d, got, want)
		}
	}
}

func TestAgesAreRoundedDownAndRemainingTimesUp(t *testing.T) {
	for d, want := range map[time.Duration]string{-time.Second: "in the future", -time.Millisecond: "0s ago", time.Second: "1s ago"} {
		if got := Ago(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
	for d, want := range map[time.Duration][2]string{
		0: {"0s", "0s"}, 557 * time.Millisecond: {"557ms", "557ms"}, 1299 * time.Millisecond: {"1.2s", "1.3s"},
		9990 * time.Millisecond: {"9.9s", "10s"}, 15*time.Minute - time.Millisecond: {"14m59s", "15m"},
		2*time.Hour + 119*time.Second: {"2h1m", "2h2m"}, limit.Never: {"never", "never"},
	} {
		if got := [2]string{Age(d), Left(d)}; got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}

func TestShortenedNamesStayDifferent(t *testing.T) {
	for _, c := range []struct{ names, want []string }{
		{[]string{"backup run x", "sync run y"}, []string{"backup run x", "sync run y"}},
		{
			[]string{"p run nightly backup of the first database", "q run nightly backup of the first database"},
			[]string{"p run ni…e first database", "q run ni…e first database"},
		},
		{ // the place where they differ
			[]string{"job run abcdefghijklmnopqrstuvwxyz1abcdefghijklmnopqrstuvwxyz", "job run abcdefghijklmnopqrstuvwxyz2abcdefghijklmnopqrstuvwxyz"},
			[]string{"…pqrstuvwxyz1abcdefghijk…", "…pqrstuvwxyz2abcdefghijk…"},
		},
		{ // those of several hosts are alike
			[]string{"make run /home/user/projects/one make all", "make run /home/user/projects/one make all"},
			[]string{"make run…cts/one make all", "make run…cts/one make all"},
		},
	} {
		if got := Shortened(c.names, 25, "…"); !slices.Equal(got, c.want) {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestAShortenedNameFitsTheWidth(t *testing.T) {
	names := []string{"fetch run /usr/local/bin/fetch --all --and --everything --else --there --is", "make run /a/b/c/d make",
		"job run äöüäöüäöüäöüäöü1äöüäöüäöü", "job run äöüäöüäöüäöüäöü2äöüäöüäöü", "job run äöüäöüäöüäöüäöüÄäöüäöüäöü"}
	for width := 1; width < 80; width++ {
		for _, name := range Shortened(names, width, "~") {
			if Columns(name) > width || !utf8.ValidString(name) {
				t.Errorf("%d: %q", width, name)
			}
		}
	}
}

func TestFoldedTextFitsAndLosesNothing(t *testing.T) {
	const text = "  stuck: its owner cannot be checked from here; adlock clear adlock.host.run.a-name-that-is-longer-than-the-line"
	for width := 5; width < 120; width++ {
		var joined string
		for _, line := range Fold(text, "    ", width) {
			if Columns(line) > width {
				t.Errorf("%d: %q", width, line)
			}
			joined += line
		}
		if without := func(s string) string { return strings.ReplaceAll(s, " ", "") }; without(joined) != without(text) {
			t.Errorf("%d: %q", width, joined)
		}
	}
	if got := Fold(text, "    ", 0); !slices.Equal(got, []string{text}) {
		t.Errorf("without a width: %q", got)
	}
	for width, want := range map[int][]string{10: {"  one two", "    three", "    \u4e16\u754c"}, 5: {"  one", "    t", "    w", "    o", "    t", "    h", "    r", "    e", "    e", "    \u4e16\u754c"}} {
		if got := Fold("  one two three \u4e16\u754c", "    ", width); !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
