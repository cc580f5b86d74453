package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"adlock/lib/app"
	"adlock/lib/atom"
	"adlock/lib/command"
	"adlock/lib/exit"
	"adlock/lib/limit"
	"adlock/lib/lock"
	"adlock/lib/name"
)

func clearVerb() *cli.Command {
	return app.Verb("clear", "remove a lock whose owner a person has judged dead", "NAME | --last --older D",
		[]cli.Flag{
			&cli.BoolFlag{Name: "last", Usage: "prune last locks instead, and print their names"},
			&cli.StringFlag{Name: "older", Usage: "`D`: those not used for D"},
		}, clear)
}

func clear(c *cli.Context) error {
	path, err := lock.DefaultDir()
	if err != nil {
		return err
	}
	dir, err := lock.Open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	if c.Bool("last") {
		return prune(c, dir)
	}
	if c.NArg() != 1 || c.IsSet("older") {
		return exit.New(exit.Usage, "clear", "wants one NAME, or --last --older D")
	}
	files := strings.TrimPrefix(filepath.Base(c.Args().First()), lock.ActivePrefix)
	k, err := keeperOf(dir, files)
	if err != nil {
		return err
	}
	return k.Clear(files)
}

func prune(c *cli.Context, dir *lock.Dir) error {
	if c.NArg() != 0 || !c.IsSet("older") {
		return exit.New(exit.Usage, "clear", "--last wants --older D and nothing else")
	}
	older, err := limit.Parse(c.String("older"))
	if err != nil {
		return &exit.Error{Code: exit.Usage, Object: "--older", Err: err}
	}
	names, err := (&atom.Keeper{Dir: dir}).Prune(older)
	for _, pruned := range names {
		if _, printed := fmt.Fprintln(c.App.Writer, lock.LastPrefix+pruned); printed != nil {
			err = errors.Join(err, exit.Wrap("standard output", printed))
		}
	}
	return err
}

// keeperOf is the keeper of a lock that is known by its name only: the second
// part of it (of a reader's, the third) is the host, whose record tells of the lock.
func keeperOf(dir *lock.Dir, files string) (*atom.Keeper, error) {
	parts := strings.Split(files, ".")
	if len(parts) < 3 || !name.IsName(files) {
		return nil, exit.New(exit.Usage, files, "is not PROGRAM.HOST.OPERATOR.OPERAND")
	}
	host := parts[1]
	if _, reads := lock.IsReader(files); reads {
		host = parts[2]
	}
	log, err := command.RunlogOf(dir.Path(), host)
	return &atom.Keeper{Dir: dir, Log: log}, err
}
