package watchdog

import (
	"errors"
	"testing"
)

func TestAWatchdogThatCouldNotBeStartedIsNotThere(t *testing.T) {
	refused := errors.New("no more processes just now")
	w := &Watchdog{started: make(chan error, 1)}
	w.started <- refused
	if err := w.Ready(); !errors.Is(err, refused) || w.IsThere() {
		t.Errorf("%v; it is there: %v", err, w.IsThere())
	}
	w.Dismiss()
	var none *Watchdog
	if none.IsThere() {
		t.Error("none is there")
	}
	none.Dismiss()
}
