package limit

import (
	"encoding/json"
	"math"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"adlock/test/support/must"
)

func TestSecondsAreWrittenExactly(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0", 1: "0.000000001", time.Second: "1", 61250 * time.Millisecond: "61.25", -1500 * time.Millisecond: "-1.5",
		Never: "never", Never - 1: "9223372036.854775806", math.MinInt64: "-9223372036.854775808",
	} {
		if got := Seconds(d).String(); got != want {
			t.Errorf("%d ns: %s, want %s", d, got, want)
		}
	}
}

func TestSecondsAreANumberInJSONExceptNever(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Max(int64(Never)-1).Draw(t, "d"))
		text := must.Get(json.Marshal(Seconds(d)))(t)
		if n, err := strconv.ParseFloat(string(text), 64); err != nil || math.Abs(n-d.Seconds()) > math.Abs(n)*1e-15 {
			t.Fatalf("%d ns: %s, %v", d, text, err)
		}
	})
	if text, err := json.Marshal(Seconds(Never)); err != nil || string(text) != `"never"` {
		t.Errorf("%s, %v", text, err)
	}
}

func TestInstantWritesTimesInUTC(t *testing.T) {
	east := time.FixedZone("east", 3600)
	for want, at := range map[string]time.Time{
		"":                               {},
		"2026-11-19T23:00:00.000000001Z": time.Date(2026, 11, 20, 0, 0, 0, 1, east),
		"12026-11-20T00:00:00Z":          time.Date(12026, 11, 20, 0, 0, 0, 0, time.UTC),
	} {
		if got := Instant(at); got != want {
			t.Errorf("%v: %q, want %q", at, got, want)
		}
	}
}
