package crontab

import (
	"regexp"
	"strings"

	"adlock/lib/cronline"
)

const defaultShell = "/bin/sh"

// Guards reports whether a SHELL is adlock's own (cronline.Line says which lines it locks).
func Guards(shell string) bool { return strings.HasSuffix(shell, "/adlock/shell") }

// quotes reports whether a SHELL reads single quotes as POSIX defines them, and its path needs no quotes.
func quotes(shell string) bool {
	return harmlessPath.MatchString(shell) && cronline.IsShell(shell)
}

var harmlessPath = regexp.MustCompile(`^/[\w./+@-]+$`)

// plain matches a command that means the same as arguments of `adlock run`. It allows no redirections, which would
// empty a file even if the job is denied, and no substitutions, which would run outside of the lock.
var plain = regexp.MustCompile(`^((?:~|\$[A-Za-z_]\w*|[\w.+-]*)/[\w./+:@-]+|[\w.+-]+)` +
	`(?:[ \t]+(?:[\w./:,@+=^~*?\[\]-]|\\.|'[^']*'|"(?:[^"\\$` + "`" + `]|\\.|\$[A-Za-z_]\w*)*"|\$[A-Za-z_]\w*)+)*[ \t]*$`)

// isPlain reports whether command matches plain, and does not begin with a shell's own word, which may be no program.
func isPlain(command string) bool {
	found := plain.FindStringSubmatch(command)
	return found != nil && !cronline.IsShellWord(found[1])
}

// unquote undoes fault.Quoted. For other text the result may be wrong, so the caller must wrap it again and compare.
func unquote(word string) (text string, ok bool) {
	if len(word) < 2 || word[0] != '\'' || word[len(word)-1] != '\'' {
		return "", false
	}
	return strings.ReplaceAll(word[1:len(word)-1], `'\''`, "'"), true
}
