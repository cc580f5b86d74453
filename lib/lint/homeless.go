package lint

import (
	"path"
	"slices"

	"adlock/lib/config"
)

// homeless looks for a user whose jobs have no usable lock directory, and so never run.
func (j *job) homeless(v *invocation) {
	known := j.environment(v)
	if j.User == "" || known == nil || j.limit(v, "store") != nil {
		return
	}
	if known("ADLOCK_DIR") == "" && j.Homeless != nil && j.Homeless(j.User, known("HOME")) {
		j.add(j.Number, "a user without a lock directory", j.User+" can make none at home, and the job is never run", "as root: adlock init "+j.User)
	}
}

// moved looks for a HOME that moves the lock directory from the user's own home. The line that sets
// HOME is reported once, with the first job below it.
func (j *job) moved(v *invocation) {
	known := j.environment(v)
	line := j.set["HOME"]
	if known == nil || line == nil || known("HOME") != line.Value || known("ADLOCK_DIR") != "" || j.limit(v, "store") != nil || j.Home == nil {
		return
	}
	home := j.Home(j.runsAs())
	told := func(m Mistake) bool { return m.Line == line.Number && m.What == "a HOME that moves the locks" }
	if home == "" || path.Clean(line.Value) == path.Clean(home) || slices.ContainsFunc(*j.findings, told) {
		return
	}
	j.add(line.Number, "a HOME that moves the locks", "the locks of the jobs below are in "+config.DirOfHome(line.Value)+", and those of the same jobs by hand in "+config.DirOfHome(home),
		"leave HOME out, or say ADLOCK_DIR="+config.DirOfHome(home)+" beside it")
}
