package cron

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"adlock/lib/runlog"
	"adlock/test/helper"
)

// The first job overruns its minute once, the second hangs once, and the third is a script with
// one added line: it knows neither crontabs nor locks.
const crontab = `
ADLOCK_DIR={world}/locks
ADLOCK_HOST=dax
ADLOCK_PAUSE=1s
* * * * * {world}/adlock run --name overrun -- {world}/overrun
* * * * * {world}/adlock run --name hang --expire-after 30s -- {world}/hang
* * * * * {world}/legacy
`

// The control is a crontab of its own, whose line is mailed: without it cron's silence about
// the others would mean nothing.
const control = `
* * * * * root echo this is heard
`

// Each job notes its runs, and each overlap with another run of its kind.
const overrun = `#!/bin/sh
mkdir {world}/in-overrun || echo overlap >>{world}/overlaps
echo run >>{world}/overruns
if [ "$(wc -l <{world}/overruns)" -eq 1 ]; then
	sleep 75
fi
rmdir {world}/in-overrun
`

// The first run hangs with children: a signal ends one; the other, in a session of its own,
// ignores all but KILL.
const hang = `#!/bin/sh
echo run >>{world}/hangs
if [ "$(wc -l <{world}/hangs)" -eq 1 ]; then
	sleep 1000 &
	setsid sh -c 'trap "" INT TERM; echo $$ >{world}/stubborn; while :; do sleep 1000; done' &
	while :; do sleep 1000; done
fi
`

const legacy = `#!/bin/sh
. {world}/adlock.sh || exit 69; adlock_guard
mkdir {world}/in-legacy || echo overlap >>{world}/overlaps
echo run >>{world}/legacies
if [ "$(wc -l <{world}/legacies)" -eq 1 ]; then
	sleep 75
fi
rmdir {world}/in-legacy
`

func TestCronLinesRunOnceAtATimeAndMailOnlyAnEnding(t *testing.T) {
	if testing.Short() {
		t.Skip("takes three minutes of cron's own time")
	}
	t.Parallel()
	w := newWorld(t)
	w.write(t, "overrun", overrun, 0o755)
	w.write(t, "hang", hang, 0o755)
	w.write(t, "legacy", legacy, 0o755)
	tell(t, "cron starts")
	w.start(t, crontab, control)

	w.await(t, 90*time.Second, "the first tick: all three run", func() bool {
		return count(w.events(t, "overrun"), runlog.Acquire) == 1 &&
			count(w.events(t, "hang"), runlog.Acquire) == 1 && w.has("stubborn") &&
			count(w.events(t, "legacy"), runlog.Acquire) == 1
	})
	w.await(t, 90*time.Second, "the second tick: two are busy, the one that hangs is replaced", func() bool {
		return count(w.events(t, "overrun"), runlog.Deny) == 1 &&
			count(w.events(t, "hang"), runlog.Release) == 1 &&
			count(w.events(t, "legacy"), runlog.Deny) == 1
	})
	w.await(t, 90*time.Second, "the third tick: all three have run again", func() bool {
		return count(w.events(t, "overrun"), runlog.Release) == 2 &&
			count(w.events(t, "hang"), runlog.Release) == 2 &&
			count(w.events(t, "legacy"), runlog.Release) == 2
	})
	w.await(t, 10*time.Second, "no process is left", func() bool { return len(w.processes(t)) == 0 })

	w.wantStory(t, "overrun", "acquire; deny busy; release 0; acquire; release 0")
	w.wantStory(t, "legacy", "acquire; deny busy; release 0; acquire; release 0")
	w.wantStory(t, "hang", "acquire; expire; signal CONT; signal INT; signal TERM; signal KILL; takeover; "+
		"acquire; release 0; acquire; release 0")
	w.wantRunsOneByOne(t)
	w.wantMailOfTheForcedEnding(t)
	w.wantNoLocks(t)
}

// await is helper.Within; its message shows how far the test is.
func (w *world) await(t *testing.T, patience time.Duration, claim string, holds func() bool) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Log("the record:\n" + w.record() + "\nmail:\n" + w.read(t, "mail") + "\nprocesses:\n" + strings.Join(w.processes(t), "\n"))
		}
	}()
	helper.Within(t, patience, claim, holds)
	tell(t, claim)
}

func (w *world) has(name string) bool {
	_, err := os.Stat(w.path(name))
	return err == nil
}

func (w *world) record() string {
	text, err := os.ReadFile(w.path("locks/program." + host + ".runlog"))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// wantStory compares an atom's events, without the number of signals to each process, and the
// time at which the ended owner noticed.
func (w *world) wantStory(t *testing.T, operand, want string) {
	t.Helper()
	if got := w.story(t, operand); got != want {
		t.Errorf("the record of %s tells\n\t%s\nand not\n\t%s\n%s", operand, got, want, w.record())
	}
}

func (w *world) story(t *testing.T, operand string) string {
	t.Helper()
	var story []string
	for _, e := range w.events(t, operand) {
		step := stepOf(e)
		again := e.Kind == runlog.Signal && slices.Contains(story, step)
		if e.Kind != runlog.Lost && !again {
			story = append(story, step)
		}
	}
	return strings.Join(story, "; ")
}

func stepOf(e runlog.Event) string {
	switch e.Kind {
	case runlog.Deny:
		return "deny " + e.Verdict
	case runlog.Signal:
		return "signal " + e.Signal
	case runlog.Release:
		if e.Status.Set && e.Status.Value == 0 {
			return "release 0"
		}
	}
	return string(e.Kind)
}

// wantRunsOneByOne reads what the jobs themselves noted.
func (w *world) wantRunsOneByOne(t *testing.T) {
	t.Helper()
	if w.has("overlaps") {
		t.Error("a job ran twice at the same time")
	}
	for file, want := range map[string]int{"overruns": 2, "hangs": 3, "legacies": 2} {
		if runs := strings.Count(w.read(t, file), "\n"); runs != want {
			t.Errorf("%s: %d runs, want %d", file, runs, want)
		}
	}
}

// wantMailOfTheForcedEnding wants one line of the newcomer that ended the job, and one of that
// job's own supervisor, each in its own mail; and nothing else.
func (w *world) wantMailOfTheForcedEnding(t *testing.T) {
	t.Helper()
	mail := w.read(t, "mail")
	if !strings.Contains(mail, "this is heard") {
		t.Error("the control line was not mailed, so silence means nothing")
	}
	for pattern, want := range map[string]int{
		`(?m)^Subject: .*hang`:       2,
		`(?m)^Subject: .*adlock run`: 2,
		`(?m)^Subject: .*legacy`:     0,
		`(?m)^adlock: `:              2,
		`(?m)^adlock: run hang: ended process \d+ by force: it had run for [0-9ms]+, ExpireAfter is 30s$`:    1,
		`(?m)^adlock: run hang: ended by force by process \d+: it had run for [0-9ms]+, ExpireAfter is 30s$`: 1,
	} {
		if got := len(regexp.MustCompile(pattern).FindAllString(mail, -1)); got != want {
			t.Errorf("%d times %s, want %d; cron mailed:\n%s", got, pattern, want, mail)
		}
	}
}

func (w *world) wantNoLocks(t *testing.T) {
	t.Helper()
	files, err := os.ReadDir(w.path("locks"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !strings.HasPrefix(file.Name(), "last.") && !strings.HasSuffix(file.Name(), ".runlog") {
			t.Errorf("left behind: %s", file.Name())
		}
	}
}
