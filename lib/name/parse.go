package name

import "strings"

// Parse returns the atom that a NAME stands for; false where that atom has
// another name: a checksum tells a part, which cannot be read back, or text is no
// NAME of an atom.
func Parse(text string) (Atom, bool) {
	parts := strings.Split(text, ".")
	if len(parts) != 4 {
		return Atom{}, false
	}
	a := Atom{Program: readBack(parts[0]), Host: readBack(parts[1]), Operator: readBack(parts[2]), Operand: readBack(parts[3])}
	return a, a.Check() == nil && a.Name() == text
}
