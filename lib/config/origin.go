package config

import (
	"cmp"
	"slices"
	"strings"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/limit"
)

// Place is the kind of source that set an option. If two options contradict each other, the command line wins over a
// variable, and a variable over a file: a variable may be for a whole crontab, a file for all jobs.
type Place int

// Of two places, the greater one wins.
const (
	Unsaid Place = iota
	InFile
	InEnvironment
	OnCommandLine
)

type Origin struct {
	Place Place
	Word  string // what a person finds there: --wait, -E, ADLOCK_WAIT; in a file: FILE:LINE
	order int    // the position among all sections of files: the later section wins
}

// Origins records where each option was set, by its name, and decides which of two wins.
type Origins map[string]Origin

func (all Origins) set(o *Option, from Origin, value string) error {
	all[o.Name] = from
	if from.Place <= o.Minutes {
		value = limit.InMinutes(value)
	}
	switch err := o.Set(value); {
	case err == nil || o.Name == setting: // the error of --setting names the variable
		return err
	default:
		return &fault.Error{Kind: fault.Usage, Object: from.Word, Err: err}
	}
}

// Compare returns above 0 if the first option wins over the second, below 0 if the second wins, and 0 if neither does.
func (all Origins) Compare(first, second string) int {
	one, other := all[first], all[second]
	return cmp.Or(cmp.Compare(one.Place, other.Place), cmp.Compare(one.order, other.order))
}

// IsFiled reports whether a settings file has set the option.
func (all Origins) IsFiled(option string) bool { return all[option].Place == InFile }

// Name returns how the option was set: --option, ADLOCK_X, or ADLOCK_X with the file. It returns "" if it was not set.
func (all Origins) Name(option string) string {
	from := all[option]
	if from.Place == InFile {
		return Bind(option, nil).Env + " (" + from.Word + ")"
	}
	return from.Word
}

// Filed returns the Name of each option that a settings file has set, sorted.
func (all Origins) Filed() (names []string) {
	for option := range all {
		if all.IsFiled(option) {
			names = append(names, all.Name(option))
		}
	}
	slices.Sort(names)
	return names
}

const setting = "setting"

// Setting is the option by which adlock.sh passes on a variable, as the script need not have exported it. The variable
// counts as one of the environment. A switch that is off is passed on too, or a settings file could turn it on.
func (all Origins) Setting(options []Option) Option {
	return Option{Name: setting, Arg: "ADLOCK_X=VALUE", Set: func(text string) error {
		variable, value, _ := strings.Cut(text, "=")
		if i := slices.IndexFunc(options, func(o Option) bool { return o.Env == variable }); i >= 0 {
			return all.set(&options[i], Origin{Place: InEnvironment, Word: variable}, value)
		}
		return unknown{kind: "setting"}
	}}
}

// Configure sets options of the atom from the settings files, unless they were set elsewhere. values returns the
// options of `run`, whose setters check every line. Configure does not call values if there is no file.
func (all Origins) Configure(options []Option, values func() []Option, name atom.Name) error {
	if len(Files()) == 0 {
		return nil
	}
	judge(Files(), values)
	for variable, filed := range FromFiles(name) {
		o := Find(options, "--"+OfVariable(variable).Name)
		if o == nil || all[o.Name].Place != Unsaid || filed.Value == "" {
			continue
		}
		if err := all.set(o, filed.From, filed.Value); err != nil {
			return err
		}
	}
	return nil
}
