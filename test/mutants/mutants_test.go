package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"adlock/test/need"
)

// changes lists the changes of one function's body.
func changes(t *testing.T, signature, body string) []string {
	t.Helper()
	source := "package p\n\nfunc f" + signature + " {\n" + body + "\n}\n"
	found, err := find("lib/p/p.go", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, m := range found {
		list = append(list, m.change)
		if _, err := parser.ParseFile(token.NewFileSet(), "", m.apply([]byte(source)), 0); err != nil {
			t.Errorf("%s: %v", m, err)
		}
	}
	return list
}

func TestEachKindOfChangeIsMade(t *testing.T) {
	for _, c := range []struct{ signature, body, want string }{
		{"()", "_ = a == b", "without _ = a == b|a == b with !="},
		{"() bool", "return a < b", "a < b with >=|a < b with <="},
		{"() bool", "return a && b", "a && b with ||"},
		{"() bool", "return !a", "!a => a"},
		{"() bool", "return a.b()", "a.b() => !a.b()"},
		{"() bool", "return true", "true => false"},
		{"() int", "return a + 60", "a + 60 with -|60 => 61"},
		{"() string", `return a + "b" + c`, ""},
		{"()", "a++", "a++ with --"},
		{"()", "a += b", "without a += b|a += b with -="},
		{"()", "a()", "without a()"},
		{"()", "defer a()", "without defer a()"},
		{"()", "for {\ncontinue\n}", "without continue"},
		{"()", "if a {\nreturn\n}", "a => !a|without return"},
		{"() (int, error)", "return a, b()", "b() => nil"},
		{"() (int, error)", "return a, nil", ""},
		{"() (int, error)", "return a()", ""},
		{"()", "a := func() error { return b }\nc(a)", "b => nil|without c(a)"},
	} {
		if got := strings.Join(changes(t, c.signature, c.body), "|"); got != c.want {
			t.Errorf("%s %s: %s, want %s", c.signature, c.body, got, c.want)
		}
	}
}

func TestAMutantIsKnownAgainBelowNewLines(t *testing.T) {
	body := "func (d *T) f() bool { return a < b }\n"
	one, err := find("p.go", []byte("package p\n\n"+body))
	if err != nil {
		t.Fatal(err)
	}
	two, err := find("p.go", []byte("package p\n\nimport \"x\"\n\n"+body))
	if err != nil {
		t.Fatal(err)
	}
	if one[0].key() != two[0].key() || one[0].line == two[0].line {
		t.Errorf("%s is %q, %s is %q", one[0], one[0].key(), two[0], two[0].key())
	}
	if want := "p.go: T.f: a < b with >=: func (d *T) f() bool { return a < b }"; one[0].key() != want {
		t.Errorf("key is %q", one[0].key())
	}
}

func TestAnEquivalentMutantNeedsAReason(t *testing.T) {
	got, err := parseEquivalents("# words\n\na.go: f: x: y\n\tbecause\n\tit is so\nb.go: g: x: y\n\tas above\n")
	if err != nil || len(got) != 2 || got["a.go: f: x: y"] != "because it is so" {
		t.Errorf("read %q, %v", got, err)
	}
	for _, bad := range []string{"a: b\n", "\treason alone\n", "a: b\n\tonce\na: b\n\ttwice\n"} {
		if _, err := parseEquivalents(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func TestEveryEquivalentMutantIsStillThere(t *testing.T) {
	reasons, err := parseEquivalents(equivalents)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for key := range reasons {
		file, _, _ := strings.Cut(key, ": ")
		source, err := os.ReadFile(filepath.Join("../..", file))
		if err != nil {
			t.Fatal(err)
		}
		mutants, err := find(file, source)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range mutants {
			found[m.key()] = true
		}
	}
	for key := range reasons {
		if !found[key] {
			t.Errorf("equivalent.txt names a mutant that is no more: %s", key)
		}
	}
}

func TestAProfileTellsWhichTestsReachAMutant(t *testing.T) {
	profile := "mode: set\nadlock/lib/p/p.go:3.10,5.2 1 1\nadlock/lib/p/q.go:1.1,9.2 4 0\n"
	r := reach{blocks: covered(profile)}
	for _, c := range []struct {
		m    mutant
		want bool
	}{
		{mutant{file: "lib/p/p.go", line: 4, column: 1}, true},
		{mutant{file: "lib/p/p.go", line: 3, column: 10}, true},
		{mutant{file: "lib/p/p.go", line: 3, column: 9}, false},
		{mutant{file: "lib/p/p.go", line: 5, column: 2}, false},
		{mutant{file: "lib/p/q.go", line: 4, column: 1}, false},
	} {
		if got := r.through(c.m); got != c.want {
			t.Errorf("%s:%d:%d is reached: %v", c.m.file, c.m.line, c.m.column, got)
		}
	}
}

func TestQuickTestsThatReachAMutantComeFirst(t *testing.T) {
	here := []block{{"p.go", 1, 1, 9, 1}}
	all := []reach{
		{"TestSlowElsewhere", quick, nil}, {"TestElsewhere", 0, nil},
		{"TestSlow", quick, here}, {"TestQuick", 0, here}, {"TestAlso", quick - 1, here},
	}
	var got []string
	for _, tests := range steps(mutant{file: "p.go", line: 2, column: 1}, all) {
		got = append(got, exactly(tests...))
	}
	if want := []string{"^(TestQuick|TestAlso)$", "^(TestSlow)$", "^(TestElsewhere)$", "^(TestSlowElsewhere)$"}; !slices.Equal(got, want) {
		t.Errorf("tried %q, want %q", got, want)
	}
	if got := steps(mutant{file: "q.go"}, all[2:]); len(got) != 2 {
		t.Errorf("steps without tests: %v", got)
	}
}

// module writes a module of its own and makes its package the target.
func module(t *testing.T, code, test string) *target {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module m\n\ngo 1.24\n", "m.go": code, "m_test.go": test} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	target, err := load(".", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(target.work) })
	return target
}

const code = `package m

const one = 1

type pair struct{ a, b int }

func (p *pair) less() bool { return p.a < p.b }

func sum[T int | int64](start T, _ string, more ...T) (total T) {
	total = start
	for _, n := range more {
		total += n
	}
	return total
}

func unused(m, x map[string]string) string {
	m["b"] = x["a"]
	return m["b"]
}

func endless(n int) {
	for n > 0 {
		n--
	}
}
`

const test = `package m

import "testing"

func TestAll(t *testing.T) {
	p := pair{1, 2}
	if !p.less() || sum(1, "", 2, 3) != 6 || one != 1 {
		t.Fatal()
	}
	endless(3)
}
`

// Of this module's mutants one moves a boundary that no test tries, one is in a
// function that no test calls, one leaves a variable unused, and one is a constant.
func TestMutantsOfAModuleMeetTheirFates(t *testing.T) {
	need.Namespaces(t, namespace()[1:]...)
	target := module(t, code, test)
	mutants, err := target.mutants()
	if err != nil {
		t.Fatal(err)
	}
	reached, err := target.measure()
	if err != nil {
		t.Fatal(err)
	}
	target.jobs = 3
	got := map[fate][]string{}
	fast := func(i int) bool { return mutants[i].function != "endless" } // that is caught by the time it takes
	err = target.all(mutants, fast, reached, func(m mutant, f fate) { got[f] = append(got[f], m.change) })
	if err != nil {
		t.Fatal(err)
	}
	for f, want := range map[fate][]string{
		caught:   {"1 => 2", "p.a < p.b with >=", "total += n with -=", "without total = start"},
		survived: {"p.a < p.b with <=", `without m["b"] = x["a"]`},
		broken:   {"without total += n"},
	} {
		if slices.Sort(got[f]); !slices.Equal(got[f], want) {
			t.Errorf("fate %d: %q, want %q", f, got[f], want)
		}
	}
}

func TestAMutantThatDoesNotCompileIsLeftOut(t *testing.T) {
	target := module(t, "package m\n\nfunc f(a []int) int {\n\treturn a[0]\n}\n\nfunc g() string {\n\tx, y := \"\", \"\"\n\treturn x + y\n}\n", "package m\n")
	mutants, err := target.mutants()
	if err != nil {
		t.Fatal(err)
	}
	held, err := target.buildAll(mutants)
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range mutants {
		if want := m.change != "x + y with -"; held[i+1] != want {
			t.Errorf("%s: held is %v", m, held[i+1])
		}
	}
}

func TestTestsThatFailUnchangedAreAnError(t *testing.T) {
	need.Namespaces(t, namespace()[1:]...)
	target := module(t, code, "package m\n\nimport \"testing\"\n\nfunc TestFails(t *testing.T) { t.Fatal() }\n")
	if _, err := target.measure(); err == nil || !strings.Contains(err.Error(), "TestFails") {
		t.Errorf("measured: %v", err)
	}
}
