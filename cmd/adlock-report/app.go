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

// verb is one verb: its options, each of which sets something of the query, and
// what it then shows.
type verb struct {
	options func(*query) []config.Option
	args    bool       // it takes NAMEs besides
	named   bool       // it takes one NAME besides, with the meaning of --atom
	apart   [][]string // the names of options that exclude each other
	show    func(*query) error

	// passOn is done where the command line is refused.
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

// carryOut carries out the command line of the program; it returns only when all
// went well.
func carryOut(p *config.Program, args []string) {
	fault.OnQuit()
	args = optionsFirst(p, config.AsOptions(args))
	var out output
	err := appOf(p, args, &out).Run(append([]string{p.Name}, args...))
	if err == nil {
		err = fault.Wrap("standard output", out.err)
	}
	if errors.Is(err, errFound) {
		os.Exit(1)
	}
	if err != nil {
		fault.Report(err)
		os.Exit(fault.StatusOf(err))
	}
}

// optionsFirst is args with the options of a verb before its NAMEs, as the library wants
// them.
func optionsFirst(p *config.Program, args []string) []string {
	if len(args) == 0 || p.Verb(args[0]) == nil || !verbs[args[0]].takesNames() {
		return args
	}
	return append(args[:1:1], config.OptionsFirst(p.Verb(args[0]).Options(), args[1:])...)
}

func (v verb) takesNames() bool { return v.args || v.named }

// errFound is no trouble: a verb that looks for something has found and told it.
var errFound = errors.New("found")

// appOf is the program as the library has it; what it prints goes to out.
func appOf(p *config.Program, args []string, out *output) *cli.App {
	cli.HelpPrinter = func(w io.Writer, _ string, about any) { _, _ = io.WriteString(w, helpOf(p, about)) } // out remembers
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

// commandOf makes the library's command of a verb. The library sets the options; our one
// parser checks their values, with its messages.
func commandOf(p *config.Program, known *config.Verb, args []string) *cli.Command {
	v, q := verbs[known.Name], new(query)
	check := func(c *cli.Context) error {
		_, err := config.Parse(known.Options(), args[1:])
		if errors.Is(err, config.ErrHelp) {
			return cli.ShowSubcommandHelp(c)
		}
		if err != nil && v.passOn != nil {
			v.passOn(args[1:])
		}
		return p.Hint(known.Name, err)
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
			if err := errors.Join(arguments(c), onlyOneOf(c, v.apart)); err != nil {
				return err
			}
			q.args = c.Args().Slice()
			if v.named && len(q.args) > 0 {
				if err := q.nameAtom(); err != nil {
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

// IsBoolFlag says that the option is a switch.
func (v *value) IsBoolFlag() bool { return v.option.Arg == "" }

// output is standard output. It remembers its first error, as the library does
// not look whether its help could be written.
type output struct{ err error }

func (o *output) Write(text []byte) (int, error) {
	n, err := os.Stdout.Write(text)
	if o.err == nil {
		o.err = err
	}
	return n, err
}

// noArguments refuses arguments, which every verb would ignore.
func noArguments(c *cli.Context) error {
	if c.Args().Present() {
		return fault.New(fault.Usage, c.Command.Name, "wants no arguments, got "+strconv.Quote(c.Args().First()))
	}
	return nil
}

// noEmpty refuses an empty NAME or FILE, which mostly is a variable that was not set.
func noEmpty(what string) func(*cli.Context) error {
	return func(c *cli.Context) error {
		if slices.Contains(c.Args().Slice(), "") {
			return fault.New(fault.Usage, c.Command.Name, what+" must not be empty")
		}
		return nil
	}
}

// onlyOneOf refuses options that exclude each other.
func onlyOneOf(c *cli.Context, apart [][]string) error {
	for _, names := range apart {
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
