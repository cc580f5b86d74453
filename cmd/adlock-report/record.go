package main

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"adlock/lib/atom"
	"adlock/lib/exit"
	"adlock/lib/history"
	"adlock/lib/limit"
	"adlock/lib/lock"
	"adlock/lib/name"
	"adlock/lib/policy"
)

// What the verbs that read the record have in common. They change nothing of
// locks or record, so whatever goes wrong here is no job's business.

// recordDir is where the record is kept: $ADLOCK_LOGDIR, else the lock directory.
func recordDir() (string, error) {
	if dir := os.Getenv("ADLOCK_LOGDIR"); dir != "" {
		return dir, nil
	}
	return lock.DefaultDir()
}

// atoms are those of the lock directory. No directory, no atoms.
func atoms() ([]atom.Entry, error) {
	path, err := lock.DefaultDir()
	if err != nil {
		return nil, err
	}
	dir, err := lock.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return (&atom.Keeper{Dir: dir}).List()
}

// stillHeld says of a token whether an owner that may live holds a lock with it.
func stillHeld(entries []atom.Entry) func(token string) bool {
	tokens := map[string]bool{}
	for i := range entries {
		if e := &entries[i]; e.Active.Held && e.Active.Owner != policy.Dead {
			tokens[e.Record.Token] = true
		}
	}
	return func(token string) bool { return tokens[token] }
}

// nameOf is the atom of an entry, as well as it can be told.
func nameOf(e *atom.Entry) (name.Atom, bool) {
	switch none := (name.Atom{}); {
	case e.Record.Atom != none:
		return e.Record.Atom, true
	case e.Memory.Atom != none:
		return e.Memory.Atom, true
	}
	return name.Parse(e.Files)
}

func sinceFlag(usage string) cli.Flag {
	return &cli.StringFlag{Name: "since", Usage: "`WHEN`: a duration such as 7d, or a local time such as \"2026-11-20 14:00\" (default: " + usage + ")"}
}

// when is the time that an option gives; not given it is otherwise.
func when(c *cli.Context, option string, now, otherwise time.Time) (time.Time, error) {
	text := c.String(option)
	if text == "" {
		return otherwise, nil
	}
	if d, err := limit.Parse(text); err == nil {
		if d == limit.Never {
			return time.Time{}, nil
		}
		return now.Add(-d), nil
	}
	for _, layout := range [...]string{time.RFC3339, "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02"} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, exit.New(exit.Usage, "--"+option, "is neither a duration nor a time: "+strconv.Quote(text))
}

func atomFlag() cli.Flag {
	return &cli.StringFlag{Name: "atom", Usage: "`TEXT`: only atoms with TEXT in \"program operator operand\", or with this NAME"}
}

// matches says whether an atom is one that --atom asks for.
func matches(text string, a name.Atom) bool {
	return text == "" || strings.Contains(history.Text(a), text) || a.Name() == text
}

func matcher(c *cli.Context) func(*history.Atom) bool {
	text := c.String("atom")
	return func(a *history.Atom) bool { return matches(text, a.Atom) }
}

// write writes to standard output.
func write(text []byte) error {
	_, err := os.Stdout.Write(text)
	return exit.Wrap("standard output", err)
}

// tellDamage says aloud that lines were passed over.
func tellDamage(lines int, dir string) {
	if lines > 0 {
		exit.Report(exit.New(exit.OK, dir, strconv.Itoa(lines)+" damaged lines of the record passed over (adlock log shows them)"))
	}
}
