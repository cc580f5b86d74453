package protocol

import (
	"errors"
	"fmt"

	"adlock/lib/runlog"
)

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
	for e, err := range runlog.Read(dir, host) {
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
