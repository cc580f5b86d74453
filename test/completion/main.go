// Completion writes the tables of verbs and options into the completions of
// sh/completions, between two marks, from the help of the programs. A test compares.
//
//	go run ./test/completion
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"adlock/test/helper"
	"adlock/test/verbs"
)

func main() {
	if err := write(); err != nil {
		fmt.Fprintln(os.Stderr, "completion:", err)
		os.Exit(1)
	}
}

func write() error {
	dir, err := os.MkdirTemp("", "adlock-completion-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "adlock")
	if err := errors.Join(helper.Build(program), helper.Build(program+"-report")); err != nil {
		return err
	}
	all, err := verbs.Of(program)
	if err != nil {
		return err
	}
	for _, s := range shells {
		file := filepath.Join(helper.Root(), s.file)
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		now, err := s.with(string(text), all)
		if err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(now), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// shell is one shell's completion.
type shell struct {
	file  string
	table func([]verb) string
}

var shells = []shell{
	{"sh/completions/adlock.bash", bashTable},
	{"sh/completions/_adlock", zshTable},
	{"sh/completions/adlock.fish", fishTable},
}

const (
	begin = "# From here on made by go run ./test/completion.\n"
	end   = "# Up to here.\n"
)

// with is the text of a completion with the table of these verbs.
func (s shell) with(text string, all []verbs.Verb) (string, error) {
	before, _, begun := strings.Cut(text, begin)
	_, after, ended := strings.Cut(text, end)
	if !begun || !ended {
		return "", fmt.Errorf("%s has no marks", s.file)
	}
	known, err := completed(all)
	if err != nil {
		return "", err
	}
	return before + begin + s.table(known) + end + after, nil
}

// verb is a verb with the kind of its arguments.
type verb struct {
	verbs.Verb
	args    string
	options []option
}

// option is an option with the kind of its value, "" if it takes none.
type option struct {
	verbs.Option
	kind string
}

// The kinds that the completions know: none (no offer), atom (held: an active one; name: as
// --name has it), file, store (a directory or the scheme of an address), command (a whole
// command line), made (a file, and a command behind --), process, when, event, verb.

// kindOfValue maps the help's word for a value to its kind.
var kindOfValue = map[string]string{
	"": "", "D": "none", "N": "none", "EPOCH": "none", "HEX": "none", "NAME": "none",
	"WORD": "none", "URL": "store", "COMMAND": "shell", "FILE": "file", "FILE.prom": "file",
	"PID": "process", "TEXT": "atom", "ATOM": "atom", "WHEN": "when", "KIND,...": "event",
}

// kindOfArgs maps the help's words for arguments to their kind.
var kindOfArgs = map[string]string{
	"": "none", "[--] COMMAND [ARG...]": "command", "[NAME...]": "atom", "[NAME]": "atom", "NAME": "name", "NAME | --last --older D": "held",
	"USER...": "none", "FILE": "file", "[FILE]": "file", "FILE...": "file", "[FILE...]": "file", "-c COMMAND [ARG...]": "none", "FILE [-- COMMAND [ARG...]]": "made", "PID... | --lock FILE": "process",
}

// completed are the verbs with all their kinds, help and version included.
func completed(all []verbs.Verb) (known []verb, err error) {
	for _, v := range all {
		args, is := kindOfArgs[v.Args]
		if !is {
			return nil, fmt.Errorf("%s: say in kindOfArgs how %q is completed", v.Name, v.Args)
		}
		if v.Name == "stop" {
			args = "held"
		}
		one := verb{Verb: v, args: args}
		for _, o := range append(v.Options, verbs.Option{Name: "help", Alias: "h", Help: "list the options"}) {
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
		verb{Verb: verbs.Verb{Name: "help", Does: "list the verbs, or the options of one"}, args: "verb"},
		verb{Verb: verbs.Verb{Name: "version", Does: "tell which version this is"}, args: "none"}), nil
}

// names are the spellings of the option.
func (o option) names() []string {
	names := []string{"--" + o.Name}
	if o.Alias != "" {
		names = append(names, "-"+o.Alias)
	}
	return names
}

// events lists the kinds of events, from the help of log --event.
func events(all []verb) string {
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

// quoted is a word for zsh.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
