// Package cron tests locks in a real crontab: Debian's cron daemon, three lines, and its own
// clock.
package cron

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"adlock/test/helper"
)

// The tests wait for cron's minutes, so all run side by side, each in a world of its own.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "10"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	helper.Main(m)
}
