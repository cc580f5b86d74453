package cronline

import (
	"path"
	"slices"
	"strings"
)

const mask = "***"

const longestShown = 5 << 10 // bytes, more than an atom keeps of an honest command

var (
	// secrets are endings of names of options, variables and headers that hold a password.
	secrets = []string{"password", "passwd", "passphrase", "pass", "_pwd", "token", "secret", "api-key", "api_key", "apikey", "access_key", "secret_key", "secret-key", "authorization"}
	// accounts are options with USER:PASSWORD, as of curl(1), or USER%PASSWORD, as of smbclient(1).
	accounts = []string{"-u", "-U", "--user", "--proxy-user"}
	// joiners are programs that accept -pPASSWORD.
	joiners = []string{"mysql", "mariadb", "sshpass", "7z"}
)

// Shown returns a command for people to read. It hides what looks like a password, and in doubt hides more.
// It searches the quoted commands of `sh -c` too, so it ends words at blanks even inside quotes.
func Shown(command string) (shown string) {
	if len(command) > longestShown { // cut at a blank, as half a word may show half a password
		command = command[:strings.LastIndexByte(command[:longestShown], ' ')+1] + mask
	}
	var before string             // the preceding word
	joins, left := false, command // left is the part of command that shown does not have yet
	for rest := strings.TrimLeft(command, white); rest != ""; rest = strings.TrimLeft(rest, white) {
		word := rest
		if end := strings.IndexAny(rest, white); end >= 0 {
			word = rest[:end]
		}
		bare := strings.Trim(word, `'"`)
		joins = joins || slices.ContainsFunc(joiners, func(name string) bool { return strings.HasPrefix(path.Base(bare), name) })
		from, to := secretIn(word, before, joins)
		before = bare
		if from < 0 {
			rest = rest[len(word):]
			continue
		}
		shown += left[:len(left)-len(rest)+from] + mask
		if to < 0 {
			to = valueEnd(rest, word, from)
		}
		rest = rest[to:]
		left = rest
	}
	return shown + left
}

// valueEnd returns where in rest the value ends; from is where it begins in word. After NAME: the value may be the next
// word. A first quote in word may close one from an earlier word, so a second quote, at from, may open the value.
func valueEnd(rest, word string, from int) int {
	open := openIn(word[:from])
	switch {
	case from < len(word) && word[from] == open:
		open = 0
	case from == len(word) && open == 0 && word[from-1] == ':':
		from = len(rest) - len(strings.TrimLeft(rest[from:], white))
	}
	return from + wordEnd(rest[from:], open)
}

// secretIn returns where in a word a password begins (below 0 without one) and where it ends (below 0: where the
// shell's word ends). before is the preceding word. joins is true if this word or an earlier one is in joiners.
func secretIn(word, before string, joins bool) (from, to int) {
	bare := strings.TrimLeft(word, `'"`)
	account := slices.Contains(accounts, before) || strings.HasPrefix(bare, "-u") || strings.HasPrefix(bare, "-U") || strings.HasPrefix(bare, "--user=")
	switch at := strings.IndexAny(word, ":%"); {
	case bare == "":
		return -1, -1
	case isOption(before) && isSecret(before) && !isOption(bare), joins && before == "-p":
		return 0, -1
	case joins && strings.HasPrefix(bare, "-p") && bare != "-p":
		return len(word) - len(bare) + len("-p"), -1
	case account && at >= 0 && !strings.Contains(word, "://"):
		return at + 1, -1
	}
	for i := range len(word) {
		if (word[i] == '=' || word[i] == ':') && isSecret(word[:i]) {
			return i + 1, -1
		}
		if strings.HasPrefix(word[i:], "://") {
			host := i + len("://")
			authority, _, _ := strings.Cut(word[host:], "/")
			colon, end := strings.IndexByte(authority, ':'), strings.LastIndexByte(authority, '@')
			if colon >= 0 && colon < end {
				return host + colon + 1, host + end
			}
		}
	}
	return -1, -1
}

func isOption(bare string) bool { return strings.HasPrefix(bare, "-") }

const longestSecret = 64 // bytes, more than any of secrets has

func isSecret(name string) bool {
	name = strings.TrimRight(name, `\'"`)
	name = strings.ToLower(name[max(0, len(name)-longestSecret):])
	return !strings.HasPrefix(name, "--no-") && slices.ContainsFunc(secrets, func(end string) bool { return strings.HasSuffix(name, end) })
}

func openIn(part string) (open byte) {
	for i := range len(part) {
		switch c := part[i]; {
		case c == open:
			open = 0
		case open == 0 && (c == '\'' || c == '"'):
			open = c
		}
	}
	return open
}
