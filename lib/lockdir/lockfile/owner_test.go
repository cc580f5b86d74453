package lockfile

import (
	"strings"
	"testing"

	"adlock/lib/process"
)

func TestAMissingMachineIdIsNamedWhereItMatters(t *testing.T) {
	for _, c := range []struct {
		owner, here process.Identity
		machine     bool // whether the reason names the machine id
	}{
		{process.Identity{Boot: "a"}, process.Identity{Boot: "b"}, true},
		{process.Identity{Boot: "a"}, process.Identity{Boot: "a"}, false},
		{process.Identity{Boot: "a", Machine: "m"}, process.Identity{Boot: "b"}, false},
		{process.Identity{}, process.Identity{}, true},
		{process.Identity{Boot: "a"}, process.Identity{}, false},
		{process.Identity{Machine: "m"}, process.Identity{Boot: "b", Machine: "m"}, false},
		{process.Identity{Boot: "a"}, process.Identity{Boot: "b", Machine: "m"}, false},
	} {
		if why := unchecked(c.owner, c.here).Error(); strings.Contains(why, "machine-id") != c.machine {
			t.Errorf("%+v from %+v: %s", c.owner, c.here, why)
		}
	}
}
