// Package app is what the command lines for people have in common: the same
// shape of help, and every error one line with its status.
package app

import (
	"os"
	"strconv"

	"github.com/urfave/cli/v2"

	"adlock/lib/exit"
)

// Run carries out the command line of a program; it returns only when all went
// well.
func Run(name, usage, version string, verbs []*cli.Command) {
	exit.OnQuit()
	app := &cli.App{
		Name: name, Usage: usage, Version: version, HideHelpCommand: true, Commands: verbs,
		OnUsageError: usageError,
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return exit.New(exit.Usage, c.Args().First(), "unknown verb ("+name+" --help lists them)")
			}
			return cli.ShowAppHelp(c)
		},
		ExitErrHandler: func(*cli.Context, error) {}, // reported below, in one line
	}
	var out output
	app.Writer = &out
	err := app.Run(os.Args)
	if err == nil {
		err = exit.Wrap("standard output", out.err)
	}
	if err != nil {
		exit.Report(err)
		os.Exit(exit.Code(err))
	}
}

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

func usageError(c *cli.Context, err error, _ bool) error {
	return &exit.Error{Code: exit.Usage, Object: c.Command.Name, Err: err}
}

// Verb is one verb. args names what it takes besides flags; " " is nothing.
func Verb(name, usage, args string, flags []cli.Flag, action cli.ActionFunc) *cli.Command {
	return &cli.Command{
		Name: name, Usage: usage, ArgsUsage: args, Flags: flags, Action: action,
		OnUsageError: usageError, HideHelpCommand: true,
	}
}

// NoArguments refuses arguments that a verb would ignore.
func NoArguments(c *cli.Context) error {
	if c.Args().Present() {
		return exit.New(exit.Usage, c.Command.Name, "wants no arguments, got "+strconv.Quote(c.Args().First()))
	}
	return nil
}

// OneOf refuses options that exclude each other.
func OneOf(c *cli.Context, options ...string) error {
	given := ""
	for _, option := range options {
		if c.IsSet(option) && given != "" {
			return exit.New(exit.Usage, "--"+option, "cannot go with --"+given)
		}
		if c.IsSet(option) {
			given = option
		}
	}
	return nil
}
