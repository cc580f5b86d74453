package ftp

import "testing"

func TestAClockReadingOfAnotherBootIsRejected(t *testing.T) {
	for text, want := range map[string]bool{string(clockText()): true, "boot=\nboottime=5\n": false, "boot=another\nboottime=5\n": false, "": false} {
		if _, known := parseClock(text); known != want {
			t.Errorf("%q: %v", text, known)
		}
	}
}
