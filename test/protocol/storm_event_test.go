package protocol

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"adlock/lib/runlog"
)

// stormEvent is one line of a contender or of the stage. Their order is an order in real time.
type stormEvent struct {
	kind  string
	id    string        // of the attempt; the part before its first dot is the contender
	at    time.Duration // CLOCK_BOOTTIME; a shell reads it to 10 ms
	words []string
}

// parseStorm reads a line: KIND ID SECONDS WORD….
func parseStorm(line string) (stormEvent, error) {
	fields := strings.Fields(line)
	if len(fields) < 3 {
		return stormEvent{}, fmt.Errorf("%q is no event", line)
	}
	seconds, err := strconv.ParseFloat(fields[2], 64)
	if err != nil {
		return stormEvent{}, err
	}
	return stormEvent{fields[0], fields[1], time.Duration(seconds * float64(time.Second)), fields[3:]}, nil
}

func (e stormEvent) String() string {
	return fmt.Sprintf("%12.3f %-8s %-10s %s", e.at.Seconds(), e.kind, e.id, strings.Join(e.words, " "))
}

// word returns the word at i; "" if there is none.
func (e stormEvent) word(i int) string {
	if i < len(e.words) {
		return e.words[i]
	}
	return ""
}

// number returns the word at i as a number.
func (e stormEvent) number(i int) int {
	n, err := strconv.Atoi(e.word(i))
	if err != nil {
		return -1
	}
	return n
}

// status returns the word at 0 as a status. After a signal, ksh93 reports 256 and its number, and yash 384, others 128.
func (e stormEvent) status() int {
	switch n := e.number(0); {
	case n >= 384:
		return n - 256
	case n >= 256:
		return n - 128
	default:
		return n
	}
}

// rootOf returns the contender of an attempt: the process that the stage started, with all its children.
func rootOf(id string) string {
	root, _, _ := strings.Cut(id, ".")
	return root
}

// stormTerms are the terms of an attempt, as in the words of its call.
type stormTerms struct {
	atom     string
	shared   bool
	elapsed  time.Duration // IfElapsed
	limit    time.Duration // ExpireAfter; below 0 if none is given
	enforce  bool
	slots    int  // at most so many of the atom's family at once; 0: no limit
	code     int  // with which its job ends
	denied   int  // the status of a denial
	unstamps bool // a failed run does not count for IfElapsed
	script   bool // a contender that reports its verdicts itself
	pass     bool // its intervals are judged by the time at which its contender began
	wait     time.Duration
}

// family is the unit in which slots are counted.
func (t stormTerms) family() string { return strings.TrimRight(t.atom, "0123456789") }

// String is what termsOf reads.
func (t stormTerms) String() string {
	mode := "x"
	if t.shared {
		mode = "s"
	}
	limit := int64(-1)
	if t.limit >= 0 {
		limit = t.limit.Milliseconds()
	}
	return fmt.Sprintf("atom=%s mode=%s elapsed=%d limit=%d enforce=%t slots=%d code=%d denied=%d unstamps=%t wait=%d",
		t.atom, mode, t.elapsed.Milliseconds(), limit, t.enforce, t.slots, t.code, t.denied, t.unstamps, t.wait.Milliseconds())
}

// termsOf reads the words of a call.
func termsOf(words []string) stormTerms {
	t := stormTerms{limit: -1, denied: denied}
	into := map[string]any{
		"atom": &t.atom, "mode": &t.shared, "elapsed": &t.elapsed, "limit": &t.limit, "enforce": &t.enforce,
		"slots": &t.slots, "code": &t.code, "denied": &t.denied, "unstamps": &t.unstamps, "wait": &t.wait, "pass": &t.pass,
	}
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		n, _ := strconv.Atoi(value) // 0 for what is no number
		switch to := into[key].(type) {
		case *string:
			*to = value
		case *bool:
			*to = value == "s" || value == "true" || value == "1"
		case *int:
			*to = n
		case *time.Duration:
			*to = time.Duration(n) * time.Millisecond
		}
	}
	return t
}

// checkRunlog compares a runlog with the events of a round: an acquisition has exactly one end. For each signal by
// the storm that ends a process, two events may be missing: the replacement of an owner, and the taking of its lock.
func checkRunlog(dir, host string, events []stormEvent) error {
	begun, ends, entered, hits := map[string]int{}, map[string]int{}, 0, 0
	for _, e := range events {
		switch {
		case e.kind == "in":
			entered++
		case e.kind == "sig" && e.word(0) != "STOP" && e.word(0) != "CONT":
			hits++
		}
	}
	for e, err := range runlog.Read(dir, host, math.MaxInt64) {
		if err != nil {
			return err
		}
		switch e.Kind {
		case runlog.Acquire:
			begun[e.Token]++
		case runlog.Release:
			ends[e.Token]++
		case runlog.Takeover, runlog.Reclaim, runlog.Clear:
			ends[e.OwnerToken]++
		}
	}
	var wrong []error
	missing := 0
	for token, n := range begun {
		if n != 1 || ends[token] > 1 {
			wrong = append(wrong, fmt.Errorf("%s was acquired %d times and ended %d times", token, n, ends[token]))
		}
		if ends[token] == 0 {
			missing++
		}
	}
	for token := range ends {
		if begun[token] == 0 {
			missing++
		}
	}
	if missing > 2*hits || len(begun) < entered-hits {
		wrong = append(wrong, fmt.Errorf("%d acquisitions are recorded, %d lack their beginning or end; %d jobs began, %d signals",
			len(begun), missing, entered, hits))
	}
	return errors.Join(wrong...)
}
