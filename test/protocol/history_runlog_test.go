package protocol

import (
	"errors"
	"fmt"

	"adlock/lib/runlog"
)

// checkRunlog compares the runlog of a round with the events of the jobs: an
// acquisition has exactly one end. For each kill by the test, two events may be missing: the
// replacement of an owner, and the taking of its lock.
func checkRunlog(dir string, entered, hits int) error {
	begun, ends := map[string]int{}, map[string]int{}
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
	if missing > 2*hits {
		wrong = append(wrong, fmt.Errorf("%d acquisitions lack their beginning or their end", missing))
	}
	if len(begun) < entered-hits {
		wrong = append(wrong, fmt.Errorf("%d acquisitions recorded, but %d jobs began", len(begun), entered))
	}
	return errors.Join(wrong...)
}
