package atom

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"adlock/lib/fault"
)

// Words returns "program operator operand".
func (a Atom) Words() string { return a.Program + " " + a.Operator + " " + a.Operand }

// Called is an atom that is known by its NAME. Atom is zero if its words are not known.
type Called struct {
	Name Name
	Atom Atom
}

func (c Called) is(text string) bool {
	return text == string(c.Name) || c.Atom != (Atom{}) && text == c.Atom.Words()
}

// IsExactly reports whether text is a whole name of the atom: NAME, its words, or its operand.
func (c Called) IsExactly(text string) bool { return c.is(text) || c.concerns(text) }

func (c Called) isShown(text string) bool {
	if c.Atom == (Atom{}) {
		return false
	}
	words := c.Atom.Words()
	return isCut(text, words, "…") || isCut(text, words, "~")
}

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

func (c Called) concerns(text string) bool { return c.Atom != (Atom{}) && c.Atom.Operand == text }

func (c Called) has(text string) bool {
	return strings.Contains(string(c.Name), text) || c.Atom != (Atom{}) && strings.Contains(c.Atom.Words(), text) ||
		strings.Contains(c.Atom.Command, text)
}

// Meant returns the indices of the atoms that a person may mean, for a verb that only shows them: those with exactly
// this name, or else those whose names or commands contain it. If there are none, Meant returns ErrNone. All words
// together count as one name, typed without quotes; if no atom matches that name, each word counts as a name.
func Meant(all []Called, words []string) ([]int, error) {
	for _, find := range []func([]Called, string) []int{exactly, nearly} {
		if fit := find(all, strings.Join(words, " ")); len(fit) > 0 {
			return fit, nil
		}
		if fit, missing := each(all, words, find); missing == "" {
			return fit, nil
		}
	}
	_, missing := each(all, words, nearly)
	return nil, ErrNone(missing)
}

func each(all []Called, words []string, find func([]Called, string) []int) (fit []int, missing string) {
	for _, word := range words {
		found := find(all, word)
		if len(found) == 0 {
			return nil, word
		}
		fit = append(fit, found...)
	}
	slices.Sort(fit)
	return slices.Compact(fit), ""
}

// Exact returns the indices of the atoms that the words name, for a verb that changes something. All words together
// name one atom, or each word names one. If One fails for a word, Exact fails.
func Exact(all []Called, words []string) (fit []int, err error) {
	if len(words) == 1 || len(exactly(all, strings.Join(words, " "))) > 0 {
		i, err := One(all, words)
		return []int{i}, err
	}
	for _, word := range words {
		i, err := One(all, []string{word})
		if err != nil {
			return nil, err
		}
		fit = append(fit, i)
	}
	slices.Sort(fit)
	return slices.Compact(fit), nil
}

// One returns the index of the atom that has exactly this name. A part of a name is an error, as the person may mean an
// atom that has never run here. A name that several atoms have is an error, and so are words that name one atom
// together and others one by one.
func One(all []Called, words []string) (int, error) {
	text := strings.Join(words, " ")
	fit := exactly(all, text)
	if apart, missing := each(all, words, exactly); len(fit) > 0 && missing == "" {
		fit = append(fit, apart...)
		slices.Sort(fit)
		fit = slices.Compact(fit)
	}
	switch near := nearly(all, text); {
	case len(fit) == 1:
		return fit[0], nil
	case len(fit) > 1:
		return 0, ErrSeveral(text, names(all, fit, func(c Called) string { return string(c.Name) }))
	case len(near) > 0:
		return 0, errors.New(strconv.Quote(text) + " is only part of a name: type the whole name: " + fault.Listed(names(all, near, Called.String), mostListed))
	}
	return 0, ErrNone(words...)
}

// String returns the atom's words, or its NAME if they are not known or too long for a message.
func (c Called) String() string {
	if words := c.Atom.Words(); c.Atom != (Atom{}) && len(words) <= longestWords {
		return words
	}
	return string(c.Name)
}

const (
	longestWords = 255 // bytes, as in the longest NAME
	mostListed   = 10
)

func names(all []Called, of []int, name func(Called) string) (texts []string) {
	for _, i := range of {
		texts = append(texts, name(all[i]))
	}
	return texts
}

func exactly(all []Called, text string) []int { return firstFit(all, text, Called.is, Called.concerns) }

func nearly(all []Called, text string) []int {
	return firstFit(all, text, Called.is, Called.concerns, Called.isShown, Called.has)
}

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

// ErrNone is the error for words that, taken together as one NAME, match no atom.
func ErrNone(words ...string) error {
	text := "no atom matches " + strconv.Quote(strings.Join(words, " "))
	if len(words) > 1 {
		text += ": all words together are one NAME, and only one is taken"
	}
	return errors.New(text)
}

// ErrSeveral is the error for a text that may mean any of the names.
func ErrSeveral(text string, names []string) error {
	return errors.New(strconv.Quote(text) + " may be any of " + fault.Listed(names, mostListed))
}
