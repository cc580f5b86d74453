package atom

import (
	"slices"
	"testing"
)

func TestAWholeNameWinsOverAPartOfAName(t *testing.T) {
	var all []Called
	for _, operand := range []string{"mirror", "mirror2", "mirrors", "run"} {
		a := Atom{Program: "adlock", Host: "dax", Operator: "run", Operand: operand}
		all = append(all, Called{Name: a.Name(), Atom: a})
	}
	all = append(all, Called{Name: "adlock.dax.run.x-4711"}) // its words are not known
	for text, want := range map[string][]int{
		"adlock.dax.run.mirror2": {1}, "adlock run mirrors": {2}, "adlock…mirrors": {2},
		"mirror": {0}, "run": {3}, "mir": {0, 1, 2}, "x-47": {4}, "none": nil,
		"…mirrors": {2}, "adlock run mirror…": {0, 1, 2}, "…": nil, "……": nil, "adlock run mir": {0, 1, 2}, "  ": nil,
	} {
		if meant := Meant(all, text); !slices.Equal(meant, want) {
			t.Errorf("by %q %v are meant, want %v", text, meant, want)
		}
	}
}
