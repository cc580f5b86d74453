package lint

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"time"

	"adlock/lib/cronline"
	"adlock/lib/limit"
)

// noticeable is the part of the time between two starts, 1/noticeable, from which a sleep under the
// lock is reported. With a shorter sleep hardly a start comes meanwhile.
const noticeable = 10

// sleeps looks for a job that sleeps under its lock before it does anything else.
func (j *job) sleeps(v *invocation) {
	_, sleep := withoutSleep(j.under(v))
	longest := longestSleep(sleep)
	if longest == 0 || j.Schedule.Shortest == 0 || noticeable*longest < j.Schedule.Shortest || j.waits(v) || j.told(j.Number, "one job with two locks") {
		return
	}
	cure := "sleep before the lock: sleep " + sleep + "; " + v.program + " …"
	if v.program == "adlock" {
		cure = "sleep before the lock: sleep " + sleep + "; adlock run --name NAME -- …, or say --jitter " + limit.Format(longest) + " (ADLOCK_JITTER)"
	}
	j.add(j.Number, "a sleep under the lock", "the lock is held while it sleeps, "+limit.Format(longest)+" at most of "+limit.Format(j.Schedule.Shortest)+
		" between starts: a start that comes meanwhile is skipped", cure)
}

// pairs looks for the usual way to start a job twice a minute, `job` and `sleep 30; job`, if each of the
// lines has a lock of its own (key).
func (j *job) pairs(text, key, place string) {
	core, sleep := withoutSleep(text)
	pair := fmt.Sprintf("%q %q %q %q", place, j.Schedule.Text, core, j.Input)
	t := taken{by: j, text: sleep, key: key}
	first, is := j.twins[pair]
	if !is {
		j.twins[pair] = t
		return
	}
	if first.key == key || first.by == j || first.text == sleep || !maps.Equal(first.by.variables(), j.variables()) {
		return
	}
	j.add(j.Number, "one job with two locks", first.where(j)+" starts the same job, but for the sleep, under another lock: the job overlaps itself",
		"give both one name, and sleep before the lock: sleep "+cmp.Or(sleep, first.text)+"; adlock run --name NAME -- …")
}

// withoutSleep is a command without the sleep before it, and without a shell around it; sleep has the
// words behind sleep(1), "" if the command does not begin with it.
func withoutSleep(text string) (rest, sleep string) {
	rest = strings.TrimSpace(text)
	if all, _ := cronline.Commands(rest); len(all) == 1 {
		if words := cronline.Called(all[0]); len(words) > 0 {
			if inner, ok := cronline.ShellText(words); ok {
				return withoutSleep(inner)
			}
		}
	}
	if sleep, after, ok := cronline.CutSleep(rest); ok {
		return after, sleep
	}
	return rest, ""
}

var (
	amounts  = regexp.MustCompile(`^(\d+(?:\.\d+)?[smhd]?\s*)+$`)
	amount   = regexp.MustCompile(`(\d+(?:\.\d+)?)([smhd]?)`)
	modulo   = regexp.MustCompile(`%\s*\d`)
	division = regexp.MustCompile(`[*/]`)
	digits   = regexp.MustCompile(`\$\{RANDOM:\d+:(\d)\}`)
	shuffled = regexp.MustCompile(`\bshuf\b.*-i\s*\d+-(\d+)`)
	units    = map[string]time.Duration{"": time.Second, "s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour}
)

// mostRandom is the largest value of RANDOM.
const mostRandom = 32767

// longestSleep is how long sleep(1) sleeps at most with these words; 0 if that is unknown. (With
// $RANDOM it is the whole range, less what is taken modulo a number.)
func longestSleep(words string) (longest time.Duration) {
	unit := units[""]
	if last := len(words) - 1; last > 0 && strings.IndexByte(")}`", words[last-1]) >= 0 {
		unit = max(unit, units[words[last:]])
	}
	seconds := func(text string) time.Duration {
		n, _ := strconv.ParseUint(text, 10, 24) // the largest, if it is larger
		return time.Duration(n) * unit
	}
	switch {
	case amounts.MatchString(words), modulo.MatchString(words) && !division.MatchString(words):
		for _, found := range amount.FindAllStringSubmatch(words, -1) {
			n, _ := strconv.ParseFloat(found[1], 64)
			longest += time.Duration(min(n, 1<<24) * float64(max(unit, units[found[2]])))
		}
		return longest
	case digits.MatchString(words):
		return seconds(strings.Repeat("9", int(digits.FindStringSubmatch(words)[1][0]-'0')))
	case shuffled.MatchString(words):
		return seconds(shuffled.FindStringSubmatch(words)[1])
	case strings.Contains(words, "RANDOM") && !division.MatchString(words):
		return mostRandom * unit
	}
	return 0
}
