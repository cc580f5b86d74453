// Package cron proves that a real crontab can be locked: Debian's cron daemon,
// three lines, and its own clock.
package cron

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"adlock/test/helper"
)

// The tests wait for cron's minutes, so all of them run side by side; each has a world of its own.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "10"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	helper.Main(m)
}
