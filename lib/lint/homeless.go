package lint

import (
	"path"

	"adlock/lib/config"
	"adlock/lib/crontab"
)

func (j *job) homeless(v *invocation) {
	known := j.environment(v)
	if known != nil && j.option(v, "store") == nil && crontab.IsHomeless(j.User, known, j.Homeless) {
		j.add(j.Number, "a user without a lock directory", j.User+" can make none at home, and the job is never run", crontab.HomeCure(j.User, j.Homeless))
	}
}

// moved reports a line that gives jobs another lock directory than they have when started by hand.
func (j *job) moved(v *invocation) {
	known := j.environment(v)
	if known == nil || j.option(v, "store") != nil || j.Dir == nil {
		return
	}
	usual := j.Dir(j.runsAs(), "")
	if dir := known("ADLOCK_DIR"); dir != "" {
		user, is := j.userOrPath()
		isShared := is && j.used[path.Clean(dir)].user != user // (*job).directory reports that
		if line := j.setter("ADLOCK_DIR", dir); line != j.Line && usual != "" && path.IsAbs(dir) && path.Clean(dir) != usual && !isShared {
			j.once(line.Number, "note", "without this line, by hand, the same jobs have their locks in "+usual,
				"say it in the settings file, which holds for both (adlock help config)")
		}
		return
	}
	if line := j.setter("HOME", known("HOME")); line != j.Line && line.Value != "" {
		j.homeMoves(line, usual)
	}
}

// homeMoves reports a HOME that moves the locks; if the job's user is unknown, a HOME of another user.
func (j *job) homeMoves(line *crontab.Line, usual string) {
	if dir := j.Dir(j.runsAs(), line.Value); usual != "" && dir != usual {
		j.once(line.Number, "a HOME that moves the locks", "the locks of the jobs below are in "+dir+", and those of the same jobs by hand in "+usual,
			"leave HOME out, or say ADLOCK_DIR="+usual+" beside it")
		return
	}
	if j.runsAs() != "" || j.Stranger == nil {
		return
	}
	dir := config.DirOfHome(line.Value)
	if user := j.Stranger(line.Value); user != "" && j.Dir(user, "") != dir {
		j.once(line.Number, "note", "HOME is "+user+"'s: if the crontab is too, its locks are in "+dir+", and those of the same jobs by hand may be elsewhere",
			"say ADLOCK_DIR= with that user's lock directory beside HOME")
	}
}
