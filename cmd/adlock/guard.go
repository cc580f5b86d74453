package main

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"adlock/lib/atom"
	"adlock/lib/config"
	"adlock/lib/fault"
	"adlock/lib/locker"
	"adlock/lib/run"
	"adlock/lib/supervise"
)

// guardVerb prints, for the shell of adlock_guard to eval, how to guard the script that the shell reads:
//
//	held                      the script runs as a part of a job that holds the script's lock
//	again OPERAND FILE ARG... run the script again with the shell FILE, under a supervisor that replaces this shell
//	here OPERAND              guard the script in this shell (OPERAND is '' for a script without a name and a path)
//
// Its arguments are DIRECTORY PROGRAM HOST OPERATOR OPERAND; an empty OPERAND stands for the script's path.
var guardVerb = config.Verb{Name: "guard", Owned: true, Run: guard}

type guardArgs struct {
	owner     int    // pid of the shell
	script    string // $0
	directory string // the shell's working directory when it noted $0
}

func (a *guardArgs) options() []config.Option {
	return []config.Option{
		{Name: "owner", Arg: "PID", Set: config.Number(&a.owner, 1, 1<<30)},
		{Name: "script", Arg: "PATH", Set: config.AnyText(&a.script)},
		{Name: "directory", Arg: "PATH", Set: config.AnyText(&a.directory)},
		config.Origins{}.Setting([]config.Option{config.Bind("exit-denied", config.Number(new(int), 0, 255))}), // only checked
	}
}

func guard(args []string) (int, error) {
	var a guardArgs
	rest, err := config.Parse(a.options(), args)
	if err != nil {
		return 0, err
	}
	if len(rest) != 5 {
		return 0, config.LibraryOnly("guard")
	}
	shell, err := locker.OwnedBy(a.owner)
	if err != nil {
		return 0, err
	}
	path := a.path(shell.PID)
	operand := cmp.Or(rest[4], path)
	wanted, _ := atom.New(rest[1], rest[2], rest[3], operand) // without a path or a name there is no atom
	if run.IsPart(shell, rest[0], wanted) {
		return 0, config.PrintLine("held")
	}
	if again, can := a.again(shell.PID, path); can {
		return 0, config.PrintLine("again " + fault.Quoted(operand) + " " + strings.Join(again, " "))
	}
	return 0, config.PrintLine("here " + fault.Quoted(operand))
}

// path returns the absolute path of the script, without following links. It returns "" if $0 names the shell itself
// (-c, standard input), no regular text file, or a file that differs between processes (/dev/stdin). It also returns
// "" if the shell does not have that file open: after a cd, a relative $0 may lead to another file.
func (a *guardArgs) path(shell int) string {
	path := a.script
	if !filepath.IsAbs(path) {
		path = a.directory + "/" + path
	}
	if a.script == "" || !filepath.IsAbs(path) || !isFile(path) || !supervise.IsText(path) || !run.Reads(shell, path) {
		return ""
	}
	// If the part before a .. is a link, the clean path may lead to another file.
	if clean := filepath.Clean(path); run.SameFile(clean, path) {
		return clean
	}
	return path
}

func isFile(path string) bool {
	clean := filepath.Clean(path)
	if strings.HasPrefix(clean, "/dev/") || strings.HasPrefix(clean, "/proc/") {
		return false
	}
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// again returns the words that start the script again, quoted for a shell: the shell's program and its arguments. can
// is false if path is "", or if the shell's arguments are unknown or do not contain $0.
func (a *guardArgs) again(shell int, path string) (words []string, can bool) {
	file, args, known := run.Invocation(shell)
	if path == "" || !known || !slices.Contains(args[1:], a.script) {
		return nil, false
	}
	for _, word := range append([]string{file}, args...) {
		words = append(words, fault.Quoted(run.Encode(word)))
	}
	return words, true
}
