package cli

import (
	"regexp"
	"strings"
	"time"

	"adlock/lib/limit"
)

// reason is an answer in the words of the dry run: "busy: running for 3m, …". Its first word is the verdict.
type reason string

func (r reason) granted() bool {
	return strings.HasPrefix(string(r), "free: ") || strings.HasPrefix(string(r), "expired: ")
}

// verdict is $ADLOCK_VERDICT of a script with this answer.
func (r reason) verdict() string {
	if r.granted() {
		return "acquired"
	}
	word, _, _ := strings.Cut(string(r), ": ")
	return strings.ReplaceAll(word, " ", "-")
}

// statuses are the exit statuses of a newcomer by its verdict.
var statuses = map[string]int{"acquired": 0, "busy": 75, "too-soon": 75, "full": 75, "paused": 75, "stuck": 77}

func (r reason) status() int { return statuses[r.verdict()] }

// eventOf maps the words of a dry run to the runlog's event of a newcomer that removes another owner's lock.
var eventOf = map[string]string{
	"would be ended":    "event=takeover",
	"would be replaced": "event=reclaim",
	"would be cleared":  "event=empty",
}

var pid = regexp.MustCompile(`\bprocess [0-9]+\b`)

// ownersMachine is the owner's machine, which only a store names.
var ownersMachine = regexp.MustCompile(`(running for [^ ,]+) on [^ ,]+`)

func (r reason) withoutMachine() string { return ownersMachine.ReplaceAllString(string(r), "$1") }

var figure = regexp.MustCompile(`-?\b([0-9]+[wdhms])+\b`)

// alike reports whether two reasons have the same words, and figures that differ at most by the
// slack: the time between them.
func (r reason) alike(other reason, slack time.Duration) bool {
	if r.words() != other.words() {
		return false
	}
	theirs := figure.FindAllString(other.withoutMachine(), -1)
	for i, text := range figure.FindAllString(r.withoutMachine(), -1) {
		if (seconds(text) - seconds(theirs[i])).Abs() > slack {
			return false
		}
	}
	return true
}

// words are the reason without its figures and machine, and without pids, which differ from world to world.
func (r reason) words() string {
	return pid.ReplaceAllString(figure.ReplaceAllString(r.withoutMachine(), "…"), "process #")
}

func seconds(text string) time.Duration {
	text, negative := strings.CutPrefix(text, "-")
	d, _ := limit.Parse(text) // the expression matches only durations
	if negative {
		return -d
	}
	return d
}
