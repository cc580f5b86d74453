// Package command is what the command lines of taking a lock have in common:
// the options, and `run` itself, for the helper and the locksmith alike. It does
// without the command line library: see package hot.
package command

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"adlock/lib/exit"
	"adlock/lib/limit"
)

// Option is one option of a verb: on the command line, in the environment, and
// in the help, which main makes of the same table.
type Option struct {
	Name  string // --NAME
	Alias string // a second name; one letter: -A
	Env   string // the variable that sets it too; "": none
	Arg   string // what its value is called; "": a switch
	Help  string
	Set   func(value string) error

	// Inherited: a job inherits the variable. Of others it does not, as they were
	// said of the one lock that it runs under (Environment).
	Inherited bool
}

// ErrHelp says that --help was asked for: that is for whoever prints it.
var ErrHelp = errors.New("help")

// Parse sets the options from the environment, then from args, and returns what
// follows them: from the first argument that is no option, or after "--".
func Parse(options []Option, args []string) (rest []string, err error) {
	for _, o := range options {
		if value := os.Getenv(o.Env); o.Env != "" && value != "" {
			if err := o.Set(value); err != nil {
				return nil, &exit.Error{Code: exit.Usage, Object: o.Env, Err: err}
			}
		}
	}
	for len(args) > 0 {
		arg := args[0]
		switch {
		case arg == "--":
			return args[1:], nil
		case arg == "--help" || arg == "-h":
			return nil, ErrHelp
		case len(arg) < 2 || arg[0] != '-':
			return args, nil
		}
		if args, err = parseOne(options, arg, args[1:]); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// Environment is this process's own without what was said of one lock: with that
// a job's own locks would be taken, and wait for it (its slot, say) for ever.
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
		return nil, exit.New(exit.Usage, name, "unknown option")
	case o.Arg == "" && inline:
		return nil, exit.New(exit.Usage, name, "takes no value")
	case o.Arg == "":
		value = "yes"
	case !inline && len(next) == 0:
		return nil, exit.New(exit.Usage, name, "needs a value")
	case !inline:
		value, next = next[0], next[1:]
	}
	if err := o.Set(value); err != nil {
		return nil, &exit.Error{Code: exit.Usage, Object: name, Err: err}
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

// Text takes the value as it is. An empty one is refused: mostly it is a
// variable that was not set, and the default would then be another lock.
func Text(to *string) func(string) error {
	return func(value string) error {
		if value == "" {
			return errors.New("must not be empty")
		}
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

// Learned is like the setter set, and takes "auto" as well: the atom's own
// history decides. The later word counts, so anything else takes that back.
func Learned(set func(string) error, auto *bool) func(string) error {
	return func(value string) error {
		*auto = value == "auto"
		if *auto {
			return nil
		}
		return set(value)
	}
}

// Given is Duration that also remembers that the limit was asked for.
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
	return exit.New(exit.Usage, strconv.Quote(value), want)
}

// PID reads a process id: whole, above 0.
func PID(value string) (pid int, err error) {
	if err := Number(&pid, 1, 1<<30)(value); err != nil {
		return 0, err
	}
	return pid, nil
}
