package crontab

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"adlock/lib/cronline"
)

// nameOf returns the name of a job's lock. The name is made of the command alone, so it is the same on every run and
// machine. Only jobs with the same command, user, variables and input may share it.
func nameOf(command string) string {
	name, _ := cronline.NameOf(passedOn(command))
	return name
}

func passedOn(command string) string { return strings.Trim(passed.Replace(command), blanks+"\r\n") }

var passed = strings.NewReplacer(`\%`, "%")

type candidate struct{ name, identity string }

// nameJob returns the lock's name and the identity of a job that has --name or ADLOCK_NAME, or will be wrapped (wraps).
func nameJob(l *Line, v variables, wraps bool) (j candidate) {
	if wraps {
		return candidate{nameOf(l.Command), fmt.Sprintf("%q %016x %q %q", l.User, v.hash, passedOn(l.Command), l.Input)}
	}
	if found := given.FindStringSubmatch(l.Command); found != nil && lockerOf(l.Command) != "" {
		return candidate{found[1], "line " + strconv.Itoa(l.Number)}
	}
	if lockerOf(l.Command) == "adlock" && verbs.MatchString(l.Command) {
		return candidate{v.value("ADLOCK_NAME"), "line " + strconv.Itoa(l.Number)}
	}
	return candidate{}
}

type holder struct {
	identity string
	line     int
}

type names map[string][]holder // for each name, the first two jobs that differ

func (n names) add(l *Line, j candidate) {
	if of := n[j.name]; j.name != "" && (len(of) == 0 || len(of) == 1 && of[0].identity != j.identity) {
		n[j.name] = append(of, holder{j.identity, l.Number})
	}
}

// collision returns why a job cannot have its name, which another job has; "" if it can.
func (n names) collision(j candidate) string {
	for _, other := range n[j.name] {
		if other.identity != j.identity {
			return "would have one lock with line " + strconv.Itoa(other.line) + ", " + j.name +
				", and is another job by its command, variables, user or input: name it by hand (adlock run --name)"
		}
	}
	return ""
}

var verbs = regexp.MustCompile(`adlock[ \t]+(run|hold)\b`) // that lock

var given = regexp.MustCompile(`--name[= ](\S+)`)
