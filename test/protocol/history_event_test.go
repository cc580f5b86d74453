package protocol

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The kinds of events.
const (
	call  = "call"  // an attempt begins: ATOM IFELAPSED (seconds)
	enter = "in"    // the atom was taken: the job begins
	leave = "out"   // the job is done, the release begins
	end   = "end"   // the attempt is over: VERDICT
	clash = "clash" // the job found a process of another job alive
	gone  = "gone"  // no process of the contender lives: HOW
)

// The verdicts of end, and how a contender ended, for gone.
const (
	released = "released"
	lost     = "lost"
	busy     = "busy"
	tooSoon  = "too-soon"
	failed   = "error" // for example, a helper was killed: the contender gives up

	ended    = "ended"    // by itself
	signaled = "signaled" // by a process other than the test
	killed   = "killed"   // by the test
)

// event is one line of the events. Its place gives its order, because a line is appended before the
// next step. Its clock is for IfElapsed, and has the resolution of /proc/uptime, 10 ms.
type event struct {
	kind    string
	attempt string // CONTENDER.N; the contender alone in gone
	at      time.Duration
	words   []string
	place   int64
}

func (e event) contender() string {
	contender, _, _ := strings.Cut(e.attempt, ".")
	return contender
}

func (e event) word(n int) string {
	if n < len(e.words) {
		return e.words[n]
	}
	return ""
}

func (e event) String() string {
	return fmt.Sprintf("%d: %s %s %.3f %s", e.place, e.kind, e.attempt, e.at.Seconds(), strings.Join(e.words, " "))
}

// notes appends events to the file at path. It may be used by many processes.
type notes struct{ path string }

func (r notes) note(kind, attempt string, words ...string) error {
	file, err := os.OpenFile(r.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	clock := strconv.FormatFloat(uptime().Seconds(), 'f', 6, 64)
	_, err = file.WriteString(strings.Join(append([]string{kind, attempt, clock}, words...), " ") + "\n")
	return err
}

func (r notes) read(t *testing.T) []event {
	t.Helper()
	text, err := os.ReadFile(r.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return parse(t, string(text))
}

func parse(t *testing.T, text string) []event {
	t.Helper()
	var events []event
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) < 3 {
			t.Fatalf("line %d is no event: %q", len(events), line)
		}
		at, err := strconv.ParseFloat(words[2], 64)
		if err != nil {
			t.Fatalf("line %d is no event: %q", len(events), line)
		}
		events = append(events, event{
			kind: words[0], attempt: words[1], at: time.Duration(at * float64(time.Second)),
			words: words[3:], place: int64(len(events)),
		})
	}
	return events
}
