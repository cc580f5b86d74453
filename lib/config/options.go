// Package config reads options, variables and settings files, finds the directories and the partner programs, and runs
// the verbs of a program. There is one table of settings (Table) and one parser of options (Next).
package config

import (
	"cmp"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"adlock/lib/fault"
	"adlock/lib/limit"
	"adlock/lib/process"
)

type Option struct {
	Name  string // --NAME
	Alias string // a second name; one letter: -A
	Env   string // the variable that sets the option, too; "": none
	Arg   string // the name of its value in the help; "": a switch
	Set   func(value string) error

	// Minutes is the strongest Place at which a number without a unit means minutes.
	Minutes Place

	Help    string // "": the help does not list it
	Default string // the default in words; "": none, or off

	// Inherited is true if the job inherits Env: for options that locate the locks or apply to every lock. Other
	// variables apply to one lock, and Environment removes them.
	Inherited bool

	Where Where // where the setting may stand in a settings file
}

var ErrHelp = errors.New("help") // for --help: the caller prints the help

type unknown struct {
	kind  string // what is unknown: an option, a verb, a setting
	meant string // what was probably meant instead; "": unknown
	other string // what to use instead, if another program has that option
}

func (u unknown) Error() string {
	text := "unknown " + u.kind
	if u.meant != "" {
		text += ": did you mean " + u.meant + "?"
	}
	if u.other != "" {
		text += ": " + u.other
	}
	return text
}

func unknownOption(name string, options []Option) error {
	var names []string
	for _, o := range options {
		if o.Help != "" {
			names = append(names, o.Name)
		}
	}
	if o := Find(options, name[:min(2, len(name))]); o != nil && o.Arg != "" && !strings.HasPrefix(name, "--") {
		return &fault.Error{Kind: fault.Usage, Object: name, Err: unknown{kind: "option", meant: name[:2] + " " + name[2:]}}
	}
	return unknownWord("option", name, "--", names)
}

// Elsewhere adds to the error for an unknown option the text that said returns: what to use instead. An error that
// already suggests an option stays as it is.
func Elsewhere(err error, said func(option string) string) error {
	var e *fault.Error
	var u unknown
	if !errors.As(err, &u) || u.kind != "option" || u.meant != "" || !errors.As(err, &e) {
		return err
	}
	name := e.Object
	if !strings.HasPrefix(name, "--") {
		name = name[:min(2, len(name))] // -n of -nE, -w of -w5
	}
	u.other = said(name)
	return &fault.Error{Kind: e.Kind, Object: e.Object, Err: u}
}

func unknownWord(kind, word, before string, words []string) error {
	return &fault.Error{Kind: fault.Usage, Object: word, Err: Unknown(kind, word, before, words)}
}

// Unknown is the error for a word that is not in words. It suggests the nearest of them, prefixed by before.
func Unknown(kind, word, before string, words []string) error {
	u := unknown{kind: kind}
	if meant := Nearest(word, words); meant != "" {
		u.meant = before + meant
	}
	return u
}

// Parse is Origins.Parse for callers that do not need to know where an option was set.
func Parse(options []Option, args []string) (rest []string, err error) {
	return Origins{}.Parse(options, args)
}

// Parse sets the options from the environment, then from args, and records where each was set. It returns the other
// arguments: those from the first that is no option, or after "--".
//
// Parse also sets locations from the heads of the settings files. If that fails (fault.Misconfigured), all else is set,
// and Parse returns rest, too. Other settings of the files are set once the atom is known (Configure).
func (all Origins) Parse(options []Option, args []string) (rest []string, err error) {
	if rest, err = all.ParseIn(os.Getenv, options, args); err != nil {
		return nil, err
	}
	for i := range options {
		o := &options[i]
		if o.Where != Location || all[o.Name].Place != Unsaid {
			continue
		}
		filed, err := head(o.Env)
		if err == nil && filed.Value != "" {
			err = all.set(o, filed.From, filed.Value)
		}
		if err != nil {
			return rest, err
		}
	}
	return rest, nil
}

// ParseIn sets the options from the environment that getenv reads and from args. It reads no settings file.
func (all Origins) ParseIn(getenv func(name string) string, options []Option, args []string) (rest []string, err error) {
	for i := range options {
		o := &options[i]
		if value := getenv(o.Env); o.Env != "" && value != "" {
			if err := all.set(o, Origin{Place: InEnvironment, Word: o.Env}, value); err != nil {
				return nil, err
			}
		}
	}
	for {
		o, value, n, err := Next(options, args)
		switch {
		case err != nil:
			return nil, err
		case o == nil:
			return args[n:], nil
		}
		name, _, _ := strings.Cut(args[0], "=")
		if err := all.set(o, Origin{Place: OnCommandLine, Word: name}, value); err != nil {
			return nil, err
		}
		args = args[n:]
	}
}

// Guess is ParseIn for arguments that were refused: it skips mistakes. It returns the arguments after "--", or from the
// first word that is a command; nil if there is neither.
func (all Origins) Guess(options []Option, args []string, isCommand func(word string) bool) (command []string) {
	for i := range options {
		_, _ = all.ParseIn(os.Getenv, options[i:i+1], nil)
	}
	for len(args) > 0 {
		o, value, n, _ := Next(options, args)
		switch {
		case o != nil:
			_ = all.set(o, Origin{Place: OnCommandLine, Word: args[0]}, value)
		case args[0] == "--" && (len(args) == 1 || args[1] != "--"), !looksLikeOption(args[0]) && isCommand(args[0]):
			return args[n:]
		}
		args = args[max(n, 1):]
	}
	return nil
}

// Next returns the option at the beginning of args, its value ("yes" for a switch), and how many of args it takes. If
// args begin with no option, o is nil, and n is 1 for "--" and for an error, 0 for an argument and at the end.
func Next(options []Option, args []string) (o *Option, value string, n int, err error) {
	switch {
	case len(args) == 0 || !looksLikeOption(args[0]):
		return nil, "", 0, nil
	case args[0] == "--":
		return nil, "", 1, nil
	case args[0] == "--help" || args[0] == "-h":
		return nil, "", 1, ErrHelp
	}
	name, value, inline := strings.Cut(args[0], "=")
	o = Find(options, name)
	switch {
	case o == nil:
		return nil, "", 1, unknownOption(name, options)
	case o.Arg == "" && inline:
		return nil, "", 1, fault.New(fault.Usage, name, "takes no value")
	case o.Arg == "":
		return o, "yes", 1, nil
	case inline:
		return o, value, 1, nil
	case len(args) == 1 || slices.Contains([]string{"--", "--help", "-h"}, args[1]) || Find(options, args[1]) != nil: // the value was probably an empty variable
		return nil, "", 1, fault.New(fault.Usage, name, "needs a value: "+o.Arg)
	}
	return o, args[1], 2, nil
}

// ForScript names the option in an error as a script knows it: IfElapsed, ExpireAfter or a variable.
func ForScript(options []Option, err error) error {
	var e *fault.Error
	if !errors.As(err, &e) {
		return err
	}
	o := Find(options, e.Object)
	if o == nil || o.Env == "" {
		return err
	}
	object := cmp.Or(map[string]string{"if-elapsed": "IfElapsed", "expire-after": "ExpireAfter"}[o.Name], o.Env)
	return &fault.Error{Kind: e.Kind, Object: object, Err: e.Err}
}

// OptionsFirst moves options before NAMEs, as Parse needs them. If --help is among the options, it returns only --help.
func OptionsFirst(options []Option, args []string) []string {
	var first, names []string
	for len(args) > 0 {
		o, _, n, err := Next(options, args)
		switch {
		case errors.Is(err, ErrHelp):
			return args[:1]
		case o != nil, err != nil: // Parse reports the error
			first = append(first, args[:n]...)
		case n == 1:
			return slices.Concat(first, args[:1], names, args[1:])
		default:
			n = 1
			names = append(names, args[0])
		}
		args = args[n:]
	}
	return slices.Concat(first, []string{"--"}, names)
}

func looksLikeOption(arg string) bool { return len(arg) > 1 && arg[0] == '-' }

// Environment returns this process's environment without the settings that apply to one lock. A job that
// locks other atoms would use them for those too, and might wait for itself for ever.
func Environment() []string {
	return slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		o := OfVariable(name)
		return o != nil && !o.Inherited
	})
}

// Find returns the option that an argument names, also one with =VALUE; nil if there is none.
func Find(options []Option, arg string) *Option {
	arg, _, _ = strings.Cut(arg, "=")
	long, isLong := strings.CutPrefix(arg, "--")
	for i := range options {
		o := &options[i]
		if isLong && long != "" && (long == o.Name || long == o.Alias) || len(o.Alias) == 1 && arg == "-"+o.Alias {
			return o
		}
	}
	return nil
}

// Text is a setter that refuses an empty value: that is probably the value of an unset variable, and as a part of the
// atom it would select another lock.
func Text(to *string) func(string) error {
	return func(value string) error {
		if value == "" {
			return errors.New("must not be empty")
		}
		return AnyText(to)(value)
	}
}

// AnyText is a setter that accepts any value; an empty one undoes an earlier one.
func AnyText(to *string) func(string) error {
	return func(value string) error {
		*to = value
		return nil
	}
}

// Duration is a setter that accepts what limit.Parse accepts.
func Duration(to *time.Duration) func(string) error {
	return func(value string) error {
		d, err := limit.Parse(value)
		if err == nil {
			*to = d
		}
		return err
	}
}

// Bounded is Duration for a time that has to end: it refuses "never" and "forever".
func Bounded(to *time.Duration) func(string) error {
	return func(value string) error {
		if value == "never" || value == "forever" {
			return badValue(value, `want a time that ends, such as "5m"`)
		}
		return form(Duration(to)(value), value, "want "+limit.Form)
	}
}

// form returns an error that says what is wanted. It returns err itself if err is nil, or already says that a unit
// is missing or the duration is too long.
func form(err error, value, want string) error {
	if err == nil || limit.LacksUnit(value) || limit.TooLong(value) {
		return err
	}
	return badValue(value, want)
}

// shortestPeriod is the unit of a store's clock and of tick names. Ten longestPeriods (Tick.Life) fit a Duration.
const (
	shortestPeriod = time.Second
	longestPeriod  = 10 * 365 * 24 * time.Hour
)

// Period sets the length of ticks; 0 means no ticks.
func Period(to *time.Duration) func(string) error {
	return func(value string) error {
		var period time.Duration
		err := Duration(&period)(value)
		if limit.LacksUnit(value) && err != nil {
			return err
		}
		if err != nil || period != 0 && (period < shortestPeriod || period > longestPeriod || period%time.Second != 0) {
			return badValue(value, "want whole seconds, from 1s to ten years, or 0")
		}
		*to = period
		return nil
	}
}

// waitFor accepts 'forever', and refuses 'never', which could be read as no wait at all.
func waitFor(to *time.Duration) func(string) error {
	return func(value string) error {
		switch value {
		case "never":
			return badValue(value, `want "forever" to wait without end, 0 not to wait`)
		case "forever":
			*to = limit.Never
			return nil
		}
		return form(Duration(to)(value), value, "want "+limit.Form+`, "forever"`)
	}
}

// learned extends a setter by "auto". If the option is repeated, the last value wins.
func learned(set func(string) error, auto *bool) func(string) error {
	return func(value string) error {
		*auto = value == "auto"
		if *auto {
			return nil
		}
		err := set(value)
		if err == nil || limit.LacksUnit(value) {
			return err
		}
		return limit.Bad(value, `"never", "auto"`)
	}
}

// Toggle sets a switch: 1, yes and true turn it on, 0, no and false off.
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

// LeaseLength is Duration within the bounds of a lease.
func LeaseLength(to *time.Duration) func(string) error {
	return func(value string) error {
		err := Duration(to)(value)
		if err == nil && (*to < limit.ShortestLease || *to > limit.LongestLease) {
			err = badValue(value, "want at least 6s and at most 1h")
		}
		return err
	}
}

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

// Instant accepts seconds since the epoch, with fractions.
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

// Since sets a boottime from the uptime that adlock.sh has read in /proc/uptime. As that file counts hundredths of a
// second, Since rounds the boottime up: the script's start must not seem earlier than that of the owner that it finds.
func Since(to *time.Duration) func(string) error {
	return func(value string) error {
		age, err := uptimeAge(value)
		*to = process.Boottime() - max(0, age-uptimeStep)
		return err
	}
}

// passClock is Instant that also accepts uptime:UPTIME, which adlock.sh reads without a fork.
func passClock(to *time.Time) func(string) error {
	return func(value string) error {
		uptime, is := strings.CutPrefix(value, "uptime:")
		if !is {
			return Instant(to)(value)
		}
		age, err := uptimeAge(uptime)
		*to = time.Now().Add(-age)
		return err
	}
}

var uptimeFile = "/proc/uptime" // tests change it

const uptimeStep = 10 * time.Millisecond

// uptimeAge returns how long ago uptimeFile, which may be a container's own, showed that uptime.
func uptimeAge(uptime string) (time.Duration, error) {
	text, err := os.ReadFile(uptimeFile)
	if err != nil {
		return 0, fault.Wrap(uptimeFile, err)
	}
	seconds, _, _ := strings.Cut(string(text), " ")
	then, err := parseUptime(uptime)
	now, failed := parseUptime(seconds)
	return now - then, cmp.Or(err, failed)
}

func parseUptime(text string) (time.Duration, error) {
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || !(seconds >= 0 && seconds < 1<<33) {
		return 0, badValue(text, "want seconds since the boot")
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

func badValue(value, want string) error {
	return fault.New(fault.Usage, strconv.Quote(value), want)
}
