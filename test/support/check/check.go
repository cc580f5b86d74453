// Package check compares what a test got with what it wants. It imports nothing of the project.
package check

import (
	"slices"
	"testing"
)

// Equal fails the test unless got is want. The message begins with what, which says what was got.
func Equal[V comparable](t testing.TB, what string, got, want V) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %#v, want %#v", what, got, want)
	}
}

// Slices is Equal for slices.
func Slices[V comparable](t testing.TB, what string, got, want []V) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %#v, want %#v", what, got, want)
	}
}
