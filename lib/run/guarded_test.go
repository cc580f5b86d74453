package run

import (
	"testing"

	"pgregory.net/rapid"
)

func TestEveryWordSurvivesTheShell(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := string(rapid.SliceOf(rapid.Byte()).Draw(t, "word"))
		text := Encode(word)
		if got := decode(text); got != word {
			t.Errorf("%q: %q", word, got)
		}
		for _, b := range []byte(text) {
			if b < ' ' || b > '~' {
				t.Errorf("%q holds %q", text, b)
			}
		}
	})
}

func TestAPlainWordIsLeftAsItIs(t *testing.T) {
	for _, word := range []string{"sh", "/usr/bin/dash", "it's so", "-e", "a=b"} {
		if got := Encode(word); got != word {
			t.Errorf("%q: %q", word, got)
		}
	}
}
