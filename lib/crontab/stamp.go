package crontab

import (
	"path"
	"regexp"

	"adlock/lib/cronline"
)

// A generated crontab often names the directory of the newest installation, which renames the lock.
var (
	// One below a directory that keeps versions; one that is named after a date, or a build.
	installation = regexp.MustCompile(`/((?:releases?|builds?|deploys?|deployments?|revisions?)/[^/\s'"]*\d[^/\s'"]*)`)
	dated        = regexp.MustCompile(`/((?:[^/\s]*[^/\s\d])?20\d\d[-_.]?(?:0[1-9]|1[0-2])[-_.]?(?:0[1-9]|[12]\d|3[01])(?:\d{4}|\d{6})?(?:[^/\s\d][^/\s]*)?)/`)
	built        = regexp.MustCompile(`/((?:[^/\s]*[^/\s\pL])?build[-_.]?\d+[^/\s]*)/`)
)

// Stamped says what follows from a Stamp.
const Stamped = " is another one after each installation, and so is the lock: the new line starts beside the old job"

// Stamp is the part of a command's paths that probably changes with each installation; "": none. A
// date counts only where a program or its directory is: an argument may be an archive of that day.
func Stamp(command string) string {
	if found := installation.FindStringSubmatch(command); found != nil {
		return found[1]
	}
	for _, place := range places(command) {
		for _, form := range []*regexp.Regexp{dated, built} {
			if found := form.FindStringSubmatch(place); found != nil {
				return found[1]
			}
		}
	}
	return ""
}

func places(command string) (all []string) {
	for _, words := range calls(command) {
		if words = cronline.Called(words); len(words) == 0 {
			continue
		}
		if text, ok := cronline.ShellText(words); ok {
			all = append(all, places(text)...)
			continue
		}
		all = append(all, words[0])
		if script, _ := cronline.Ran(words); script[0] != words[0] {
			all = append(all, script[0])
		}
		if path.Base(words[0]) == "cd" && len(words) > 1 {
			all = append(all, words[len(words)-1]+"/")
		}
	}
	return all
}
