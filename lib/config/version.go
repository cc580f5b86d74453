package config

// Release is the version of the programs and of the library: both are installed together.
const Release = "0.2.0"

// Commit is git's name for the source. The Makefile sets it.
var Commit string

func Version() string {
	if Commit == "" {
		return Release
	}
	return Release + " (" + Commit + ")"
}
