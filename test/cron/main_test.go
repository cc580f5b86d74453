// Package cron tries what people install and start by cron: crontabs under real cron daemons, the
// files of test/examples, `make install`, and the packages of a release.
package cron

import (
	"os"
	"testing"

	"adlock/test/support/helper"
)

// The tests wait for cron's minutes, so all run side by side, each in a world of its own.
func TestMain(m *testing.M) {
	helper.SideBySide(10)
	helper.Main(m, func() { os.RemoveAll(scratch) })
}

// scratch is the directory for packages; "" until it is made.
var scratch string
