package config

import (
	"os"
	"strings"
	"testing"
)

func TestTheLibraryIsOfTheSameVersion(t *testing.T) {
	text, err := os.ReadFile("../../sh/adlock.sh")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "\n_adlock_version="+Release+"\n") {
		t.Errorf("sh/adlock.sh is not of version %s", Release)
	}
}
