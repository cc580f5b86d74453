package crontab

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"adlock/lib/cronline"
)

// nameOf returns the name of a job's lock. It is made of the command alone, so that it is the same on every
// run and machine. Only jobs with the same command, user, variables and input may share it.
func nameOf(command string) string {
	name, _ := cronline.NameOf(strings.Trim(passed.Replace(command), blanks+"\r\n"))
	return name
}

var passed = strings.NewReplacer(`\%`, "%")

type candidate struct{ name, identity string }

// nameJob returns the name of a job's lock and the job's identity, if the job has --name or will be wrapped (wraps).
func nameJob(l *Line, v variables, wraps bool) (j candidate, is bool) {
	if wraps {
		return candidate{nameOf(l.Command), fmt.Sprintf("%q %q %q %q", l.User, v, l.Command, l.Input)}, true // %q sorts the variables
	}
	if found := given.FindStringSubmatch(l.Command); found != nil && lockerOf(l.Command) != "" {
		return candidate{found[1], "line " + strconv.Itoa(l.Number)}, true
	}
	return candidate{}, false
}

// collision returns why line i cannot have its name: another job has it; "": it can.
func collision(lines []Line, jobs map[int]candidate, i int) string {
	for k := range lines {
		if other, is := jobs[k]; is && other.name == jobs[i].name && other.identity != jobs[i].identity {
			return "would have one lock with line " + strconv.Itoa(lines[k].Number) + ", " + other.name +
				", and is another job by its variables, user or input: name it by hand (adlock run --name)"
		}
	}
	return ""
}

var given = regexp.MustCompile(`--name[= ](\S+)`)
