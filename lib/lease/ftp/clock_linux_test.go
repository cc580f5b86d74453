package ftp

import (
	"context"
	"testing"
	"time"

	"adlock/lib/process"
)

func TestAClockReadingOfAnotherBootIsRejected(t *testing.T) {
	for text, want := range map[string]bool{string(clockText()): true, "boot=\nboottime=5\n": false, "boot=another\nboottime=5\n": false, "": false} {
		if _, known := parseClock(text); known != want {
			t.Errorf("%q: %v", text, known)
		}
	}
}

// Boottime counts the time for which the machine was suspended.
func TestTheServersClockIsExtrapolatedForAMinute(t *testing.T) {
	unanswered, cancel := context.WithCancel(context.Background())
	cancel()
	s := &Store{turn: make(chan struct{}, 1)}
	then := time.Now()
	for ago, lasts := range map[time.Duration]bool{30 * time.Second: true, time.Hour: false, 0: false} {
		s.clockRead, s.serverThen = process.Boottime()-ago, then
		if ago == 0 {
			s.serverThen = time.Time{} // never read: perhaps in the first minute of the boot
		}
		if now, err := s.now(unanswered); (err == nil) != lasts || lasts && now.Sub(then) < ago {
			t.Errorf("read %v ago: %v, %v", ago, now, err)
		}
	}
}
