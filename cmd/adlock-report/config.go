package main

import (
	"cmp"
	"errors"
	"os"
	"strconv"
	"strings"

	"adlock/lib/atom"
	"adlock/lib/config"
	"adlock/lib/fault"
	"adlock/lib/insight/terminal"
	"adlock/lib/lint"
	"adlock/lib/run"
)

var configVerb = verb{
	options: func(q *query) []config.Option {
		return []config.Option{
			{Name: "json", Help: "as JSON, one array", Set: config.Toggle(&q.json)},
			{Name: "check", Arg: "FILE", Help: "print the mistakes in FILE, which is to become a settings file", Set: config.Text(&q.check)},
		}
	},
	named: true,
	show:  showConfig,
}

func showConfig(q *query) error {
	if q.check != "" {
		return checkSettings(q)
	}
	if len(q.args) > 1 {
		return fault.New(fault.Usage, "config", "wants one NAME, got "+strconv.Quote(q.args[1])+" too")
	}
	name, err := nameCalled(q.atom)
	if err != nil {
		return err
	}
	found := tellMistakes(append(config.Mistakes(run.Options), environmentMistakes()...))
	all := config.InForce(name)
	if q.json {
		return cmp.Or(write(arrayOf(all, func(s config.Setting) any { return s })), found)
	}
	lines := [][]string{{"SETTING", "VALUE", "FROM"}}
	for _, s := range all {
		lines = append(lines, []string{s.Variable, terminal.Clean(s.Value), s.From})
	}
	var text []byte
	for _, line := range fit(lines, nil) {
		text = append(text, joined(line)+"\n"...)
	}
	return cmp.Or(write(text), found)
}

func checkSettings(q *query) error {
	if q.atom != "" {
		return fault.New(fault.Usage, "--check", "goes with no NAME: it checks all lines")
	}
	text, err := readText(q.check)
	if err != nil {
		return err
	}
	if len(text) > lint.Most {
		return fault.New(fault.Usage, q.check, "is larger than 1 MiB")
	}
	all := config.MistakesIn(q.check, text, run.Options)
	switch {
	case !q.json:
		return tellMistakes(all)
	case len(all) > 0:
		err = errFound
	}
	return cmp.Or(write(arrayOf(all, mistakeObject)), err)
}

// environmentMistakes returns an error for each variable of the environment that is no setting but resembles one,
// and for each setting there whose value a run refuses.
func environmentMistakes() (all []error) {
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if meant := run.NearestVariable(name); meant != "" {
			all = append(all, fault.New(fault.Usage, name, "is no setting of adlock: did you mean "+meant+"?"))
		}
	}
	for _, o := range append(run.Options(), config.Table...) {
		if o.Set == nil { // a row of Table that is an option of run, a location, or accepts any text
			continue
		}
		if _, err := (config.Origins{}).ParseIn(os.Getenv, []config.Option{o}, nil); err != nil {
			all = append(all, err)
		}
	}
	return all
}

func tellMistakes(all []error) (found error) {
	for _, mistake := range all {
		fault.Report(mistake)
		found = errFound
	}
	return found
}

func mistakeObject(mistake error) any {
	var f *fault.Error
	_ = errors.As(mistake, &f) // each mistake is a *fault.Error
	return struct {
		At     string `json:"at"`
		Reason string `json:"reason"`
	}{f.Object, f.Err.Error()}
}

// nameCalled returns the NAME of the atom that a person means by text; "" for an empty text. The atom need not exist.
func nameCalled(text string) (atom.Name, error) {
	if lock, is := atom.LockCalled(text); is || text == "" {
		return lock.Name, nil
	}
	host, err := thisHost()
	if err != nil {
		return "", err
	}
	return atom.Named(text, host).Name(), nil
}
