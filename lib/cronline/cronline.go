// Package cronline reads a crontab's line as the shell for crontabs does: its name, its settings, and whether the line
// locks by itself. The job's own shell gets the line unchanged.
package cronline

import (
	"path"
	"slices"
	"strings"

	"adlock/lib/fault"
)

// Line is what a command says to adlock, and the command itself.
type Line struct {
	Name     string   // of the lock; "": the line gives none
	Settings []string // ADLOCK_X=VALUE, as they were written
	Text     string   // the command itself, without the words for adlock
	Unlocked bool     // no lock: the line locks by itself and has no words for adlock, or has neither name nor command
}

// The words for adlock are `: NAME ADLOCK_X=VALUE... ;`, which a shell skips. No shell expands any of them.
const (
	noOperation = ":"
	setting     = "ADLOCK_"
	blanks      = " \t"
	white       = blanks + "\r\n"
	plain       = letters + decimal + "-./:@%+,=^"
	letters     = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"
	decimal     = "0123456789"
)

// Lockers lists programs that lock by themselves: their lines get a lock of ours only by words for adlock.
var Lockers = []string{"flock", "setlock", "lockf", "adlock"}

// Parse reads a command. Words that are meant for adlock but not understood are an error, as an ignored limit would be
// noticed only when it is needed. With an error, the Line has the probable name, and the whole command as Text.
func Parse(command string) (Line, error) {
	text := strings.Trim(command, white)
	words, rest, err := cutHead(text)
	if err != nil {
		return Line{Name: guessedName(text), Text: text}, err
	}
	if len(words) == 0 {
		return Line{Text: text, Unlocked: text == "" || locksItself(text)}, nil
	}
	l := Line{Settings: words, Text: strings.Trim(rest, white)}
	if !strings.HasPrefix(words[0], setting) {
		l.Name, l.Settings = words[0], words[1:]
	}
	l.Unlocked = l.Name == "" && l.Text == ""
	return l, nil
}

func cutHead(text string) (words []string, rest string, err error) {
	after, is := strings.CutPrefix(text, noOperation)
	if !is || strings.TrimLeft(after, blanks) == after {
		return nil, text, nil
	}
	head, rest, closed := strings.Cut(after, ";")
	words = strings.FieldsFunc(head, func(c rune) bool { return strings.ContainsRune(blanks, c) })
	if closed && understood(words) {
		return words, rest, nil
	}
	all := commands(text)
	if len(all) == 0 {
		return nil, text, nil
	}
	words = all[0][1:]
	for i, word := range words {
		if isMeant(word) || strings.Contains(word, " "+setting) && !strings.ContainsAny(word, "$`") || i < 2 && setsNothing(word) && isPlain(words[0]) {
			return nil, text, fault.New(fault.Usage, word, "is not understood: want \": NAME ADLOCK_X=VALUE... ;\" of plain words without quotes")
		}
	}
	return nil, text, nil
}

func guessedName(text string) string {
	word, _ := cutWord(strings.TrimLeft(strings.TrimPrefix(text, noOperation), blanks))
	if word == "" || !isPlain(word) || isMeant(word) || setsNothing(word) {
		return ""
	}
	return word
}

// understood reports whether all words are settings; the first may be a name instead.
func understood(words []string) bool {
	for i, word := range words {
		mayBeName := i == 0 && !isMeant(word) && !setsNothing(word)
		if !isPlain(word) || !mayBeName && !(strings.HasPrefix(word, setting) && isPlainAssignment(word)) {
			return false
		}
	}
	return true
}

func isPlain(word string) bool {
	return strings.TrimFunc(word, func(c rune) bool { return c >= 0x80 || strings.ContainsRune(plain, c) }) == ""
}

func isPlainAssignment(word string) bool {
	name, _, is := strings.Cut(word, "=")
	return is && isVariable(name)
}

func isMeant(word string) bool { return strings.HasPrefix(word, setting) || isMisspelt(word) }

// setsNothing reports whether a word is an option, sets a variable not named ADLOCK_X, or begins with = (zsh: =ls).
func setsNothing(word string) bool {
	return !strings.HasPrefix(word, setting) && isPlainAssignment(word) || strings.HasPrefix(word, "=") || strings.HasPrefix(word, "-") && strings.Trim(word, "-") != ""
}

// isMisspelt reports whether a word would be a setting if it had capitals, and underscores instead of hyphens.
func isMisspelt(word string) bool {
	spelt := strings.ToUpper(strings.ReplaceAll(word, "-", "_"))
	return !strings.HasPrefix(word, setting) && strings.HasPrefix(spelt, setting) && strings.Contains(word, "=")
}

// IsAssignment reports whether a word is A=b or, in some shells, A+=b, A[0]=b or A=(b c).
func IsAssignment(word string) bool {
	name, _, is := strings.Cut(word, "=")
	name = strings.TrimSuffix(name, "+")
	if array, index, indexed := strings.Cut(name, "["); indexed && strings.HasSuffix(index, "]") {
		name = array
	}
	return is && isVariable(name)
}

func isVariable(name string) bool {
	return name != "" && strings.Trim(name, letters+decimal) == "" && strings.Contains(letters, name[:1])
}

// locksItself reports whether a command begins with one of Lockers, perhaps after assignments, exec or sleeps. A verb of
// adlock that locks nothing counts if no command follows it: a pause must not deny `adlock resume`.
func locksItself(text string) bool {
	for {
		if _, rest, is := CutSleep(text); is {
			text = rest
			continue
		}
		word, rest := cutWord(strings.TrimLeft(text, blanks))
		if word != "exec" && !IsAssignment(word) {
			verb, _ := cutWord(strings.TrimLeft(rest, blanks))
			return slices.Contains(Lockers, path.Base(word)) &&
				(path.Base(word) != "adlock" || slices.Contains([]string{"run", "hold", "shell", "resume"}, verb) || len(commands(rest)) < 2)
		}
		text = rest
	}
}

// CutSleep splits off a sleep before the first && or ";" of a command: words are the arguments of the sleep, rest is
// the command after it. If there is no sleep, or it has quotes or operators, found is false and rest is text.
func CutSleep(text string) (words, rest string, found bool) {
	head, after := text, ""
	if end := strings.IndexAny(text, ";&|<>#'\"\\\n"); end >= 0 {
		head, after = text[:end], text[end:]
	}
	command, words := cutWord(strings.TrimLeft(head, blanks))
	words = strings.Trim(words, blanks)
	next, joined := strings.CutPrefix(after, "&&")
	if !joined {
		next, joined = strings.CutPrefix(after, ";")
	}
	next = strings.TrimLeft(next, blanks)
	switch {
	case !joined || next == "" || strings.ContainsAny(next[:1], ";&|\r\n"):
	case command != "sleep" && !(strings.HasPrefix(command, "/") && path.Base(command) == "sleep"):
	case words == "" || strings.Count(words, "(") != strings.Count(words, ")") || strings.Count(words, "`")%2 != 0:
	default:
		return words, next, true
	}
	return "", text, false
}

func cutWord(text string) (word, rest string) {
	end := wordEnd(text, 0)
	return text[:end], text[end:]
}

// wordEnd returns where a word ends in text. The text begins inside the quote, or outside of quotes if quote is 0.
func wordEnd(text string, quote byte) int {
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && quote != '\'':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case strings.IndexByte(white+";&|<>()", c) >= 0:
			return i
		}
	}
	return len(text)
}
