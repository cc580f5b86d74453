package main

import (
	"testing"
	"time"

	setup "adlock/test/support/must"
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

func TestADayWithoutAMidnightBeginsWithItsFirstMoment(t *testing.T) {
	local := time.Local
	defer func() { time.Local = local }()
	for zone, day := range map[string]string{"America/Santiago": "2026-09-06", "America/Havana": "2026-03-08", "Asia/Beirut": "2026-03-29"} {
		time.Local = setup.Get(time.LoadLocation(zone))(t)
		first := setup.Get(time.ParseInLocation(time.DateTime, day+" 01:00:00", time.Local))(t)
		for text, now := range map[string]time.Time{
			day: first, day + " 00:30": first, day + "T00:00:01": first, "today": first.Add(time.Hour), "yesterday": first.Add(25 * time.Hour),
			"00:30": first.Add(23*time.Hour + 15*time.Minute), "0:00": first.Add(time.Hour), "yesterday 0:10": first.Add(30 * time.Hour),
		} {
			if got, err := when(text, now); err != nil || !got.Equal(first) {
				t.Errorf("%s, %s: %v, %v, want %v", zone, text, got, err, first)
			}
		}
	}
}
