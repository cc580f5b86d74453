package main

import (
	"adlock/lib/atom"
	"adlock/lib/config"
	"adlock/lib/flock"
	"adlock/lib/lockdir/lockfile"
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

// hostVerb tells adlock.sh the host in the names of this machine's locks in DIR: host keep|ask DIR. With
// keep it records the host if that is not done.
var hostVerb = config.Verb{Name: "host", Run: func(args []string) (int, error) {
	if len(args) != 2 {
		return 0, config.LibraryOnly("host")
	}
	host, err := lockfile.Host(args[1], args[0] == "keep")
	if err != nil {
		return 0, err
	}
	return 0, config.PrintLine(host)
}}

// lockableVerb makes FILE for adlock_with where it is not there, and says why it cannot be locked.
var lockableVerb = config.Verb{Name: "lockable", Run: func(args []string) (int, error) {
	if len(args) != 1 {
		return 0, config.LibraryOnly("lockable")
	}
	_, err := flock.Open(args[0], false, true)
	return 0, err
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
