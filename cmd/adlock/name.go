package main

import (
	"adlock/lib/atom"
	"adlock/lib/config"
)

// locationsVerb tells adlock.sh which lock directory and which store the settings files name.
var locationsVerb = config.Verb{Name: "locations", Run: func(args []string) (int, error) {
	if len(args) != 0 {
		return 0, config.LibraryOnly("locations")
	}
	dir, store, err := config.FiledLocations()
	if err != nil {
		return 0, err
	}
	return 0, config.PrintLine(dir + "\n" + store + "\n.") // $( ) would cut empty lines off
}}

var nameVerb = config.Verb{Name: "name", Run: printName}

// printName prints the NAME of an atom, for a shell that cannot build it itself.
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
