package atom

import (
	"errors"
	"strconv"
	"strings"
)

// Words are how people call an atom: "program operator operand", without its host.
func (a Atom) Words() string { return a.Program + " " + a.Operator + " " + a.Operand }

// Called is an atom of which NAME is known, and mostly its words: else Atom is zero.
type Called struct {
	Name Name
	Atom Atom
}

// is reports whether text names the atom: NAME, its words, or these as a table cuts them, with a
// gap in the middle.
func (c Called) is(text string) bool {
	if text == string(c.Name) {
		return true
	}
	if c.Atom == (Atom{}) {
		return false
	}
	words := c.Atom.Words()
	return text == words || isCut(text, words, "…") || isCut(text, words, "~")
}

// isCut reports whether words with one or more parts replaced by gap give text.
func isCut(text, words, gap string) bool {
	parts := strings.Split(text, gap)
	head, last := parts[0], len(parts)-1
	if last == 0 || len(text) == last*len(gap) || !strings.HasPrefix(words, head) {
		return false
	}
	words = words[len(head):]
	for _, part := range parts[1:last] {
		_, behind, found := strings.Cut(words, part)
		if !found {
			return false
		}
		words = behind
	}
	return strings.HasSuffix(words, parts[last])
}

// concerns reports whether text is the operand, as from `adlock run --name`.
func (c Called) concerns(text string) bool { return c.Atom != (Atom{}) && c.Atom.Operand == text }

// has reports whether text is part of the atom's names, or of its command.
func (c Called) has(text string) bool {
	return c.is(text) || strings.Contains(string(c.Name), text) || c.Atom != (Atom{}) && strings.Contains(c.Atom.Words(), text) ||
		strings.Contains(c.Atom.Command, text)
}

// Meant returns the indices of the atoms that a person may mean by text: those of that name, else
// those of that operand, else those with it in their names.
func Meant(all []Called, text string) (meant []int) {
	for _, fits := range [...]func(Called, string) bool{Called.is, Called.concerns, Called.has} {
		for i, c := range all {
			if fits(c, text) {
				meant = append(meant, i)
			}
		}
		if len(meant) > 0 {
			return meant
		}
	}
	return nil
}

// ErrNone is the error if text matches no atom.
func ErrNone(text string) error { return errors.New("no atom matches " + strconv.Quote(text)) }

// ErrSeveral says that text may mean any of these.
func ErrSeveral(text string, names []string) error {
	return errors.New(strconv.Quote(text) + " may be any of " + strings.Join(names, ", "))
}
