package protocol

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"adlock/test/support/must"
)

// This judges the events in the file $ADLOCK_HISTORY, so that one judge tries the histories of other
// packages' tests too. There each contender is one `adlock run`, with one attempt.
func TestTheHistoryOfAnotherTestBreaksNoPromise(t *testing.T) {
	path := os.Getenv("ADLOCK_HISTORY")
	if path == "" {
		t.Skip("ADLOCK_HISTORY names no file") // nothing to judge, so no need is missing
	}
	text := must.Get(os.ReadFile(path))(t)
	events := history(t, ofElsewhere(string(text)))
	for _, v := range judgeBy(coarseElsewhere, events) {
		t.Error(v.tell(events))
	}
}

// ofElsewhere returns the events of another package as a storm has them. There a call has the words
// ATOM IFELAPSED (in seconds), an end has the verdict, and gone, which names the contender alone, is
// told when no process of a contender without a verdict lives.
func ofElsewhere(text string) string {
	var lines strings.Builder
	for line := range strings.Lines(text) {
		words := append(strings.Fields(line), "", "")
		kind, id, at := words[0], words[1], words[2]
		switch kind + " " + words[3] {
		case "end released":
			line = fmt.Sprintln("end", id, at, 0)
		case "end busy", "end too-soon":
			line = fmt.Sprintln("end", id, at, denied, words[3])
		case "gone killed":
			line = fmt.Sprintln("sig", id, at, "KILL") + fmt.Sprintln("end", id+".1", at, 137)
		case "gone ended":
			continue
		case "out " + words[3]:
			line = fmt.Sprintln("out", id, at, 0)
		case "call " + words[3]:
			line = fmt.Sprintf("call %s %s atom=%s elapsed=%s000\n", id, at, words[3], words[4])
		}
		lines.WriteString(line)
	}
	return lines.String()
}

func TestTheHistoryOfAnotherTestIsReadAsAStormsIs(t *testing.T) {
	const first = "call run1.1 1.0 a 0\nin run1.1 1.1\nout run1.1 1.2\nend run1.1 1.3 released\n"
	for text, promise := range map[string]string{
		first + "call run2.1 1.4 a 1\nend run2.1 1.5 too-soon":                               "",
		first + "call run2.1 1.4 a 0\nend run2.1 1.5 busy":                                   "not held",
		first + "call run2.1 1.4 a 1\nin run2.1 1.5":                                         "too soon",
		"call run1.1 1 a 0\nin run1.1 1\ngone run1 2 killed\ncall run2.1 2 a 0\nin run2.1 2": "",
		"call run1.1 1 a 0\nin run1.1 1\nclash run1.1 1":                                     "two jobs",
	} {
		mustFind(t, text, judgeBy(coarseElsewhere, history(t, ofElsewhere(text))), promise)
	}
}
