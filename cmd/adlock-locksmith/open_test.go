package main

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"adlock/lib/config"
)

// A watchdog runs in the root directory.
func TestALogDirectoryIsAbsoluteForTheWatchdog(t *testing.T) {
	t.Setenv("ADLOCK_LOGDIR", "logs")
	if rec, err := recorderIn(t.TempDir(), "h", nil); err != nil || !filepath.IsAbs(rec.Log.Dir) {
		t.Errorf("%+v, %v", rec.Log, err)
	}
}

func TestTheTableOfStoresHasExactlyTheKnownSchemes(t *testing.T) {
	if rows := slices.Sorted(maps.Keys(stores)); !slices.Equal(rows, config.Schemes) {
		t.Errorf("%v, want %v", rows, config.Schemes)
	}
}
