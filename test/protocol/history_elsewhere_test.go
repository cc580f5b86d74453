package protocol

import (
	"os"
	"testing"
)

// This checks the events in the file $ADLOCK_HISTORY, so that the same model judges the history of
// another package's test.
func TestTheHistoryOfAnotherTestBreaksNoPromise(t *testing.T) {
	path := os.Getenv("ADLOCK_HISTORY")
	if path == "" {
		t.Skip("ADLOCK_HISTORY names no file") // nothing to check, so no need is missing
	}
	events := notes{path}.read(t)
	if err := check(events); err != nil {
		t.Error(err)
	}
}
