package crontab

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"adlock/lib/cronline"
)

// defaultShell is what cron runs commands with where no SHELL is set.
const defaultShell = "/bin/sh"

// Guards reports whether a value of SHELL is adlock's own, which puts each line of the crontab
// under a lock.
func Guards(shell string) bool { return strings.HasSuffix(shell, "/adlock/shell") }

// shells are those that read text in single quotes as POSIX defines it.
var shells = []string{"sh", "dash", "ash", "bash", "ksh", "ksh93", "mksh", "zsh", "yash"}

// quotes reports whether a value of SHELL is one of shells, at a path that needs no quotes.
func quotes(shell string) bool {
	return harmlessPath.MatchString(shell) && slices.Contains(shells, filepath.Base(shell))
}

// harmlessPath is an absolute path that means the same to cron and to each shell.
var harmlessPath = regexp.MustCompile(`^/[\w./+@-]+$`)

// plain is a command that means the same as arguments of `adlock run`: its words may have quotes,
// variables and patterns, but no redirections, which would empty a file even if the job is denied,
// and no substitutions, which would run outside of the lock.
var plain = regexp.MustCompile(`^((?:~|\$[A-Za-z_]\w*|[\w.+-]*)/[\w./+:@-]+|[\w.+-]+)` +
	`(?:[ \t]+(?:[\w./:,@+=^~*?\[\]-]|\\.|'[^']*'|"(?:[^"\\$` + "`" + `]|\\.|\$[A-Za-z_]\w*)*"|\$[A-Za-z_]\w*)+)*[ \t]*$`)

// isPlain reports whether a command needs no shell of its own. A command that begins with a shell's
// own word needs one: there is no such program, or it behaves differently.
func isPlain(command string) bool {
	found := plain.FindStringSubmatch(command)
	return found != nil && !cronline.IsShellWord(found[1])
}

// unquote undoes fault.Quoted. For text that fault.Quoted did not write the result may be wrong:
// wrap it again and compare.
func unquote(word string) (text string, ok bool) {
	if len(word) < 2 || word[0] != '\'' || word[len(word)-1] != '\'' {
		return "", false
	}
	return strings.ReplaceAll(word[1:len(word)-1], `'\''`, "'"), true
}
