package lint

import (
	"cmp"
	"fmt"

	"adlock/lib/crontab"
	"adlock/lib/limit"
)

func (j *job) sleeps(v *invocation) {
	sleep, longest := j.LongSleep(j.under(v))
	if longest == 0 || j.waits(v) || j.told(j.Number, "one job with two locks") {
		return
	}
	cure := "sleep before the lock: sleep " + sleep + "; " + v.program + " …"
	if v.program == "adlock" {
		cure = "sleep before the lock: sleep " + sleep + "; adlock run --name NAME -- …, or say --jitter " + limit.Format(longest) + " (ADLOCK_JITTER)"
	}
	j.add(j.Number, "a sleep under the lock", "the lock is held while it sleeps, "+limit.Format(longest)+" at most of "+limit.Format(j.Schedule.Shortest)+
		" between starts: a start that comes meanwhile is skipped", cure)
}

// pairs reports `job` and `sleep 30; job`, the usual way to start twice a minute, under two locks (key).
func (j *job) pairs(text, key, place string) {
	core, sleep := crontab.WithoutSleep(text)
	pair := fmt.Sprintf("%q %q %q %q", place, j.Schedule.Text, core, j.Input)
	t := taken{by: j, text: sleep, key: key}
	first, is := j.twins[pair]
	if !is {
		j.twins[pair] = t
		return
	}
	if first.key == key || first.by == j || first.text == sleep || first.by.variables != j.variables {
		return
	}
	j.add(j.Number, "one job with two locks", first.where(j)+" starts the same job, but for the sleep, under another lock: the job overlaps itself",
		"give both one name, and sleep before the lock: sleep "+cmp.Or(sleep, first.text)+"; adlock run --name NAME -- …")
}
