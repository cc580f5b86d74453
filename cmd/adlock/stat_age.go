package main

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"slices"
	"strconv"
	"time"

	"adlock/lib/config"
	"adlock/lib/fault"
	"adlock/lib/limit"
)

type ageArgs struct {
	atLeast time.Duration // below 0: not given
	now     time.Time
}

func (a *ageArgs) options() []config.Option {
	return []config.Option{
		{Name: "at-least", Arg: "D", Help: "print nothing; exit 0 if every FILE is at least D old, else 1", Set: config.Duration(&a.atLeast)},
		{Name: "now", Arg: "EPOCH", Help: "the time at which the ages are measured, in seconds since the epoch", Set: config.Instant(&a.now)},
	}
}

var statAgeVerb = config.Verb{
	Name: "stat-age", Does: "print the ages of files in whole seconds", Args: "FILE...",
	Options: func() []config.Option { return new(ageArgs).options() }, Run: statAge,
}

// statAge prints the ages of files or, with --at-least, exits with 1 if one is younger. The last lock of an
// atom that never completed (mtime 0) is as old as the epoch. An error on one file does not stop the others.
func statAge(args []string) (int, error) {
	a := ageArgs{atLeast: -1}
	files, err := config.Parse(a.options(), args)
	if err != nil {
		return 0, err
	}
	if len(files) == 0 {
		return 0, fault.New(fault.Usage, "stat-age", "wants a FILE")
	}
	if slices.Contains(files, "") {
		return 0, fault.New(fault.Usage, "stat-age", "FILE must not be empty")
	}
	if a.now.IsZero() {
		a.now = time.Now()
	}
	status := fault.StatusOK
	var failed error
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			failed = errors.Join(failed, &fault.Error{Kind: fault.Unavailable, Object: file, Err: err})
			continue
		}
		switch age := a.now.Sub(info.ModTime()); {
		case a.atLeast < 0:
			failed = errors.Join(failed, config.PrintLine(wholeSeconds(age)))
		case a.atLeast == limit.Never || age < a.atLeast:
			status = 1
		}
	}
	return max(status, fault.StatusOf(failed)), failed
}

// ageVerb prints how many seconds ago the atom of the last lock FILE completed. A missing FILE is as old as the epoch.
var ageVerb = forLibrary("last-age", 1, func(args []string) (string, error) { return ageOf(args[0]) })

func ageOf(file string) (string, error) {
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return wholeSeconds(time.Since(time.Unix(0, 0))), nil
	case err != nil:
		return "", fault.Wrap(file, errors.Unwrap(err))
	}
	return wholeSeconds(time.Since(info.ModTime())), nil
}

// wholeSeconds rounds down, also below zero: a file with a time in the future must not seem 0 seconds old.
func wholeSeconds(age time.Duration) string {
	return strconv.FormatInt(int64(math.Floor(age.Seconds())), 10)
}
