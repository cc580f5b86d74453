package main

import (
	"adlock/lib/atom"
	"adlock/lib/config"
	"adlock/lib/flock"
	"adlock/lib/lockdir/lockfile"
)

func forLibrary(name string, count int, answer func(args []string) (text string, err error)) config.Verb {
	return config.Verb{Name: name, Run: func(args []string) (int, error) {
		if len(args) != count {
			return 0, config.LibraryOnly(name)
		}
		text, err := answer(args)
		if err != nil || text == "" {
			return 0, err
		}
		return 0, config.PrintLine(text)
	}}
}

// locationsVerb prints the lock directory and the store that the settings files name, each on a line, and then a dot.
var locationsVerb = forLibrary("locations", 0, func([]string) (string, error) {
	dir, store, err := config.FiledLocations()
	return dir + "\n" + store + "\n.", err // without the dot, $( ) would drop empty lines
})

// hostVerb (host keep|ask DIR) prints the host in the names of this machine's locks in DIR. keep records that host.
var hostVerb = forLibrary("host", 2, func(args []string) (string, error) { return lockfile.Host(args[1], args[0] == "keep") })

// lockableVerb creates FILE for adlock_with, if it does not exist.
var lockableVerb = forLibrary("lockable", 1, func(args []string) (string, error) {
	_, err := flock.Open(args[0], false, true)
	return "", err
})

var nameVerb = forLibrary("name", 4, func(args []string) (string, error) {
	a, err := atom.New(args[0], args[1], args[2], args[3])
	return string(a.Name()), err
})
