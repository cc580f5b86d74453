// Package completions makes the tables of verbs and options in sh/completions from the help of the
// programs. The tables stand between two marks:
//
//	go test ./test/cli -run TheCompletions -update
package completions

import (
	"fmt"
	"strings"

	"adlock/test/support/helper"
)

// Shell is one shell's completion.
type Shell struct {
	File  string
	table func([]verb) string
}

// Shells are those that have a completion.
var Shells = []Shell{
	{"sh/completions/adlock.bash", bashTable},
	{"sh/completions/_adlock", zshTable},
	{"sh/completions/adlock.fish", fishTable},
}

const (
	beginMark = "# From here on made by go test ./test/cli -run TheCompletions -update.\n"
	endMark   = "# Up to here.\n"
)

// With replaces the table in the text of a completion by one of these verbs.
func (s Shell) With(text string, all []helper.Verb) (string, error) {
	before, _, begun := strings.Cut(text, beginMark)
	_, after, ended := strings.Cut(text, endMark)
	if !begun || !ended {
		return "", fmt.Errorf("%s has no marks", s.File)
	}
	known, err := completed(all)
	if err != nil {
		return "", err
	}
	return before + beginMark + s.table(known) + endMark + after, nil
}

// verb is a verb with the kind of its arguments.
type verb struct {
	helper.Verb
	args    string
	options []option
}

// option is an option with the kind of its value, "" if it takes none.
type option struct {
	helper.Option
	kind string
}

// The kinds that the completions know: none (no offer), atom (held: an active one; name: as
// --name takes it), file, store (a directory or the scheme of an address), command (a whole
// command line), made (a file, and a command behind --), process, when, event, verb.

// kindOfValue maps the help's word for a value to its kind.
var kindOfValue = map[string]string{
	"": "", "D": "none", "N": "none", "EPOCH": "none", "HEX": "none", "NAME": "none",
	"WORD": "none", "URL": "store", "COMMAND": "shell", "FILE": "file", "FILE.prom": "file",
	"PID": "process", "TEXT": "atom", "ATOM": "atom", "WHEN": "when", "KIND,...": "event",
}

// kindOfArgs maps the help's words for arguments to their kind.
var kindOfArgs = map[string]string{
	"": "none", "[--] COMMAND [ARG...]": "command", "[NAME...]": "atom", "[NAME]": "atom", "NAME": "name", "NAME...": "held", "NAME | --last --older D": "held",
	"USER...": "none", "FILE": "file", "[FILE]": "file", "FILE...": "file", "[FILE...]": "file", "-c COMMAND [ARG...]": "none", "FILE [-- COMMAND [ARG...]]": "made", "PID... | --lock FILE": "process",
}

// completed adds the kinds to the verbs, and the verbs help and version.
func completed(all []helper.Verb) (known []verb, err error) {
	for _, v := range all {
		args, is := kindOfArgs[v.Args]
		if !is {
			return nil, fmt.Errorf("%s: say in kindOfArgs how %q is completed", v.Name, v.Args)
		}
		one := verb{Verb: v, args: args}
		for _, o := range append(v.Options, helper.Option{Name: "help", Alias: "h", Help: "list the options"}) {
			kind, is := kindOfValue[o.Arg]
			if !is {
				return nil, fmt.Errorf("%s --%s: say in kindOfValue how %q is completed", v.Name, o.Name, o.Arg)
			}
			if v.Name == "run" && o.Name == "name" {
				kind = "name"
			}
			one.options = append(one.options, option{o, kind})
		}
		known = append(known, one)
	}
	return append(known,
		verb{Verb: helper.Verb{Name: "help", Does: "list the verbs, or the options of one"}, args: "verb"},
		verb{Verb: helper.Verb{Name: "version", Does: "tell which version this is"}, args: "none"}), nil
}

// names are the spellings of the option.
func (o option) names() []string {
	names := []string{"--" + o.Name}
	if o.Alias != "" {
		names = append(names, "-"+o.Alias)
	}
	return names
}

// eventKinds lists the kinds of events, from the help of log --event.
func eventKinds(all []verb) string {
	for _, v := range all {
		for _, o := range v.options {
			if o.kind == "event" {
				_, list, _ := strings.Cut(o.Help, ": ")
				return strings.ReplaceAll(list, ", ", " ")
			}
		}
	}
	return ""
}

// zshQuoted is a word for zsh.
func zshQuoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
