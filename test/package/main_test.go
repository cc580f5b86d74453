//go:build soak

// Package packages tests what `make release` makes: it is the same wherever it is made, lintian
// has no complaint, one line guards a crontab of a bare Debian, and upgrade, removal and purge
// harm no job.
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
