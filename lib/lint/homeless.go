package lint

import (
	"strconv"

	"adlock/lib/crontab"
)

// homeless looks for a user whose jobs have no lock directory that they can use, and so
// never run: there is none at home, or ADLOCK_DIR names that of another line's user.
func (j *job) homeless(v *invocation) {
	known := j.environment(v)
	if j.User == "" || known == nil || j.limit(v, "store") != nil {
		return
	}
	dir := known("ADLOCK_DIR")
	if dir == "" && j.Homeless != nil && j.Homeless(j.User, known("HOME")) {
		j.add(j.Number, "a user without a lock directory", j.User+" can make none at home, and the job is never run", "as root: adlock init "+j.User)
	}
	for i := range j.lines[:j.at] {
		other := &j.lines[i]
		if theirs, _ := crontab.Setting(j.lines, i, "ADLOCK_DIR"); dir != "" && theirs == dir && other.Kind == crontab.Job && other.User != j.User && crontab.Mentions(j.lines, i) {
			j.add(j.Number, "a lock directory of two users", dir+" is that of "+other.User+" in line "+strconv.Itoa(other.Number)+" too: it belongs to one of them, and the other's job is never run",
				"leave ADLOCK_DIR out, as root: adlock init USER")
			return
		}
	}
}
