package runlog

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"adlock/test/support/must"
)

// A kind that is not in Kinds cannot be selected, and has no metric.
func TestKindsHasEveryKind(t *testing.T) {
	var declared []Kind
	text := must.Get(os.ReadFile("event.go"))(t)
	for _, found := range regexp.MustCompile(`\bKind += "(.+)"`).FindAllSubmatch(text, -1) {
		declared = append(declared, Kind(found[1]))
	}
	if !slices.Equal(declared, Kinds()) || len(declared) < 10 {
		t.Errorf("declared are %v, Kinds has %v", declared, Kinds())
	}
}
