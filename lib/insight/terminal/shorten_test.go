package terminal

import (
	"slices"
	"testing"
)

func TestShortenedNamesStayDifferent(t *testing.T) {
	for _, c := range []struct{ names, want []string }{
		{[]string{"backup run x", "sync run y"}, []string{"backup run x", "sync run y"}},
		{ // the directories go first
			[]string{"make run /home/user/projects/one make all", "make run /home/user/projects/two make all"},
			[]string{"make run …/one make all", "make run …/two make all"},
		},
		{ // or what they have in common
			[]string{"make run /home/one/deep/er/still make all", "make run /home/two/deep/er/still make all"},
			[]string{"make …/one/deep/er/still…", "make …/two/deep/er/still…"},
		},
		{ // or the middle
			[]string{"p run nightly backup of the first database", "q run nightly backup of the first database"},
			[]string{"p run ni…e first database", "q run ni…e first database"},
		},
		{ // or nothing
			[]string{"job run abcdefghijklmnopqrstuvwxyz1abcdefghijklmnopqrstuvwxyz", "job run abcdefghijklmnopqrstuvwxyz2abcdefghijklmnopqrstuvwxyz"},
			[]string{"job run abcdefghijklmnopqrstuvwxyz1abcdefghijklmnopqrstuvwxyz", "job run abcdefghijklmnopqrstuvwxyz2abcdefghijklmnopqrstuvwxyz"},
		},
		{ // those of several hosts are alike
			[]string{"make run /home/user/projects/one make all", "make run /home/user/projects/one make all"},
			[]string{"make run …/one make all", "make run …/one make all"},
		},
	} {
		if got := Shortened(c.names, 25, "…"); !slices.Equal(got, c.want) {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestAShortenedNameFits(t *testing.T) {
	names := []string{"fetch run /usr/local/bin/fetch --all --and --everything --else --there --is", "make run /a/b/c/d make"}
	for width := 10; width < 80; width++ {
		for _, name := range Shortened(names, width, "~") {
			if Columns(name) > width {
				t.Errorf("%d: %q", width, name)
			}
		}
	}
}
