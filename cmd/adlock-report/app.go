package main

import (
	"cmp"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"adlock/lib/config"
	"adlock/lib/fault"
)

type verb struct {
	options   func(*query) []config.Option
	args      bool       // the verb takes NAMEs, FILEs or USERs
	named     bool       // the verb's arguments are one NAME: an atom's whole name, else a text as for --atom
	exclusive [][]string // lists of options that exclude each other
	visits    bool       // if root runs the verb, a child process reads files of other users
	show      func(*query) error

	// passOn, if not nil, is called with all words after the verb if an option is refused or begin fails.
	passOn func(args []string)
}

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

// errFound is returned by a verb that has printed what it found: the exit status is 1, without a message.
var errFound = errors.New("found")

func carryOut(p *config.Program, args []string) {
	fault.OnQuit()
	args = optionsFirst(p, config.AsOptions(args))
	var unprinted error // the error of show below, which the cli library would ignore
	show := func(text string) { unprinted = write([]byte(text)) }
	cli.HelpPrinter = func(_ io.Writer, _ string, about any) {
		text := p.Help()
		if command, is := about.(*cli.Command); is {
			text = p.HelpOf(p.Verb(command.Name))
		}
		show(config.Folded(text))
	}
	cli.VersionPrinter = func(*cli.Context) { show(p.Name + " version " + config.Version() + "\n") }
	app := &cli.App{
		Name: p.Name, Version: config.Version(), HideHelpCommand: true,
		OnUsageError: func(*cli.Context, error, bool) error { return p.Unknown(args[0]) },
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return p.Unknown(c.Args().First())
			}
			return cli.ShowAppHelp(c)
		},
		ExitErrHandler: func(*cli.Context, error) {}, // errors are reported below, in one line
	}
	for i := range p.Verbs {
		app.Commands = append(app.Commands, commandOf(p, &p.Verbs[i], args))
	}
	err := cmp.Or(app.Run(append([]string{p.Name}, args...)), unprinted)
	if errors.Is(err, errFound) {
		leave(1)
	}
	if err != nil {
		fault.Report(err)
	}
	leave(fault.StatusOf(err))
}

// optionsFirst returns args with the options of a verb before its NAMEs, as the cli library requires.
func optionsFirst(p *config.Program, args []string) []string {
	if len(args) == 0 || p.Verb(args[0]) == nil || !verbs[args[0]].takesNames() {
		return args
	}
	return append(args[:1:1], config.OptionsFirst(p.Verb(args[0]).Options(), args[1:])...)
}

func (v verb) takesNames() bool { return v.args || v.named }

func commandOf(p *config.Program, known *config.Verb, args []string) *cli.Command {
	v, q := verbs[known.Name], &query{now: time.Now()}
	passOn := func(err error) error {
		if err != nil && v.passOn != nil {
			v.passOn(args[1:])
		}
		return err
	}
	command := &cli.Command{Name: known.Name, HideHelpCommand: true}
	command.OnUsageError = func(_ *cli.Context, err error, _ bool) error {
		return passOn(refusal(p, command, args, err))
	}
	command.Action = func(c *cli.Context) error {
		q.args = c.Args().Slice()
		if err := v.begin(c, q, strings.Trim(known.Args, "[.]")); err != nil {
			return passOn(err)
		}
		return v.show(q)
	}
	options := v.options(q)
	for _, o := range options {
		flag := &cli.GenericFlag{Name: o.Name, Value: &value{Option: o, all: options, args: args}}
		if o.Alias != "" {
			flag.Aliases = []string{o.Alias}
		}
		command.Flags = append(command.Flags, flag)
	}
	return command
}

// begin checks the arguments; what is their name in the help. If root is to read other users' files, a child continues.
func (v verb) begin(c *cli.Context, q *query, what string) error {
	verb := c.Command.Name
	switch {
	case !v.takesNames() && len(q.args) > 0: // the verb would ignore them
		return fault.New(fault.Usage, verb, "wants no arguments, got "+strconv.Quote(q.args[0]))
	case slices.Contains(q.args, ""): // probably a variable that was not set
		return fault.New(fault.Usage, verb, what+" must not be empty")
	}
	if err := onlyOneOf(c, v.exclusive); err != nil {
		return err
	}
	if v.named && len(q.args) > 0 {
		if err := q.nameAtom(); err != nil {
			return err
		}
	}
	if (q.allUsers || v.visits) && os.Geteuid() == 0 {
		return continueInChild()
	}
	return nil
}

// value makes an option's value a cli.Generic.
type value struct {
	config.Option
	all    []config.Option // all options of the verb
	args   []string        // all arguments of the program
	text   string          // the value as it was given
	failed error           // why text was refused; nil: it was not
}

func (v *value) Set(text string) (err error) {
	v.text = text
	switch {
	case v.Arg == "" && text != "true": // the library sets "true" for an option without a value
		err = errors.New("takes no value")
	case v.Arg != "" && (text == "--" || config.Find(v.all, text) != nil) && !slices.Contains(v.args, "--"+v.Name+"="+text): // probably an empty variable
		err = errors.New("needs a value: " + v.Arg)
	default:
		err = v.Option.Set(text)
	}
	if err != nil {
		v.failed = &fault.Error{Kind: fault.Usage, Object: "--" + v.Name, Err: err}
	}
	return err
}

func (v *value) String() string { return v.text }

func (v *value) IsBoolFlag() bool { return v.Arg == "" }

func refusal(p *config.Program, command *cli.Command, args []string, err error) error {
	var names []string
	for _, flag := range command.Flags {
		names = append(names, flag.Names()[0])
		if option, is := flag.(*cli.GenericFlag); is && option.Value.(*value).failed != nil {
			return option.Value.(*value).failed
		}
	}
	object, reason := command.Name, err.Error()
	if name, is := strings.CutPrefix(reason, "flag provided but not defined: -"); is { // the library has no error type for this
		for _, arg := range args {
			if word, _, _ := strings.Cut(arg, "="); word == "-"+name || word == "--"+name {
				object = word
			}
		}
		reason = config.Unknown("option", object, "--", names).Error()
	} else if twice, is := strings.CutPrefix(reason, "Cannot use two forms of the same flag: "); is {
		short, long, _ := strings.Cut(twice, " ")
		object, reason = "-"+short, "is --"+long+", which is there too"
	}
	return fault.New(fault.Usage, object, reason+" ("+p.Name+" "+command.Name+" --help lists them)")
}

func onlyOneOf(c *cli.Context, exclusive [][]string) error {
	for _, names := range exclusive {
		given := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !c.IsSet(name) })
		if len(given) > 1 {
			return fault.New(fault.Usage, "--"+given[1], "cannot go with --"+given[0])
		}
	}
	return nil
}
