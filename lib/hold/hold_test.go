package hold

import (
	"testing"

	"adlock/lib/record"
)

func TestAnOwnersDeathAfterAcquisitionDoesNotEndHold(t *testing.T) {
	gone, taken := make(chan struct{}), make(chan struct{})
	close(taken)
	close(gone)
	for range 100 {
		exitAtDeath(gone, taken, func(int) { t.Fatal("it exits, and the atom is not released") })
	}
}

func TestAProgramThatEndsWithoutReleaseTeachesNoLimit(t *testing.T) {
	h := holding{Args: new(Args)}
	if r := h.releaseRequest(ending{unreported: true}); r.Lesson(record.Record{Learn: true}) != nil {
		t.Errorf("%+v", r)
	}
}
