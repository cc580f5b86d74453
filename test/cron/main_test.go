// Package cron proves that a real crontab can be locked: Debian's cron daemon,
// three lines, and its own clock.
package cron

import (
	"testing"

	"adlock/test/helper"
)

func TestMain(m *testing.M) { helper.Main(m) }
