package main

import (
	"maps"
	"slices"
	"testing"

	"adlock/lib/config"
)

func TestTheTableOfStoresHasExactlyTheKnownSchemes(t *testing.T) {
	if rows := slices.Sorted(maps.Keys(stores)); !slices.Equal(rows, config.Schemes) {
		t.Errorf("%v, want %v", rows, config.Schemes)
	}
}
