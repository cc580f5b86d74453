// Package hot holds the verbs that a script waits for: taking and releasing a
// lock, the ages of files, and `adlock run`.
//
// They run before the rest of the program is initialised. The command line
// library and what it imports cost a quarter of the whole time of a lock (their
// package initialisation, every time), so the verb is parsed and carried out in
// this package's init, which the language runs as soon as its own imports are
// initialised (Go specification, "Program initialization": sorted by import
// path, "adlock/…" before "github.com/urfave/…"). Hence this package and its
// imports must never import that library. Whatever is not for here, --help too,
// returns to main.
package hot

import (
	"errors"
	"os"

	"adlock/lib/command"
	"adlock/lib/exit"
	"adlock/lib/supervise"
)

// verb is carried out with the arguments behind its name; it returns the exit
// status, or errNotHere for main to go on.
type verb func(args []string) (status int, err error)

// errNotHere hands a command line back to main.
var errNotHere = errors.New("not a hot verb")

func lookup(name string) verb {
	switch name {
	case "run":
		return command.Run
	case "mkatomic":
		return mkatomicLock
	case "kill-carefully":
		return killCarefullyLock
	case "release":
		return release
	case "stat-age":
		return statAge
	case "name":
		return printName
	}
	return nil
}

func init() {
	for _, check := range []func() error{command.CheckPrivilege, command.CheckThreads} {
		if err := check(); err != nil {
			exit.Report(err)
			os.Exit(exit.Code(err))
		}
	}
	supervise.Gate()
	if len(os.Args) < 2 {
		return
	}
	v := lookup(os.Args[1])
	if v == nil {
		return
	}
	status, err := v(os.Args[2:])
	if errors.Is(err, errNotHere) || errors.Is(err, command.ErrHelp) {
		return
	}
	if err != nil {
		exit.Report(err)
		if status == exit.OK {
			status = exit.Code(err)
		}
	}
	os.Exit(status)
}
