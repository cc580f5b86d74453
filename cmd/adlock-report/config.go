package main

import (
	"cmp"
	"errors"
	"os"
	"strings"

	"adlock/lib/atom"
	"adlock/lib/config"
	"adlock/lib/fault"
	"adlock/lib/insight/terminal"
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

// showConfig shows the settings that count for an atom, or without one, and the mistakes in the
// settings files, which are errFound.
func showConfig(q *query) error {
	if q.check != "" {
		return checkSettings(q)
	}
	name, err := nameCalled(q.atom)
	if err != nil {
		return err
	}
	found := tellMistakes(config.Mistakes(run.Options))
	all := config.InForce(name)
	if q.json {
		text, err := arrayOf(settingsOf(all))
		return errors.Join(err, write(text), found)
	}
	lines := [][]string{{"SETTING", "VALUE", "FROM"}}
	for _, s := range all {
		lines = append(lines, []string{s.Variable, terminal.Clean(s.Value), s.From})
	}
	var text strings.Builder
	for _, line := range fit(lines, terminal.Limit(os.Stdout), nil, gapMark()) {
		text.WriteString(joined(line))
	}
	return errors.Join(write([]byte(text.String())), found)
}

// checkSettings prints the mistakes in the file of --check.
func checkSettings(q *query) error {
	if q.atom != "" {
		return fault.New(fault.Usage, "--check", "goes with no NAME: it checks all lines")
	}
	all, err := config.MistakesIn(q.check, run.Options)
	if err != nil || !q.json {
		return cmp.Or(err, tellMistakes(all))
	}
	var objects []misset
	for _, mistake := range all {
		objects = append(objects, misset{mistake})
	}
	text, err := arrayOf(objects)
	return errors.Join(err, write(text), tellMistakes(all))
}

// tellMistakes reports the mistakes in settings files, which are errFound.
func tellMistakes(all []error) (found error) {
	for _, mistake := range all {
		fault.Report(mistake)
		found = errFound
	}
	return found
}

// misset is a mistake in a settings file, as an object of JSON.
type misset struct{ error }

func (m misset) object() any {
	var f *fault.Error
	_ = errors.As(m.error, &f) // each mistake is one
	return struct {
		At     string `json:"at"`
		Reason string `json:"reason"`
	}{f.Object, f.Err.Error()}
}

// nameCalled returns the atom that a person means by NAME or by the argument of --name; "": no
// atom. The atom need not exist.
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

// setting is a setting in force, as an object of JSON.
type setting config.Setting

func settingsOf(all []config.Setting) (objects []setting) {
	for _, s := range all {
		objects = append(objects, setting(s))
	}
	return objects
}

func (s setting) object() any { return config.Setting(s) }
