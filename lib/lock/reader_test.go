package lock

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestAReadersFileIsNamedAsTheVectorsHaveIt(t *testing.T) {
	text, err := os.ReadFile("../../test/vectors/readers.tsv")
	must(t, err)
	cases := 0
	for line := range strings.Lines(string(text)) {
		field := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if strings.HasPrefix(line, "#") {
			continue
		}
		pid, err := strconv.Atoi(field[1])
		must(t, err)
		if got := ReaderFile(field[0], pid); got != field[2] || len(got) > 255 {
			t.Errorf("%d bytes: %s", len(got), got)
		}
		if files, is := IsReader(field[2]); !is || files != field[0] {
			t.Errorf("%s is read back as %q, %v", field[2], files, is)
		}
		cases++
	}
	if cases < 5 {
		t.Fatalf("only %d vectors were read", cases)
	}
}

func TestReadersAreFoundWhateverTheirFilesAreCalled(t *testing.T) {
	d := newDir(t)
	part := func(c string) string { return strings.Repeat(c, 60) }
	long := part("p") + "." + part("h") + "." + part("o") + "." + part("x")
	want := []string{ReaderFile(long, 7), ReaderFile(long, 4194304)}
	for _, file := range append([]string{"read." + long, "read." + long + ".x", "lock." + long, "r.a.b", ReaderFile("a.b.c.d", 7)}, want...) {
		must(t, os.WriteFile(d.Path(file), nil, 0o600))
	}
	readers, err := d.Readers(long)
	must(t, err)
	slices.Sort(readers)
	slices.Sort(want)
	if !slices.Equal(readers, want) {
		t.Errorf("found %q", readers)
	}
	if all, err := d.ReadersIn(part("p") + "." + part("h") + "."); len(all) != 2 || err != nil {
		t.Errorf("of the program: %q, %v", all, err)
	}
	for _, file := range []string{"read." + long, "r.a.b.c.d.7", "read.a.b.c.d.0", "read.a.b.c.d.07", "read.a.b.c.7", "lock.a.b.c.d.7"} {
		if of, is := IsReader(file); is {
			t.Errorf("%s is taken for a reader's lock of %s", file, of)
		}
	}
}
