// Package process tries the real program among other processes, users and clocks: no stranger is taken for an owner
// (identity), only a confirmed death frees a lock (survivor), other users can deny at most what is theirs (hostile),
// no step of a clock expires an owner (clock), and many locks leave nothing behind (leak).
package process

import (
	"testing"

	"adlock/test/support/helper"
)

// Most of the tests that may run side by side wait most of the time.
func TestMain(m *testing.M) {
	helper.SideBySide(12)
	helper.Main(m)
}
