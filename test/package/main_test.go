// Package packages proves what `make release` makes: that it is the same wherever it is
// made, that lintian has nothing to say, that one line guards a crontab of a bare Debian,
// and that upgrade, removal and purge harm no job.
package packages

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	status := m.Run()
	if scratch != "" {
		os.RemoveAll(scratch)
	}
	os.Exit(status)
}
