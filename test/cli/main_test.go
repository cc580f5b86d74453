// Package cli tests the built program from outside, as scripts and crontabs use it: what each
// verb and option does, prints and returns, what the shells complete, and how many system calls
// a lock costs. Each way to ask about an atom gives the same answer (question).
package cli

import (
	"testing"

	"adlock/test/support/helper"
)

// Most of the tests wait most of the time.
func TestMain(m *testing.M) {
	helper.SideBySide(8)
	helper.Main(m)
}
