// Package config has every setting of the programs: its options and variables, its default, the
// paths and the partner programs. There is one table of options (Option) and one parser for all
// of them.
package config

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"adlock/lib/fault"
	"adlock/lib/limit"
)

// Option is one option of a verb: on the command line, in the environment, and
// in the help.
type Option struct {
	Name  string // --NAME
	Alias string // a second name; one letter: -A
	Env   string // the variable that sets it too; "": none
	Arg   string // the name of its value in the help; "": a switch
	Set   func(value string) error
	Said  *Place // where it was set; nil: not recorded

	// Minutes is the greatest place at which a number without a unit is minutes.
	Minutes Place

	Help    string // "": the help does not list it
	Default string // the default in words; "": nothing, or no

	// Inherited: a job inherits the variable. Other variables it does not: they were set for the
	// one lock that it runs under (Environment).
	Inherited bool
}

// Place is where an option was set. Of two that contradict each other the one on the command line
// wins: a variable may be set for every line of a crontab.
type Place int

// The places; the greater one wins.
const (
	Unsaid Place = iota
	InEnvironment
	OnCommandLine
)

func (o *Option) say(place Place, value string) error {
	if o.Said != nil {
		*o.Said = place
	}
	if place <= o.Minutes {
		value = limit.InMinutes(value)
	}
	return o.Set(value)
}

// ErrHelp is returned for --help: the caller prints the help.
var ErrHelp = errors.New("help")

// unknown is the reason for refusing a verb or an option: the text names it, and what was
// probably meant. Program.Hint adds how to list the right ones.
type unknown string

func (u unknown) Error() string { return string(u) }

func unknownOption(name string, options []Option) error {
	var names []string
	for _, o := range options {
		if o.Help != "" {
			names = append(names, o.Name)
		}
	}
	if o := find(options, name[:min(2, len(name))]); o != nil && o.Arg != "" && !strings.HasPrefix(name, "--") {
		return &fault.Error{Kind: fault.Usage, Object: name, Err: unknown("unknown option: did you mean " + name[:2] + " " + name[2:] + "?")}
	}
	return unknownWord("option", name, "--", names)
}

// Elsewhere adds to the error of an unknown option its counterpart here, if it is another
// program's: said returns that for its name, "" if there is none.
func Elsewhere(err error, said func(option string) string) error {
	var e *fault.Error
	var u unknown
	if !errors.As(err, &u) || u != "unknown option" || !errors.As(err, &e) {
		return err
	}
	name := e.Object
	if !strings.HasPrefix(name, "--") {
		name = name[:2] // of -nE and -w5 the first letter
	}
	how := said(name)
	if how == "" {
		return err
	}
	return &fault.Error{Kind: e.Kind, Object: e.Object, Err: u + unknown(": "+how)}
}

func unknownWord(kind, word, before string, words []string) error {
	return &fault.Error{Kind: fault.Usage, Object: word, Err: unknown(UnknownText(kind, word, before, words))}
}

// UnknownText is the reason for refusing a word that is not in words: it names the word that was
// probably meant, with what stands before it.
func UnknownText(kind, word, before string, words []string) string {
	text := "unknown " + kind
	if meant := Nearest(word, words); meant != "" {
		text += ": did you mean " + before + meant + "?"
	}
	return text
}

// Parse sets the options from the environment, then from args, and returns what
// follows them: from the first argument that is no option, or after "--".
func Parse(options []Option, args []string) (rest []string, err error) {
	return ParseIn(os.Getenv, options, args)
}

// ParseIn is Parse in another environment than this process's.
func ParseIn(getenv func(name string) string, options []Option, args []string) (rest []string, err error) {
	for _, o := range options {
		if value := getenv(o.Env); o.Env != "" && value != "" {
			if err := o.say(InEnvironment, value); err != nil {
				return nil, &fault.Error{Kind: fault.Usage, Object: o.Env, Err: err}
			}
		}
	}
	for len(args) > 0 {
		arg := args[0]
		switch {
		case arg == "--":
			return args[1:], nil
		case isHelp(arg):
			return nil, ErrHelp
		case !looksLikeOption(arg):
			return args, nil
		}
		if args, err = parseOne(options, arg, args[1:]); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// ForScript is an error about an option, in a script's terms: an argument of a function, or a
// variable.
func ForScript(options []Option, err error) error {
	var e *fault.Error
	if !errors.As(err, &e) {
		return err
	}
	o := find(options, e.Object)
	switch {
	case o == nil || o.Env == "":
		return err
	case o.Name == "if-elapsed":
		return &fault.Error{Kind: e.Kind, Object: "IfElapsed", Err: e.Err}
	case o.Name == "expire-after":
		return &fault.Error{Kind: e.Kind, Object: "ExpireAfter", Err: e.Err}
	}
	return &fault.Error{Kind: e.Kind, Object: o.Env, Err: e.Err}
}

// OptionsFirst is args with the options behind or between NAMEs moved before them, for Parse and
// for the library, which has the same rule.
func OptionsFirst(options []Option, args []string) []string {
	var first, names []string
	for len(args) > 0 {
		arg := args[0]
		switch {
		case arg == "--":
			names, args = append(names, args[1:]...), nil
		case isHelp(arg):
			return []string{arg}
		case !looksLikeOption(arg):
			names, args = append(names, arg), args[1:]
		default:
			n := 1
			if name, _, inline := strings.Cut(arg, "="); !inline && find(options, name).takes(options, args[1:]) {
				n = 2
			}
			first, args = append(first, args[:n]...), args[n:]
		}
	}
	return append(append(first, "--"), names...)
}

func isHelp(arg string) bool { return arg == "--help" || arg == "-h" }

func looksLikeOption(arg string) bool { return len(arg) > 1 && arg[0] == '-' }

// takes reports whether the option takes its value from the next argument. It does not if that is
// an option: mostly the value is an empty variable then.
func (o *Option) takes(options []Option, next []string) bool {
	return o != nil && o.Arg != "" && len(next) > 0 && next[0] != "--" && find(options, next[0]) == nil
}

// Environment is this process's own without the settings of its one lock: with those a job's own
// locks would be taken, and wait for it (its slot, for example) for ever.
func Environment(options []Option) []string {
	return slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.ContainsFunc(options, func(o Option) bool { return o.Env == name && !o.Inherited })
	})
}

// parseOne sets the option arg, whose value may be the next argument.
func parseOne(options []Option, arg string, next []string) (rest []string, err error) {
	name, value, inline := strings.Cut(arg, "=")
	o := find(options, name)
	switch {
	case o == nil:
		return nil, unknownOption(name, options)
	case o.Arg == "" && inline:
		return nil, fault.New(fault.Usage, name, "takes no value")
	case o.Arg == "":
		value = "yes"
	case !inline && !o.takes(options, next):
		return nil, fault.New(fault.Usage, name, "needs a value")
	case !inline:
		value, next = next[0], next[1:]
	}
	if err := o.say(OnCommandLine, value); err != nil {
		return nil, &fault.Error{Kind: fault.Usage, Object: name, Err: err}
	}
	return next, nil
}

func find(options []Option, arg string) *Option {
	for i, o := range options {
		if arg == "--"+o.Name || o.Alias != "" && (arg == "--"+o.Alias || len(o.Alias) == 1 && arg == "-"+o.Alias) {
			return &options[i]
		}
	}
	return nil
}

// The kinds of values. Each returns a setter for one variable.

// Text takes the value as it is. An empty one is refused: mostly a variable was not set, and the
// default would then be another lock.
func Text(to *string) func(string) error {
	return func(value string) error {
		if value == "" {
			return errors.New("must not be empty")
		}
		*to = value
		return nil
	}
}

// AnyText takes the value as it is; an empty one is as if the option were not given.
func AnyText(to *string) func(string) error {
	return func(value string) error {
		*to = value
		return nil
	}
}

// Duration takes what limit.Parse takes.
func Duration(to *time.Duration) func(string) error {
	return func(value string) (err error) {
		*to, err = limit.Parse(value)
		return err
	}
}

// Bounded is Duration for a time that has to end.
func Bounded(to *time.Duration) func(string) error {
	return func(value string) error {
		if value == "never" || value == "forever" {
			return badValue(value, `want a time that ends, such as "5m"`)
		}
		return form(Duration(to)(value), value, "want "+limit.Form)
	}
}

// form rewords the error err about a duration, unless it is a missing unit.
func form(err error, value, want string) error {
	if err == nil || limit.LacksUnit(value) {
		return err
	}
	return badValue(value, want)
}

// The shortest period of ticks is the unit of a store's clock; the longest allows several ticks.
const (
	shortestPeriod = time.Second
	longestPeriod  = 10 * 365 * 24 * time.Hour
)

// Period is the length of ticks; 0: no ticks.
func Period(to *time.Duration) func(string) error {
	return func(value string) error {
		var period time.Duration
		const want = "want a time from 1s to ten years, or 0"
		if err := form(Duration(&period)(value), value, want); err != nil {
			return err
		}
		if period != 0 && (period < shortestPeriod || period > longestPeriod) {
			return badValue(value, want)
		}
		*to = period
		return nil
	}
}

// waitFor is Duration for a time to wait: forever is endless. Never is refused, as a reader might
// take it for no wait at all.
func waitFor(to *time.Duration) func(string) error {
	return func(value string) error {
		switch value {
		case "never":
			return badValue(value, `want "forever" to wait without end, 0 not to wait`)
		case "forever":
			*to = limit.Never
			return nil
		}
		return form(Duration(to)(value), value, "want "+limit.Form+`; or "forever"`)
	}
}

// learned is like the setter set, and takes "auto" as well: the limit is learned from the atom's
// past runs. The last word wins, so another word takes that back.
func learned(set func(string) error, auto *bool) func(string) error {
	return func(value string) error {
		*auto = value == "auto"
		if *auto {
			return nil
		}
		return set(value)
	}
}

// Given is Duration that also records that the limit was set.
func Given(to *time.Duration, asked *bool) func(string) error {
	return func(value string) error {
		*asked = true
		return Duration(to)(value)
	}
}

// Toggle is a switch; in the environment 1, yes, true or 0, no, false.
func Toggle(to *bool) func(string) error {
	return func(value string) error {
		switch value {
		case "1", "yes", "true":
			*to = true
		case "0", "no", "false":
			*to = false
		default:
			return badValue(value, "want 1 or 0")
		}
		return nil
	}
}

// Number is a whole number from least to most.
func Number(to *int, least, most int) func(string) error {
	return func(value string) (err error) {
		n, err := strconv.Atoi(value)
		if err != nil || n < least || n > most {
			return badValue(value, "want a whole number from "+strconv.Itoa(least)+" to "+strconv.Itoa(most))
		}
		*to = n
		return nil
	}
}

// Instant is a point of the wall clock in seconds since the epoch; fractions
// are allowed.
func Instant(to *time.Time) func(string) error {
	return func(value string) error {
		seconds, err := strconv.ParseFloat(value, 64)
		if err != nil || !(seconds > 0 && seconds < 1<<33) {
			return badValue(value, "want seconds since the epoch")
		}
		whole := int64(seconds)
		*to = time.Unix(whole, int64((seconds-float64(whole))*1e9))
		return nil
	}
}

// Uptime is a point of the clock of /proc/uptime, in seconds.
func Uptime(to *time.Duration) func(string) error {
	return func(value string) error {
		seconds, err := strconv.ParseFloat(value, 64)
		if err != nil || !(seconds >= 0 && seconds < 1<<33) {
			return badValue(value, "want seconds since the boot")
		}
		*to = time.Duration(seconds * float64(time.Second))
		return nil
	}
}

func badValue(value, want string) error {
	return fault.New(fault.Usage, strconv.Quote(value), want)
}

// PID reads a process id: whole, above 0.
func PID(value string) (pid int, err error) {
	if err := Number(&pid, 1, 1<<30)(value); err != nil {
		return 0, err
	}
	return pid, nil
}
