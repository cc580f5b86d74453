package crontab

import (
	"errors"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"adlock/lib/cronline"
)

// Parse parses a command as sh or else as bash, which has most of what other shells have. The error is sh's.
func Parse(command string) (*syntax.File, error) {
	file, err := parse(command, syntax.LangPOSIX)
	if err != nil {
		if file, err := parse(command, syntax.LangBash); err == nil {
			return file, nil
		}
	}
	return file, err
}

const longestParsed = 4 << 10 // bytes: a parser recurses for each nested bracket

func parse(command string, dialect syntax.LangVariant) (*syntax.File, error) {
	if len(command) > longestParsed {
		return nil, errors.New("is longer than " + strconv.Itoa(longestParsed) + " bytes")
	}
	return syntax.NewParser(syntax.Variant(dialect)).Parse(strings.NewReader(command), "")
}

// calls returns the simple commands in a text and its substitutions; nil if there are none, or no shell understands it.
func calls(text string) (all [][]string) {
	file, err := Parse(text)
	if err != nil {
		return nil
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		if call, is := n.(*syntax.CallExpr); is && len(call.Args) > 0 {
			all = append(all, wordsOf(text, call))
		}
		return true
	})
	return all
}

func wordsOf(text string, call *syntax.CallExpr) (words []string) {
	for _, w := range call.Args {
		word, _ := Literal(w, text)
		words = append(words, word)
	}
	return words
}

// Literal returns a word without quotes. It copies expansions from source, the text that was parsed, or drops
// them if source is "". whole is false if the word has expansions or $'...', or is nil.
func Literal(w *syntax.Word, source string) (text string, whole bool) {
	if w == nil {
		return "", false
	}
	return literal(w.Parts, source, false)
}

func literal(parts []syntax.WordPart, source string, inQuotes bool) (text string, whole bool) {
	whole = true
	for _, part := range parts {
		switch p := part.(type) {
		case *syntax.Lit:
			text += unescaped(p.Value, inQuotes)
		case *syntax.SglQuoted:
			text += p.Value
			whole = whole && !p.Dollar
		case *syntax.DblQuoted:
			inner, all := literal(p.Parts, source, true)
			text += inner
			whole = whole && all
		default:
			if source != "" {
				text += source[p.Pos().Offset():p.End().Offset()]
			}
			whole = false
		}
	}
	return text, whole
}

func unescaped(text string, inQuotes bool) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) && (!inQuotes || strings.IndexByte("$`\"\\\n", text[i+1]) >= 0) {
			i++
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// Background returns what continues after a command's shell has ended: the part with the &, or the whole command; or "".
func Background(command string) (part string) {
	if Detached(command) != "" {
		return command
	}
	for _, t := range textsIn(command, anyShells) {
		if part = t.background(); part != "" {
			return part
		}
	}
	return ""
}

func (t *text) background() (part string) {
	file, err := parse(t.command, syntax.LangBash) // in bash &> is a redirection, and not an &
	if err != nil {
		return ""
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		if n, is := n.(*syntax.Stmt); is && n.Background && part == "" {
			part = strings.TrimSpace(t.command[n.Pos().Offset():n.End().Offset()])
		}
		_, waited := n.(*syntax.CmdSubst) // the shell waits for the output of a substitution
		return !waited
	})
	if slices.ContainsFunc(t.calls, func(words []string) bool { return words[0] == "wait" }) {
		return ""
	}
	return part
}

// Cut returns why shell refuses the command if cron has cut it at a % that was meant as text, else nil.
func (l *Line) Cut(shell string) error {
	if l.Input == "" || path.Base(shell) == "zsh" {
		return nil
	}
	if _, err := Parse(strings.ReplaceAll(l.Command, `\%`, "%")); syntax.IsIncomplete(err) {
		return err
	}
	return nil
}

// detaching has, by program, the arguments that make the program put its job into the background.
var detaching = map[string]*regexp.Regexp{
	"screen":            regexp.MustCompile(`(^| )-(\w*d\w*m|d -m|m -d)`),
	"tmux":              regexp.MustCompile(`(^| )new(-session|w|-window)? (.* )?-\w*d`),
	"setsid":            regexp.MustCompile(`^(-\w+ )*(-\w*f|--fork)\b`),
	"start-stop-daemon": regexp.MustCompile(`(^| )-(\w*b\w*|-background)( |$)`),
}

// Detached returns the program in a command that puts its job into the background; "" if there is none.
func Detached(command string) (program string) {
	for _, t := range textsIn(command, anyShells) {
		for _, words := range t.calls {
			for i, word := range words {
				base := path.Base(word)
				if arguments := detaching[base]; arguments != nil && arguments.MatchString(strings.Join(words[i+1:], " ")) {
					return base
				}
			}
		}
	}
	return ""
}

// ShellTexts returns the commands that the shells in a command get after -c.
func ShellTexts(command string) (texts []string) {
	for _, words := range calls(command) {
		texts = append(texts, anyShells(words)...)
	}
	return texts
}

type text struct {
	command string
	calls   [][]string
}

// textsIn returns a command, the texts that shells finds in it, and those that shells finds in these; each text once.
func textsIn(command string, shells func(words []string) []string) (all []text) {
	commands := []string{command}
	for i := 0; i < len(commands); i++ {
		t := text{commands[i], calls(commands[i])}
		for _, words := range t.calls {
			for _, inner := range shells(words) {
				if !slices.Contains(commands, inner) {
					commands = append(commands, inner)
				}
			}
		}
		all = append(all, t)
	}
	return all
}

func anyShells(words []string) (texts []string) {
	for i := range words { // an unknown program may run the words after it
		if inner, ok := cronline.ShellText(words[i:]); ok {
			texts = append(texts, inner)
		}
	}
	return texts
}

func calledShell(words []string) (texts []string) {
	if inner, ok := cronline.ShellText(cronline.Called(words)); ok {
		return []string{inner}
	}
	return nil
}
