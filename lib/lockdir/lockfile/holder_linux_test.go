package lockfile

import (
	"os"
	"testing"
)

func TestTheHolderOfAGuardIsKnown(t *testing.T) {
	d := newDir(t)
	put(t, d, fullRecord())
	a, other := active(t, d), active(t, d)
	if holder := other.GuardHolder(); holder != 0 {
		t.Errorf("%d holds it", holder)
	}
	must(t, a.Guard(0))
	if holder := other.GuardHolder(); holder != os.Getpid() {
		t.Errorf("%d holds it", holder)
	}
}
