package cronline

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"adlock/lib/atom"
)

const longestBase = 40

// NameOf returns the name of a command's lock, and the command as an atom.Atom keeps it. The name is BASE-SUM: the
// program that the command is about (for people), and the cksum of the command.
func NameOf(command string) (name, kept string) {
	return atom.Unnamed(Base(command), command)
}

// Base returns Plain of the program that a command is about.
func Base(command string) string { return Plain(subject(command)[0]) }

// Plain returns a program's base name, fit for shells, crontabs and file names; "job" if nothing is left.
func Plain(program string) string {
	name := strings.Map(func(c rune) rune {
		if c == '.' || c == '-' || strings.ContainsRune(letters+decimal, c) {
			return c
		}
		return '_'
	}, path.Base(program))
	return cmp.Or(strings.Trim(name[:min(len(name), longestBase)], "._-"), "job")
}

// subject returns the words of the simple command that a text is about: the first command whose program is not in dull,
// else the first command, else "job".
func subject(command string) []string {
	var other []string
	for _, words := range commands(command) {
		if words = Called(words); len(words) == 0 {
			continue
		}
		words, important := Ran(words)
		if important {
			return words
		}
		if other == nil {
			other = words
		}
	}
	if other == nil {
		return []string{"job"}
	}
	return other
}

// These are strings, as maps would be built at each start of the helper.
const (
	// before are words that can precede a program. Letters after the = are options that take a value.
	before = `! { if then else elif do while until time=fo exec=a command builtin nice=n ionice=cnpPu chrt=TPDp taskset
		nohup env=uCSa timeout=ks setsid stdbuf=ioe chronic cronic sudo=ugUhpCrtTDR doas=uC runuser=ugGs
		chpst=ueUbnlmdofpcrt sshpass=pfd systemd-cat=tp busybox`
	// valued are long options of these programs whose value is the next word.
	valued = `adjustment signal kill-after unset chdir argv0 class classdata input output error format identifier priority
		user group supp-group other-user host prompt role type chroot close-from command-timeout`
	// dull are words at the beginning of commands that seldom show what a line is about.
	dull = `[ [[ } fi done esac for case in test true false : . source cd export set umask ulimit unset echo printf
		sleep exit read wait trap type which hash cat sed grep tail head cut sort mkdir date hostname logger pgrep pidof ps`
	shells   = `sh dash ash bash ksh ksh93 mksh zsh yash`
	starters = shells + ` su runuser` // these start a shell, which reads a command after -c
	// runners are other programs that run a file; a version may follow their names.
	runners = `perl php python ruby node java run-parts`
	// shellWords are reserved words and built-in commands; a few are programs too.
	shellWords = `! [ [[ { ( } case coproc do done elif else esac fi for function if in repeat select then time until while
		. : alias bg bind break builtin caller cd chdir command continue declare dirs disown echo enable eval exec exit
		export false fc fg getopts hash help history jobs kill let local logout mapfile newgrp popd print printf pushd
		pwd read readarray readonly return set shift shopt source suspend test times trap true type typeset ulimit umask
		unalias unset wait whence`
)

func find(words, word string) (letters string, is bool) {
	for _, known := range strings.Fields(words) {
		if name, letters, _ := strings.Cut(known, "="); name == word {
			return letters, true
		}
	}
	return "", false
}

func isIn(words, word string) bool {
	_, is := find(words, word)
	return is
}

// IsShell reports whether a program is a shell with the syntax of sh.
func IsShell(program string) bool { return isIn(shells, path.Base(program)) }

// IsShellWord reports whether a word at the beginning of a command is a shell's reserved word or built-in command.
func IsShellWord(word string) bool { return isIn(shellWords, word) }

// RunsArguments reports whether a program runs a command or a file that its arguments name.
func RunsArguments(word string) bool {
	base := path.Base(word)
	return isIn(before, base) || isIn(starters, base) || isIn(runners, strings.TrimRight(base, decimal+".")) || slices.Contains(Lockers, base)
}

// Called returns words from the called program on, without what precedes it: assignments, and words such as `if`, or
// sudo with its options. It returns nil if no program is called.
func Called(words []string) []string {
	options, prefixed := "", false
	for ; len(words) > 0; words = words[1:] {
		word := words[0]
		letters, is := find(before, path.Base(word))
		_, reads := ShellText(words)
		switch {
		case is && !reads:
			options, prefixed = letters, true
		case prefixed && strings.HasPrefix(word, "--") && isIn(valued, word[2:]) && len(words) > 1:
			words = words[1:]
		case prefixed && strings.HasPrefix(word, "-"):
			if at := strings.IndexAny(word, options); at > 0 && at == len(word)-1 && word[1] != '-' && len(words) > 1 {
				words = words[1:]
			}
		case !IsAssignment(word) && !(prefixed && isNumber(word)):
			return words
		}
	}
	return nil
}

// Ran returns the words that say what runs: those from the script of a shell or runner on, the subject of a shell's -c,
// or else all words. important is true if the line is probably about these words.
func Ran(words []string) (left []string, important bool) {
	base := path.Base(words[0])
	unversioned := strings.TrimRight(base, decimal+".")
	if !isIn(starters, base) && !isIn(runners, unversioned) {
		return words, !isIn(dull, base) && !strings.HasPrefix(words[0], "-")
	}
	if text, ok := ShellText(words); ok {
		return subject(text), true
	}
	for i, word := range words[1:] {
		if strings.Contains(word, "/") && word[0] != '-' {
			return words[i+1:], true
		}
	}
	if len(words) > 1 && words[1] != "" && words[1][0] != '-' {
		return words[1:], true
	}
	return words, false
}

// ShellText returns the command that a shell is called with after -c. ok is false if words are no such call.
func ShellText(words []string) (text string, ok bool) {
	if len(words) == 0 || !isIn(starters, path.Base(words[0])) {
		return "", false
	}
	for i, word := range words[:len(words)-1] {
		if len(word) > 1 && word[0] == '-' && word[1] != '-' && word[len(word)-1] == 'c' {
			return words[i+1], true
		}
	}
	return "", false
}

// isNumber reports whether a word is a number, perhaps with a unit (timeout(1)), or a list or 0x mask (taskset(1)).
func isNumber(word string) bool {
	digits := strings.TrimRight(word, "smhd")
	return strings.HasPrefix(word, "0x") || digits != "" && digits[0] != '-' && strings.Trim(digits, decimal+".,-:") == ""
}
