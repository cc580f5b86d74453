package name

import (
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestEveryVectorGivesItsName(t *testing.T) {
	text, err := os.ReadFile("../../test/vectors/names.tsv")
	if err != nil {
		t.Fatal(err)
	}
	unescape := strings.NewReplacer(`\\`, `\`, `\t`, "\t")
	cases := 0
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "#") {
			continue
		}
		field := strings.Split(line, "\t")
		if len(field) != 5 {
			t.Fatalf("%q has %d fields", line, len(field))
		}
		for i := range field {
			field[i] = unescape.Replace(field[i])
		}
		atom := Atom{field[0], field[1], field[2], field[3]}
		if got := atom.Name(); got != field[4] {
			t.Errorf("%q is named %q, want %q", atom, got, field[4])
		}
		cases++
	}
	if cases < 30 {
		t.Fatalf("only %d vectors were read", cases)
	}
}

func TestANameIsAFileNameThatFitsEveryFileSystem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.StringN(1, -1, 400)
		atom := Atom{part.Draw(t, "program"), part.Draw(t, "host"), part.Draw(t, "operator"), part.Draw(t, "operand")}
		lock := "lock." + atom.Name()
		if len(lock) > 255 || strings.Trim(lock, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") != "" {
			t.Fatalf("%q is no portable file name", lock)
		}
		if strings.Count(lock, ".") != 4 {
			t.Fatalf("%q does not have five parts", lock)
		}
	})
}

// A pid has seven digits at most (PID_MAX_LIMIT); the generations of an atom in a
// store may have more.
func TestEveryFileOfANameFitsEveryFileSystem(t *testing.T) {
	part := strings.Repeat("x", longestPlain)
	atom := Atom{part, part, part, part}
	for _, prefix := range []string{"lock.", "last.", "read."} {
		if file := prefix + atom.Name(); len(file) > longestFile {
			t.Errorf("%s has %d bytes", file, len(file))
		}
		for n := 1; n < 1e9; n = 10*n + 9 {
			file := OneOf(prefix, atom.Name(), n)
			if of, number, is := NumberOf(prefix, file); len(file) > longestFile || of != atom.Name() || number != n || !is {
				t.Errorf("%d bytes, read back as %q, %d: %s", len(file), of, number, file)
			}
		}
	}
	if file := "lock." + atom.Slot(1000); len(file) > longestFile {
		t.Errorf("%s has %d bytes", file, len(file))
	}
}

func TestPartsWithoutAChecksumAreDistinct(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.StringMatching(`[a-c/._-]{1,6}`)
		a, b := part.Draw(t, "a"), part.Draw(t, "b")
		if a != b && Canonify(a) == Canonify(b) {
			t.Fatalf("%q and %q are both %q", a, b, Canonify(a))
		}
	})
}

func TestEmptyPartsAreRefused(t *testing.T) {
	for _, atom := range []Atom{{"", "h", "o", "x"}, {"p", "", "o", "x"}, {"p", "h", "", "x"}, {"p", "h", "o", ""}} {
		if atom.Check() == nil {
			t.Errorf("%#v was accepted", atom)
		}
	}
}

func FuzzCanonify(f *testing.F) {
	f.Add("/etc/motd")
	f.Add("\x00\xff日")
	f.Fuzz(func(t *testing.T, part string) {
		if got := Canonify(part); len(got) > longestPlain {
			t.Fatalf("%q has %d bytes", got, len(got))
		}
	})
}

func TestParseReadsNamesBack(t *testing.T) {
	for text, want := range map[string]Atom{
		"cfengine_conf.dax.editfile._etc_motd": {"cfengine.conf", "dax", "editfile", "/etc/motd"},
		"backup.dax.run.a-12345":               {},
		"backup.dax.slot-1":                    {},
		"a.b.c":                                {},
		"a.b..d":                               {},
		"a.b.c.d/e":                            {},
	} {
		if got, ok := Parse(text); got != want && ok || ok != (want != Atom{}) {
			t.Errorf("%s: %v, %v", text, got, ok)
		}
	}
}
