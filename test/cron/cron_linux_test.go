package cron

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"adlock/lib/runlog"
	"adlock/test/support/helper"
	"adlock/test/support/must"
)

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

// await waits for what needs some ticks at most, also where a busy machine misses a few. Its message
// shows how far the test is.
func (w *world) await(t *testing.T, claim string, holds func() bool) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Log("the record:\n" + w.record() + "\nmail:\n" + w.read(t, "mail") + "\nprocesses:\n" + strings.Join(w.processes(t), "\n"))
		}
	}()
	helper.Within(t, 3*time.Minute, claim, holds)
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

// wantStory compares an atom's events. It leaves out repeated signals, and the event of the ended
// owner that finds its lock lost.
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

// wantMailOfTheForcedEnding expects one line of the newcomer that ended the job, and one of that
// job's own supervisor, each in its own mail, and no other mail from the jobs.
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
	files := must.Get(os.ReadDir(w.path("locks")))(t)
	for _, file := range files {
		if !strings.HasPrefix(file.Name(), "last.") && !strings.HasSuffix(file.Name(), ".runlog") {
			t.Errorf("left behind: %s", file.Name())
		}
	}
}
