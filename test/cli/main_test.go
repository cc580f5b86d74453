// Package cli tests the built program from outside, as scripts and crontabs use it: what each
// verb and option does, prints and returns.
package cli

import (
	"testing"

	"adlock/test/helper"
)

func TestMain(m *testing.M) { helper.Main(m) }
