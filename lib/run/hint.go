package run

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"adlock/lib/cronline"
	"adlock/lib/fault"
)

// shellWords are what only a shell can do: a program of that name would change
// nothing but itself. (Some systems have such programs; then they are found.)
const shellWords = " cd . source export unset set alias eval exec exit return shift trap ulimit umask wait read local " +
	"if for while until case function { ( [[ ! "

const (
	letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"
	decimal = "0123456789"
)

// meant adds to the error of a command that cannot run what was probably meant.
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
	case strings.Contains(shellWords, " "+first+" "):
		return "for what only a shell can do: sh -c " + quote(strings.Join(command, " "))
	case isLockFile(first) && len(command) > 1:
		return "no lock file is named here: --name " + quote(baseOf(first)) + " names the lock"
	case strings.ContainsAny(first, " \t\n|&;<>()$`*?\"'"):
		return "for a line of the shell: sh -c " + quote(first)
	}
	return ""
}

// isLockFile tells whether a word that is no program was meant as a lock, as with
// flock(1) and lockrun: by its name, or because it is a file with nothing in it.
func isLockFile(path string) bool {
	if slices.Contains([]string{".lock", ".lck", ".pid"}, filepath.Ext(path)) {
		return true
	}
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Size() == 0
}

func baseOf(path string) string {
	return strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
}

// line is the command as a shell would have to be given it.
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
