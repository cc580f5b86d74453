package atom

import (
	"errors"
	"strconv"
	"strings"
)

// Words are how people call an atom: "program operator operand", without its host.
func (a Atom) Words() string { return a.Program + " " + a.Operator + " " + a.Operand }

// Called is an atom that is known by its NAME. Atom is zero if its words are not known.
type Called struct {
	Name Name
	Atom Atom
}

// is reports whether text names the atom: by NAME, by its words, or by its words as a table
// shortens them, with a gap in the middle.
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

// isCut reports whether text is words with one or more parts replaced by gap.
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

// concerns reports whether text is the atom's operand, which is the name that `adlock run --name`
// gives.
func (c Called) concerns(text string) bool { return c.Atom != (Atom{}) && c.Atom.Operand == text }

// has reports whether text is part of the atom's names, or of its command.
func (c Called) has(text string) bool {
	return c.is(text) || strings.Contains(string(c.Name), text) || c.Atom != (Atom{}) && strings.Contains(c.Atom.Words(), text) ||
		strings.Contains(c.Atom.Command, text)
}

// Meant returns the indices of the atoms that a person may mean by text: atoms with that name, else
// atoms with that operand, else atoms whose names or command contain text.
func Meant(all []Called, text string) []int {
	return firstFit(all, text, Called.is, Called.concerns, Called.has)
}

// Exactly is Meant without the last step, for an action that cannot be undone: part of a name is
// not enough there, as the person may mean an atom with exactly that name that has never run.
func Exactly(all []Called, text string) []int { return firstFit(all, text, Called.is, Called.concerns) }

// firstFit tries the ways in turn until at least one atom fits, and returns the indices of all
// atoms that fit by that way.
func firstFit(all []Called, text string, ways ...func(Called, string) bool) (fit []int) {
	for _, fits := range ways {
		for i, c := range all {
			if fits(c, text) {
				fit = append(fit, i)
			}
		}
		if len(fit) > 0 {
			return fit
		}
	}
	return nil
}

// ErrNone is the error if the words, taken together as one NAME, match no atom.
func ErrNone(words ...string) error {
	text := "no atom matches " + strconv.Quote(strings.Join(words, " "))
	if len(words) > 1 {
		text += ": all words together are one NAME, and only one is taken"
	}
	return errors.New(text)
}

// ErrPart is the error if text is only part of these names.
func ErrPart(text string, names []string) error {
	return errors.New(strconv.Quote(text) + " is only part of a name: type the whole name: " + strings.Join(names, ", "))
}

// ErrSeveral says that text may mean any of these.
func ErrSeveral(text string, names []string) error {
	return errors.New(strconv.Quote(text) + " may be any of " + strings.Join(names, ", "))
}
