package crontab

import (
	"fmt"
	"hash/crc32"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The name of a job's lock: of what it is that runs, as a person would say it.

const longestName = 40

// names are the names of the locks of jobs, by their lines' indexes. A job gets the first
// of its names that no other job of the crontab can have: so lines may be moved and
// keep their names. The same command of the same user with the same variables is the
// same job, however often and whenever it starts: it has one lock.
func names(lines []Line) map[int]string {
	could := map[int][]string{}
	who := jobsByName{}
	v := variables{}
	for i := range lines {
		l := &lines[i]
		switch {
		case l.Kind == Variable:
			v[l.Name] = l.Value
		case l.Kind != Job || l.Schedule.Reboot:
		case lockerOf(l.Command) != "":
			if found := given.FindStringSubmatch(l.Command); found != nil {
				who.add("line "+strconv.Itoa(i), found[1])
			}
		default:
			identity := fmt.Sprintf("%q %q %q %q", l.User, v, l.Command, l.Input) // with the variables sorted
			could[i] = namesOf(l.Command, identity)
			who.add(identity, could[i]...)
		}
	}
	chosen := map[int]string{}
	for i, names := range could {
		chosen[i] = who.choose(names)
	}
	return chosen
}

// jobsByName are the identities of the jobs that can have a name.
type jobsByName map[string]map[string]bool

func (who jobsByName) add(identity string, names ...string) {
	for _, name := range names {
		if who[name] == nil {
			who[name] = map[string]bool{}
		}
		who[name][identity] = true
	}
}

// choose returns the first of a job's names that only it can have, else the last.
func (who jobsByName) choose(names []string) string {
	for _, name := range names {
		if len(who[name]) == 1 {
			return name
		}
	}
	return names[len(names)-1]
}

// given is a name that somebody gave to a job under adlock.
var given = regexp.MustCompile(`--name[= ](\S+)`)

// namesOf are the names that a job can have, the best first and a certain one last.
func namesOf(command, identity string) []string {
	words := subject(simpleCommands(command))
	base := nameOf(words[0])
	names := []string{base}
	if argument := argumentOf(words); argument != "" {
		names = append(names, base+"-"+argument)
	}
	return append(names, base+"-"+strconv.FormatUint(uint64(crc32.ChecksumIEEE([]byte(identity))), 10))
}

// subject is the simple command that a command line is about, less what stands before
// its program. Tests and the like come in only where there is nothing else.
func subject(all [][]string) []string {
	var other []string
	for _, words := range all {
		if words = called(words); len(words) == 0 {
			continue
		}
		words, important := ran(words)
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

var (
	// before are words that stand before a program, which they start or decide on.
	before = strings.Fields(`! { if then else elif do while until time exec command builtin nice ionice chrt taskset nohup env
		timeout setsid stdbuf chronic cronic sudo doas chpst systemd-cat busybox`)
	// dull are programs that seldom are what a line is for.
	dull = strings.Fields(`[ [[ } fi done esac for case in test true false : . source cd export set umask ulimit unset echo printf
		sleep exit read wait trap type which hash cat sed grep tail head cut sort mkdir date hostname logger`)
	// runners are programs that run another, which is named by a path.
	runners   = regexp.MustCompile(`^(?:(?:da|ba|z|k|mk|a|ya)?sh|perl|php[0-9.]*|python[0-9.]*|ruby|node|run-parts)$`)
	assigning = regexp.MustCompile(`^[A-Za-z_]\w*\+?=`)
	odd       = regexp.MustCompile(`[^\w.-]`)
	argument  = regexp.MustCompile(`^[A-Za-z][\w.-]*$`)
)

// called leaves out assignments and what stands before the program that is called.
func called(words []string) []string {
	prefixed := false
	for ; len(words) > 0; words = words[1:] {
		word := words[0]
		switch {
		case slices.Contains(before, filepath.Base(word)):
			prefixed = true
		case prefixed && (word == "-u" || word == "-g") && len(words) > 1:
			words = words[1:]
		case !assigning.MatchString(word) && !(prefixed && (strings.HasPrefix(word, "-") || isNumber(word))):
			return words
		}
	}
	return nil
}

// ran puts in place of a runner the script that it runs, and tells whether that is likely
// to be what the line is about.
func ran(words []string) (left []string, important bool) {
	base := filepath.Base(words[0])
	if !runners.MatchString(base) {
		return words, !slices.Contains(dull, base) && !strings.HasPrefix(words[0], "-")
	}
	if text, ok := shellText(words); ok {
		return subject(simpleCommands(text)), true
	}
	for i, word := range words[1:] {
		if strings.Contains(word, "/") && word[0] != '-' {
			return words[i+1:], true
		}
	}
	return words, false
}

// shellText is what a shell is called with behind -c.
func shellText(words []string) (text string, ok bool) {
	at := slices.Index(words, "-c")
	if !slices.Contains(shells, filepath.Base(words[0])) || at < 0 || at+1 == len(words) {
		return "", false
	}
	return words[at+1], true
}

// isNumber tells whether a word is a number, perhaps with a unit of time, as nice(1) and
// timeout(1) take them.
func isNumber(word string) bool {
	digits := strings.TrimRight(word, "smhd")
	return digits != "" && strings.Trim(digits, "0123456789.") == ""
}

// nameOf is the base name of a program, with nothing in it that a shell, cron or a file
// name would mind.
func nameOf(program string) string {
	name := odd.ReplaceAllString(filepath.Base(program), "_")
	name = strings.Trim(name[:min(len(name), longestName)], "._-")
	if name == "" {
		return "job"
	}
	return name
}

// argumentOf is the first argument that is a plain word: of `periodic daily` the second.
func argumentOf(words []string) string {
	for _, word := range words[1:] {
		if argument.MatchString(word) && len(word) <= longestName {
			return word
		}
	}
	return ""
}
