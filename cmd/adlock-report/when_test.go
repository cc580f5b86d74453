package main

import (
	"testing"
	"time"
)

func TestATimeMayBeAnAgeAClockTimeADayOrADate(t *testing.T) {
	local := time.Local
	time.Local = time.FixedZone("here", 3600)
	defer func() { time.Local = local }()
	now := time.Date(2026, 3, 1, 15, 30, 0, 0, time.Local)
	for text, want := range map[string]string{
		"": "0001-01-01 00:00:00", "30m": "2026-03-01 15:00:00", "now": "2026-03-01 15:30:00", "2h": "2026-03-01 13:30:00", "1d": "2026-02-28 15:30:00", "never": "0001-01-01 00:00:00",
		"14:00": "2026-03-01 14:00:00", "16:00": "2026-02-28 16:00:00", "15:29:59": "2026-03-01 15:29:59", "15:30:01": "2026-02-28 15:30:01",
		"today": "2026-03-01 00:00:00", "yesterday": "2026-02-28 00:00:00", "today 16:00": "2026-03-01 16:00:00", "yesterday 9:05": "2026-02-28 09:05:00",
		"2026-02-20": "2026-02-20 00:00:00", "2026-02-20 14:00": "2026-02-20 14:00:00", "2026-02-20T14:00:01": "2026-02-20 14:00:01",
		"2026-02-20T14:00:00Z": "2026-02-20 15:00:00",
	} {
		got, err := when(text, now)
		if !got.IsZero() {
			got = got.In(time.Local)
		}
		if err != nil || got.Format(time.DateTime) != want {
			t.Errorf("%q: %v, %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"tomorrow", "25:00", "today 7d", "yesterday x", "2026-02-30", "5x", " "} {
		if got, err := when(text, now); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}
