package lockfile

import (
	"os"
	"slices"
	"strings"
	"testing"

	"adlock/lib/atom"
)

func TestReadersAreFoundWhateverTheirFilesAreCalled(t *testing.T) {
	d := newDir(t)
	part := func(c string) string { return strings.Repeat(c, 60) }
	long := atom.Name(part("p") + "." + part("h") + "." + part("o") + "." + part("x"))
	want := []string{long.ReaderLock(7), long.ReaderLock(4194304)}
	others := []string{long.ReadersMark(), long.ReadersMark() + ".x", long.ActiveLock(), "r.a.b", atom.Name("a.b.c.d").ReaderLock(7)}
	for _, file := range append(others, want...) {
		must(t, os.WriteFile(d.Path(file), nil, 0o600))
	}
	readers, err := d.Readers(long)
	must(t, err)
	var found []string
	for _, f := range readers {
		found = append(found, f.String())
	}
	slices.Sort(found)
	slices.Sort(want)
	if !slices.Equal(found, want) {
		t.Errorf("found %q", found)
	}
}
