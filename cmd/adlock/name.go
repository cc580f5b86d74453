package main

import (
	"adlock/lib/atom"
	"adlock/lib/config"
)

var nameVerb = config.Verb{Name: "name", Run: printName}

// printName prints NAME of an atom, for a shell that cannot build it.
func printName(args []string) (int, error) {
	if len(args) != 4 {
		return 0, config.LibraryOnly("name")
	}
	a, err := atom.New(args[0], args[1], args[2], args[3])
	if err != nil {
		return 0, err
	}
	return 0, config.PrintLine(string(a.Name()))
}
