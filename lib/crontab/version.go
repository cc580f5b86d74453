package crontab

import (
	"path"
	"regexp"

	"adlock/lib/cronline"
)

// A generated crontab often names the directory of the newest installation, so each installation changes a lock's name.
var (
	// installation matches a name in a directory of versions, dated one with a date, and built one with a build number.
	installation = regexp.MustCompile(`/((?:releases?|builds?|deploys?|deployments?|revisions?)/[^/\s'"]*\d[^/\s'"]*)`)
	dated        = regexp.MustCompile(`/((?:[^/\s]*[^/\s\d])?20\d\d[-_.]?(?:0[1-9]|1[0-2])[-_.]?(?:0[1-9]|[12]\d|3[01])(?:\d{4}|\d{6})?(?:[^/\s\d][^/\s]*)?)/`)
	built        = regexp.MustCompile(`/((?:[^/\s]*[^/\s\pL])?build[-_.]?\d+[^/\s]*)/`)
)

// ChangesLock is what messages say of a VersionInPath.
const ChangesLock = " is another one after each installation, and so is the lock: the new line starts beside the old job"

// VersionInPath returns the part of a command's paths that probably changes with each installation; "" if none does. A
// date or a build counts only in the path of a program, a script or a cd, as an argument may be an archive.
func VersionInPath(command string) string {
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
	for _, t := range textsIn(command, calledShell) {
		for _, words := range t.calls {
			if words = cronline.Called(words); len(words) == 0 || calledShell(words) != nil {
				continue
			}
			script, _ := cronline.Ran(words)
			all = append(all, words[0], script[0])
			if path.Base(words[0]) == "cd" && len(words) > 1 {
				all = append(all, words[len(words)-1]+"/")
			}
		}
	}
	return all
}
