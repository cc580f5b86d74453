// Command adlock is the helper of the adaptive locks: see README.md.
//
// The verbs that scripts wait for are carried out by package hot before main is
// reached. main builds the command line of the others and everyone's help; what
// only tells people something is the work of adlock-report beside it.
package main

import (
	"github.com/urfave/cli/v2"

	"adlock/cmd/adlock/hot"
	"adlock/lib/app"
	"adlock/lib/command"
)

// version is set by the Makefile.
var version = "unreleased"

func main() {
	app.Run("adlock", "adaptive locks for scripts, cron lines and Makefiles", version, []*cli.Command{
		hotVerb("run", "take the lock, run COMMAND, release the lock", "[--] COMMAND [ARG...]", command.RunOptions()),
		report("status", "list every atom of the lock directory"),
		report("log", "show the record of transactions"),
		report("report", "tell how the atoms fared over a period, and what to mend"),
		report("timeline", "draw what happened"),
		report("metrics", "print metrics for Prometheus"),
		report("tune", "tell what atoms have learned, and what that would decide"),
		clearVerb(),
		hotVerb("stat-age", "print the ages of files in whole seconds", "FILE...", hot.StatAgeOptions()),
		mkatomicVerb(),
		killCarefullyVerb(),
		hotVerb("release", "stamp the last lock and remove the active lock FILE", "FILE", hot.ReleaseOptions()),
	})
}

// hotVerb is a verb of package hot: here only its help is left to do.
func hotVerb(name, usage, args string, options []command.Option) *cli.Command {
	return app.Verb(name, usage, args, flagsOf(options), func(c *cli.Context) error {
		return cli.ShowSubcommandHelp(c)
	})
}

// report is a verb of adlock-report, its help included.
func report(name, usage string) *cli.Command {
	verb := app.Verb(name, usage, " ", nil, func(c *cli.Context) error {
		return command.Become(command.Reporter, "for adlock "+name, name, c.Args().Slice())
	})
	verb.SkipFlagParsing = true
	return verb
}

func flagsOf(options []command.Option) []cli.Flag {
	var flags []cli.Flag
	for _, o := range options {
		var aliases, env []string
		if o.Alias != "" {
			aliases = []string{o.Alias}
		}
		if o.Env != "" {
			env = []string{o.Env}
		}
		if o.Arg == "" {
			flags = append(flags, &cli.BoolFlag{Name: o.Name, Aliases: aliases, EnvVars: env, Usage: o.Help})
			continue
		}
		flags = append(flags, &cli.StringFlag{Name: o.Name, Aliases: aliases, EnvVars: env, Usage: "`" + o.Arg + "`: " + o.Help})
	}
	return flags
}
