package terminal

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

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

func TestAShortenedNameFits(t *testing.T) {
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
	if got, want := Fold("  one two three", "    ", 10), []string{"  one two", "    three"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
