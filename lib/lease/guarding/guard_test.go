package guarding

import (
	"errors"
	"testing"
)

func TestAGuardThatCouldNotBeStartedIsNotThere(t *testing.T) {
	refused := errors.New("no more processes just now")
	g := &Guard{started: make(chan error, 1)}
	g.started <- refused
	if err := g.Ready(); !errors.Is(err, refused) || g.IsThere() {
		t.Errorf("%v; it is there: %v", err, g.IsThere())
	}
	g.Dismiss()
	var none *Guard
	if none.IsThere() {
		t.Error("none is there")
	}
	none.Dismiss()
}
