// Package docs compares the documentation with the programs: the manual pages, each recipe, the
// page of `adlock report --html`, and the pictures. The demo is here, too.
package docs

import (
	"testing"

	"adlock/test/support/helper"
)

func TestMain(m *testing.M) { helper.Main(m) }
