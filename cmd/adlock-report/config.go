package main

import (
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
		}
	},
	named: true,
	show:  showConfig,
}

// showConfig shows the settings that count for an atom, or without one, and the mistakes in the
// settings files, which are errFound.
func showConfig(q *query) error {
	name, err := nameCalled(q.atom)
	if err != nil {
		return err
	}
	var found error
	for _, mistake := range config.Mistakes(run.Options()) {
		fault.Report(mistake)
		found = errFound
	}
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
