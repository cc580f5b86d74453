package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"adlock/lib/config"
	"adlock/lib/fault"
)

// verb is one verb: its options, which set the fields of a query, and its action.
type verb struct {
	options   func(*query) []config.Option
	args      bool       // it takes NAMEs
	named     bool       // it also takes one NAME, with the meaning of --atom
	exclusive [][]string // lists of options that exclude each other
	visits    bool       // as root it looks into the homes of other users
	show      func(*query) error

	// passOn is called if the verb cannot begin. May be nil.
	passOn func(args []string)
}

// program describes the verbs for the help.
func program() *config.Program {
	p := &config.Program{
		Name: filepath.Base(os.Args[0]), Does: "what adlock's locks are doing, and what their runlog teaches",
	}
	for _, known := range config.Reports {
		known.Options = func() []config.Option { return verbs[known.Name].options(new(query)) }
		p.Verbs = append(p.Verbs, known)
	}
	return p
}

// carryOut executes the command line of the program. It returns only if there was no error.
func carryOut(p *config.Program, args []string) {
	fault.OnQuit()
	args = optionsFirst(p, config.AsOptions(args))
	var out output
	err := appOf(p, args, &out).Run(append([]string{p.Name}, args...))
	if err == nil {
		err = fault.Wrap("standard output", out.err)
	}
	switch {
	case err == nil:
		leave(fault.StatusOK)
	case errors.Is(err, errFound):
		leave(1)
	}
	fault.Report(err)
	leave(fault.StatusOf(err))
}

// optionsFirst returns args with the options of a verb before its NAMEs, as the library requires.
func optionsFirst(p *config.Program, args []string) []string {
	if len(args) == 0 || p.Verb(args[0]) == nil || !verbs[args[0]].takesNames() {
		return args
	}
	return append(args[:1:1], config.OptionsFirst(p.Verb(args[0]).Options(), args[1:])...)
}

func (v verb) takesNames() bool { return v.args || v.named }

// errFound gives the exit status of a verb that looks for mistakes and has found and printed some.
var errFound = errors.New("found")

// appOf describes the program to the library (urfave/cli); its help goes to out.
func appOf(p *config.Program, args []string, out *output) *cli.App {
	cli.HelpPrinter = func(w io.Writer, _ string, about any) { _, _ = io.WriteString(w, config.Folded(helpOf(p, about))) } // out keeps the error
	app := &cli.App{
		Name: p.Name, Usage: p.Does, Version: config.Version(), HideHelpCommand: true, Writer: out,
		OnUsageError: func(*cli.Context, error, bool) error { return p.Unknown(args[0]) },
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return p.Unknown(c.Args().First())
			}
			return cli.ShowAppHelp(c)
		},
		ExitErrHandler: func(*cli.Context, error) {}, // reported by carryOut, in one line
	}
	for i := range p.Verbs {
		app.Commands = append(app.Commands, commandOf(p, &p.Verbs[i], args))
	}
	return app
}

// commandOf makes the library's command for a verb. The library splits the command line; the
// setters of package config check the values, with their messages.
func commandOf(p *config.Program, known *config.Verb, args []string) *cli.Command {
	v, q := verbs[known.Name], new(query)
	passOn := func(err error) error {
		if err != nil && v.passOn != nil {
			v.passOn(args[1:])
		}
		return err
	}
	check := func(c *cli.Context) error {
		_, err := config.Parse(known.Options(), args[1:])
		if errors.Is(err, config.ErrHelp) {
			return cli.ShowSubcommandHelp(c)
		}
		return p.Hint(known.Name, passOn(err))
	}
	return &cli.Command{
		Name: known.Name, Usage: known.Does, Flags: flagsOf(v.options(q)), HideHelpCommand: true,
		Before:       check,
		OnUsageError: func(c *cli.Context, _ error, _ bool) error { return check(c) },
		Action: func(c *cli.Context) error {
			arguments := noArguments
			if v.takesNames() {
				arguments = noEmpty(strings.Trim(known.Args, "[.]"))
			}
			if err := errors.Join(arguments(c), onlyOneOf(c, v.exclusive)); err != nil {
				return passOn(err)
			}
			q.args = c.Args().Slice()
			if v.named && len(q.args) > 0 {
				if err := q.nameAtom(); err != nil {
					return err
				}
			}
			if (q.allUsers || v.visits) && os.Geteuid() == 0 {
				if err := passOn(continueInChild()); err != nil {
					return err
				}
			}
			return v.show(q)
		},
	}
}

func helpOf(p *config.Program, about any) string {
	if command, ok := about.(*cli.Command); ok {
		if v := p.Verb(command.Name); v != nil {
			return p.HelpOf(v)
		}
	}
	return p.Help()
}

// flagsOf are the options as the library has them.
func flagsOf(options []config.Option) []cli.Flag {
	var flags []cli.Flag
	for _, o := range options {
		flag := &cli.GenericFlag{Name: o.Name, Usage: o.Help, Value: &value{option: o}}
		if o.Alias != "" {
			flag.Aliases = []string{o.Alias}
		}
		flags = append(flags, flag)
	}
	return flags
}

// value is the value of an option, as flag.Value and cli.Generic have it.
type value struct {
	option config.Option
	text   string // as it was set
}

func (v *value) Set(text string) error {
	v.text = text
	return v.option.Set(text)
}

func (v *value) String() string { return v.text }

// IsBoolFlag reports whether the option is a switch.
func (v *value) IsBoolFlag() bool { return v.option.Arg == "" }

// output is standard output. It keeps its first error, as the library ignores errors when it writes
// help.
type output struct{ err error }

func (o *output) Write(text []byte) (int, error) {
	n, err := os.Stdout.Write(text)
	if o.err == nil {
		o.err = err
	}
	return n, err
}

// noArguments refuses arguments, which the verb would otherwise ignore.
func noArguments(c *cli.Context) error {
	if c.Args().Present() {
		return fault.New(fault.Usage, c.Command.Name, "wants no arguments, got "+strconv.Quote(c.Args().First()))
	}
	return nil
}

// noEmpty refuses an empty NAME or FILE, which is probably a variable that was not set.
func noEmpty(what string) func(*cli.Context) error {
	return func(c *cli.Context) error {
		if slices.Contains(c.Args().Slice(), "") {
			return fault.New(fault.Usage, c.Command.Name, what+" must not be empty")
		}
		return nil
	}
}

// onlyOneOf refuses options that exclude each other.
func onlyOneOf(c *cli.Context, exclusive [][]string) error {
	for _, names := range exclusive {
		given := ""
		for _, name := range names {
			if c.IsSet(name) && given != "" {
				return fault.New(fault.Usage, "--"+name, "cannot go with --"+given)
			}
			if c.IsSet(name) {
				given = name
			}
		}
	}
	return nil
}
