package helper

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// Verb is one verb of the help.
type Verb struct {
	Name    string
	Does    string
	Args    string // its arguments besides options
	Options []Option
	Env     []string // further variables in its help
}

// Option is one option of the help.
type Option struct {
	Name    string // without its dashes
	Alias   string // "": none; one letter, without its dash
	Arg     string // "": a switch
	Help    string
	Default string // "": none
	Env     string // "": none
}

// Verbs returns the verbs of the helper, whose path is program, in the order of its help. Options
// of every verb (--help, -h) are left out.
func Verbs(program string) ([]Verb, error) {
	text, err := ask(program, "help")
	if err != nil {
		return nil, err
	}
	var all []Verb
	for _, line := range section(text, "verbs:") {
		v := Verb{Name: line[0], Does: line[1]}
		if err := v.read(program); err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	if len(all) == 0 {
		return nil, errors.New(program + ": the help lists no verbs")
	}
	return all, nil
}

func ask(program string, args ...string) (string, error) {
	text, err := exec.Command(program, args...).Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", program, strings.Join(args, " "), err)
	}
	return string(text), nil
}

// section returns the lines of two columns below a title.
func section(text, title string) (lines [][2]string) {
	_, text, _ = strings.Cut(text, "\n"+title+"\n")
	text, _, _ = strings.Cut(text, "\n\n")
	for line := range strings.Lines(text) {
		word, means, _ := strings.Cut(strings.TrimSpace(line), "  ")
		lines = append(lines, [2]string{word, strings.TrimSpace(means)})
	}
	return lines
}

// read reads the help of the verb.
func (v *Verb) read(program string) error {
	text, err := ask(program, v.Name, "--help")
	if err != nil {
		return err
	}
	usage, _, _ := strings.Cut(text, "\n")
	args, found := strings.CutPrefix(usage, "usage: adlock "+v.Name)
	lines := section(text, "options:")
	if !found || len(lines) == 0 {
		return fmt.Errorf("%s %s --help: has no usage or no options", program, v.Name)
	}
	v.Args = strings.TrimSpace(strings.TrimPrefix(args, " [OPTION...]"))
	for _, line := range lines {
		if line[0] != "--help, -h" {
			v.Options = append(v.Options, optionOf(line[0], line[1]))
		}
	}
	for _, line := range section(text, "environment:") {
		if !strings.HasSuffix(line[0], "...") { // "..." stands for further variables
			v.Env = append(v.Env, line[0])
		}
	}
	return nil
}

// optionOf reads one line of a help: "--name, -n ARG" and "what it is (default D) [$ENV]".
func optionOf(synopsis, description string) (o Option) {
	names, arg, _ := strings.Cut(synopsis, " ")
	if strings.HasSuffix(names, ",") {
		o.Alias, arg, _ = strings.Cut(strings.TrimPrefix(arg, "-"), " ")
	}
	o.Name, o.Arg = strings.TrimSuffix(strings.TrimPrefix(names, "--"), ","), arg
	if text, env, found := strings.Cut(description, " [$"); found {
		description, o.Env = text, strings.TrimSuffix(env, "]")
	}
	if text, value, found := strings.Cut(description, " (default "); found {
		description, o.Default = text, strings.TrimSuffix(value, ")")
	}
	o.Help = description
	return o
}
