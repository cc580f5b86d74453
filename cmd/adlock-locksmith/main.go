// Command adlock-locksmith holds locks in a store beyond this machine: see
// README.md, "Beyond one machine". `adlock run --store` and adlock.sh start it.
package main

import (
	"errors"
	"os"

	_ "adlock/cmd/adlock-locksmith/early" // first of all
	"adlock/lib/command"
	"adlock/lib/exit"
)

// version is set by the Makefile.
var version = "unreleased"

const usage = `adlock-locksmith: locks in a store beyond this machine

	adlock-locksmith run --store URL [OPTION...] [--] COMMAND [ARG...]
		as adlock run: see adlock run --help
	adlock-locksmith hold and release
		what adlock_get and adlock_release run, where ADLOCK_STORE is set

A store is etcd://HOST:PORT[,HOST:PORT...]/PREFIX or ftp://USER@HOST[:PORT]/DIR.`

func main() {
	status, err := verb(os.Args[1:])
	if errors.Is(err, command.ErrHelp) {
		err = command.PrintLine(usage)
	}
	if err != nil {
		exit.Report(err)
		if status == exit.OK {
			status = exit.Code(err)
		}
	}
	os.Exit(status)
}

func verb(args []string) (int, error) {
	if len(args) == 0 {
		return 0, command.ErrHelp
	}
	switch args[0] {
	case "run":
		return command.RunIn(open, args[1:])
	case "hold":
		return hold(args[1:])
	case "holder":
		return heldUntil(args[1:])
	case "release":
		return release(args[1:])
	case "--version":
		return 0, command.PrintLine("adlock-locksmith version " + version)
	case "--help", "-h":
		return 0, command.ErrHelp
	}
	return 0, exit.New(exit.Usage, args[0], "unknown verb (adlock-locksmith --help lists them)")
}
