package config

import (
	"os"
	"strings"
	"testing"

	"adlock/test/support/must"
)

func TestTheLibraryIsOfTheSameVersion(t *testing.T) {
	text := must.Get(os.ReadFile("../../sh/adlock.sh"))(t)
	if !strings.Contains(string(text), "\n_adlock_version="+Release+"\n") {
		t.Errorf("sh/adlock.sh is not of version %s", Release)
	}
}
