package run

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"adlock/lib/cronline"
	"adlock/lib/fault"
	"adlock/lib/limit"
	"adlock/lib/supervise"
)

// counterparts lists what to use in adlock for options of flock(1) and timeout(1).
var counterparts = []struct{ options, say string }{
	{"-n --nb --nonblock -x -e --exclusive", "for flock -n LOCK COMMAND say adlock run --name LOCK COMMAND"},
	{"--timeout", "to end the job after D say --expire-after D --enforce; to wait at most D for the lock, as flock does, say --wait D"},
	{"-w", "for flock -w 5 LOCK COMMAND say adlock run --name LOCK --wait 5s COMMAND"},
	{"-c --command", "for flock -n LOCK -c 'COMMAND' say adlock run --name LOCK sh -c 'COMMAND'"},
	{"-s", "for flock -ns LOCK COMMAND say adlock run --name LOCK --shared COMMAND"},
	{"--conflict-exit-code", "for flock -n -E 0 LOCK COMMAND say adlock run --name LOCK -E 0 COMMAND"},
	{"-k --kill-after", "for timeout -k 9s 5m COMMAND say adlock run --expire-after 5m --enforce --pause 9s COMMAND"},
}

func counterpart(option string) string {
	for _, c := range counterparts {
		if slices.Contains(strings.Fields(c.options), option) {
			return c.say
		}
	}
	return ""
}

const (
	letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"
	decimal = "0123456789"
)

func meant(command []string, err error) error {
	var e *fault.Error
	if hint := hintAt(command); hint != "" && errors.As(err, &e) {
		return &fault.Error{Kind: e.Kind, Object: e.Object, Err: errors.New(e.Err.Error() + " (" + hint + ")")}
	}
	return err
}

func hintAt(command []string) string {
	first := command[0]
	switch {
	case cronline.IsAssignment(first):
		return "to set a variable: env " + line(command)
	case cronline.IsShellWord(first):
		return "for what only a shell can do: sh -c " + quote(strings.Join(command, " "))
	case isDirectory(first):
		return "it is a directory"
	case isLockFile(first) && len(command) > 1:
		return "no lock file is named here: --name " + quote(strings.TrimSuffix(filepath.Base(first), filepath.Ext(first))) + " names the lock"
	case strings.ContainsAny(first, " \t\n|&;<>()$`*?\"'"):
		return "for a line of the shell: sh -c " + quote(first)
	case len(command) > 1:
		return hintAtPrefix(first, command[1:])
	}
	return ""
}

// hintAtPrefix returns a hint if a command follows the word first, as it does in flock(1) and timeout(1).
func hintAtPrefix(first string, command []string) string {
	_, missing := supervise.Find(command[0])
	switch {
	case strings.Contains(first, "/"):
		return ""
	case command[0] == "-c":
		return "to name the lock: --name " + quote(first) + " sh " + line(command)
	case missing != nil:
		return ""
	case strings.Trim(first, decimal) == "":
		first += "s"
	}
	if _, err := limit.Parse(first); err == nil {
		return "to end it after " + first + ": --expire-after " + first + " --enforce"
	}
	return "to name the lock: --name " + quote(first)
}

// isLockFile reports whether a word may be the lock file for flock(1): by its extension, or as an empty file.
func isLockFile(path string) bool {
	if slices.Contains([]string{".lock", ".lck", ".pid"}, filepath.Ext(path)) {
		return true
	}
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Size() == 0
}

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir() && strings.Contains(path, "/")
}

func line(command []string) string {
	var words []string
	for _, word := range command {
		words = append(words, quote(word))
	}
	return strings.Join(words, " ")
}

func quote(word string) string {
	if word != "" && strings.Trim(word, letters+decimal+"./:=@%+,-") == "" {
		return word
	}
	return fault.Quoted(word)
}
