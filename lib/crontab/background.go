package crontab

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"adlock/lib/cronline"
)

// Parse reads a command in the syntax of sh or, if that fails, in that of bash, which has most of
// what other shells have. The error is that of sh.
func Parse(command string) (*syntax.File, error) {
	file, err := parse(command, syntax.LangPOSIX)
	if err != nil {
		if file, err := parse(command, syntax.LangBash); err == nil {
			return file, nil
		}
	}
	return file, err
}

func parse(command string, dialect syntax.LangVariant) (*syntax.File, error) {
	return syntax.NewParser(syntax.Variant(dialect)).Parse(strings.NewReader(command), "")
}

// Background returns a part of a command that still runs when the command's shell has ended; "" if
// there seems to be none. A lock that ends with that shell does not cover it.
func Background(command string) (part string) {
	if part = Detached(command); part != "" {
		return part
	}
	for _, text := range ShellTexts(command) {
		if part = Background(text); part != "" {
			return part
		}
	}
	file, err := parse(command, syntax.LangBash) // in bash &> is a redirection, and not an &
	if err != nil {
		return ""
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Stmt:
			if n.Background && part == "" {
				part = strings.TrimSpace(command[n.Pos().Offset():n.End().Offset()])
			}
		case *syntax.CmdSubst:
			return false // the shell waits for its output
		}
		return true
	})
	waits := func(words []string) bool { return words[0] == "wait" }
	if slices.ContainsFunc(simpleCommands(command), waits) {
		return ""
	}
	return part
}

// detaching are the programs that put their job into the background, with the arguments that make
// them do so.
var detaching = map[string]*regexp.Regexp{
	"screen":            regexp.MustCompile(`(^| )-(\w*d\w*m|d -m|m -d)`),
	"tmux":              regexp.MustCompile(`(^| )new(-session|w|-window)? (.* )?-\w*d`),
	"setsid":            regexp.MustCompile(`^(-\w+ )*(-\w*f|--fork)\b`),
	"start-stop-daemon": regexp.MustCompile(`(^| )-(\w*b\w*|-background)( |$)`),
}

// Detached is the program in a command that puts its job into the background; "": none.
func Detached(command string) (program string) {
	for _, words := range simpleCommands(command) {
		for i, word := range words {
			base := filepath.Base(word)
			if arguments := detaching[base]; arguments != nil && arguments.MatchString(strings.Join(words[i+1:], " ")) {
				return base
			}
		}
	}
	for _, text := range ShellTexts(command) {
		if program = Detached(text); program != "" {
			return program
		}
	}
	return ""
}

// simpleCommands are the simple commands of a text, those in substitutions too.
func simpleCommands(text string) [][]string {
	all, inner := cronline.Commands(text)
	for _, text := range inner {
		all = append(all, simpleCommands(text)...)
	}
	return all
}

// ShellTexts returns the commands that shells are called with, after -c, in a command.
func ShellTexts(command string) (texts []string) {
	for _, words := range simpleCommands(command) {
		for i := range words {
			if text, ok := cronline.ShellText(words[i:]); ok {
				texts = append(texts, text)
			}
		}
	}
	return texts
}
