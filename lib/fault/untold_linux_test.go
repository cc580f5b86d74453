package fault

import (
	"fmt"
	"testing"

	"adlock/test/support/helper"
)

func TestAnUntoldErrorSetsTheStatusAndPrintsNothing(t *testing.T) {
	err := Untold{New(Usage, "owner", "is gone")}
	if said := helper.Stderr(t, func() { Report(err); Report(fmt.Errorf("x: %w", err)) }); said != "" || StatusOf(err) != StatusUsage {
		t.Errorf("status %d, said %q", StatusOf(err), said)
	}
}
