package main

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestJSONEscapesUnprintableCharacters(t *testing.T) {
	t.Parallel()
	const odd, want = "a\u009b\u202e\u2028\x7f\U000e0041\ufeff\u00e9\n\U0001f170", `"a\u009b\u202e\u2028\u007f\udb40\udc41\ufeffé\n🅰"` + "\n"
	var w strings.Builder
	if err := encoderOf(&w).Encode(odd); err != nil || w.String() != want {
		t.Errorf("%+q, %v", w.String(), err)
	}
	var back string
	if err := json.Unmarshal([]byte(w.String()), &back); err != nil || back != odd {
		t.Errorf("%+q, %v", back, err)
	}
	full := errors.New("full")
	if err := encoderOf(failing{full}).Encode(odd); err != full {
		t.Errorf("%v", err)
	}
}

// failing is a writer whose every write fails.
type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }
