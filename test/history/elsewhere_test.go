package history

import (
	"os"
	"testing"
)

// TestHistoryOfAnotherTest checks the events in the file $ADLOCK_HISTORY: so a
// test of another package has its history judged by the same model.
func TestHistoryOfAnotherTest(t *testing.T) {
	path := os.Getenv("ADLOCK_HISTORY")
	if path == "" {
		t.Skip("ADLOCK_HISTORY names no file") // nothing is missing: nothing is asked
	}
	events := record{path}.read(t)
	if err := check(events); err != nil {
		t.Error(err)
	}
}
