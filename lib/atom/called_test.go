package atom

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"adlock/test/support/check"
)

// known are atoms of `adlock run --name` with these operands, and one whose words are not known.
func known(operands ...string) (all []Called) {
	for _, operand := range operands {
		a := Atom{Program: "adlock", Host: "dax", Operator: "run", Operand: operand}
		all = append(all, Called{Name: a.Name(), Atom: a})
	}
	return append(all, Called{Name: "adlock.dax.run.x-4711"})
}

func TestAWholeNameWinsOverAPartOfAName(t *testing.T) {
	all := known("mirror", "mirror2", "mirrors", "run", "a", "b", "a b c")
	for text, want := range map[string][]int{
		"adlock.dax.run.mirror2": {1}, "adlock|run|mirrors": {2}, "adlock…mirrors": {2},
		"mirror": {0}, "run": {3}, "mir": {0, 1, 2}, "x-47": {7}, "none": nil,
		"…mirrors": {2}, "adlock run mirror…": {0, 1, 2}, "…": nil, "……": nil, "adlock run mir": {0, 1, 2}, "   ": nil,
		"a|b": {4, 5}, "a|b|c": {6}, "b|c": {6}, "mirror|none": nil, "2|mirrors": {1, 2},
	} {
		if meant, err := Meant(all, strings.Split(text, "|")); !slices.Equal(meant, want) || (err == nil) != (want != nil) {
			t.Errorf("by %q %v are meant (%v), want %v", text, meant, err, want)
		}
	}
}

func TestVerbsThatChangeAnAtomRequireItsWholeName(t *testing.T) {
	all := known("db", "db-full", "/etc/a b", "a", "b", "a b", "c", "c d")
	other := Atom{Program: "site", Host: "dax", Operator: "run", Operand: "db"}
	all = append(all, Called{Name: other.Name(), Atom: other})
	for text, want := range map[string][]int{
		"db-full": {1}, "adlock.dax.run.db": {0}, "adlock|run|db": {0}, "site run db": {9}, "/etc/a|b": {2},
		"c|d": {7}, "c|db-full": {1, 6}, "db-full|db-full": {1}, "adlock.dax.run.x-4711": {8},
	} {
		if got, err := Exact(all, strings.Split(text, "|")); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"db":     `"db" may be any of adlock.dax.run.db, site.dax.run.db`,
		"a|b":    `"a b" may be any of adlock.dax.run.a, adlock.dax.run.b, adlock.dax.run.a_b-`,
		"full":   `"full" is only part of a name: type the whole name: adlock run db-full`,
		"…-full": "only part of a name: type the whole name: adlock run db-full", "adlock~db-full": "only part of a name",
		"x-47":     "type the whole name: adlock.dax.run.x-4711",
		"c|none":   `no atom matches "none"`,
		"c|run db": `"run db" is only part of a name: type the whole name: adlock run db, adlock run db-full, site run db`,
	} {
		if got, err := Exact(all, strings.Split(text, "|")); err == nil || got != nil && len(got) != 1 || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	if i, err := One(all, []string{"c", "c"}); err == nil {
		t.Errorf("two words that each name one atom are %v together", all[i])
	}
	for text, want := range map[string]bool{"c d": true, "adlock run c d": true, string(all[7].Name): true, "c": false, "adlock run c": false} {
		check.Equal(t, text, all[7].IsExactly(text), want)
	}
}

func TestAnErrorListsTenAtomNamesAtMost(t *testing.T) {
	var operands []string
	for i := range 30 {
		operands = append(operands, "job"+strings.Repeat("x", 100*i)+strconv.Itoa(i))
	}
	_, err := One(known(operands...), []string{"job"})
	if text := err.Error(); !strings.HasSuffix(text, ", and 20 more") || len(text) > 10*longestWords {
		t.Error(text)
	}
	ten := known(strings.Repeat("x", longestWords-len("adlock run ")), "1", "2", "3", "4", "5", "6", "7", "8")
	if _, err = One(ten, []string{"a"}); !strings.HasSuffix(err.Error(), ten[0].Atom.Words()+", adlock run 1, adlock run 2, adlock run 3, adlock run 4, adlock run 5, adlock run 6, adlock run 7, adlock run 8, adlock.dax.run.x-4711") {
		t.Error(err)
	}
	if one, two := ErrNone("x").Error(), ErrNone("x", "y").Error(); one != `no atom matches "x"` || !strings.HasPrefix(two, `no atom matches "x y": all words`) {
		t.Error(one, two)
	}
}
