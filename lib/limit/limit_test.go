package limit

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"adlock/test/support/check"
	"adlock/test/support/must"
)

func TestParseSumsNumbersWithUnits(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0": 0, "90s": 90 * time.Second, "1h30m": 90 * time.Minute,
		"2w": 336 * time.Hour, "1d1d": 48 * time.Hour, "never": Never, "0s": 0,
		"1.5h": 90 * time.Minute, "500ms": 500 * time.Millisecond,
		"1m30s500ms": 90500 * time.Millisecond, "2.5s": 2500 * time.Millisecond, "0.25d1.5h": 450 * time.Minute,
		"0.0": 0, "0.00ms": 0, "1.0004s": time.Second, "1.0006s": 1001 * time.Millisecond, "0.6ms": time.Millisecond,
	} {
		if got, err := Parse(text); err != nil || got != want {
			t.Errorf("Parse(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
}

func TestParseRefusesANumberOtherThan0WithoutAUnit(t *testing.T) {
	for _, text := range []string{"15", "015", "1.5", "0.5", "60"} {
		_, err := Parse(text)
		if want := text + ": say " + text + "s or " + text + "m"; err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	for text, want := range map[string]string{
		"15": "15m", "1.5": "1.5m", "0": "0m", "90s": "90s", "never": "never", "auto": "auto", "": "", ".": ".", "1.": "1.",
		"99999999999999999999": "99999999999999999999", "$x": "$x",
	} {
		check.Equal(t, text, InMinutes(text), want)
	}
}

func TestParseQuotesABadDurationInItsError(t *testing.T) {
	for _, text := range []string{"", " 1", "1 ", "-1", "+1", "1h30", "1,5h", ".5h", "5.h", "1.", ".", "1.5.5h", "1..5h", "1e3s", "1hm", "1mss", "0.4ms", "0.0001s", "0.00000000000000000000001h",
		"9223372036.9s", "15250.3w", "m", "h1", "1x", "Never", "1H", "99999999999999999999", "9999999999w", "١"} {
		if _, err := Parse(text); err == nil {
			t.Errorf("Parse(%q) was accepted", text)
		} else if !strings.Contains(err.Error(), `"`) {
			t.Errorf("Parse(%q): %v does not quote it", text, err)
		}
	}
}

func TestParseReadsWhatFormatWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(0, int64(Never)/int64(time.Millisecond)-1).Draw(t, "ms")) * time.Millisecond
		if back, err := Parse(Format(d)); err != nil || back != d {
			t.Fatalf("%v is written %q and read %v, %v", d, Format(d), back, err)
		}
	})
}

func TestTheErrorOfABadDurationNamesTheUnitsOrTheMaximum(t *testing.T) {
	const long = ` (too long: at most 15250w)`
	for text, want := range map[string]string{"soon": ` (want numbers with ms s m h d w, as in "90s", "1h30m", "1.5h"; or 0, "never")`, "15251w": long, "15250w1w": long, "99999999999999999999d": long, "1w15250.2w1s": long} {
		if _, err := Parse(text); err == nil || err.Error() != `bad duration "`+text+`"`+want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestAnAgeIsShownInWholeSeconds(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 999 * time.Millisecond: "0s", 61900 * time.Millisecond: "1m1s", -1500 * time.Millisecond: "-1s", Never: "never",
	} {
		check.Equal(t, d.String(), FormatAge(d), want)
	}
}

func TestAnAgeAndTheTimeLeftAddUpToTheLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		whole := time.Duration(rapid.Int64Range(0, 1e6).Draw(t, "limit")) * time.Second
		age := time.Duration(rapid.Int64Range(0, int64(whole)).Draw(t, "age"))
		before, err := Parse(FormatAge(age))
		left, failed := Parse(FormatLeft(whole - age))
		if err != nil || failed != nil || before > age || before+left != whole || (left == 0) != (age == whole) {
			t.Errorf("%v of %v is told as %v, and %v left", age, whole, before, left)
		}
	})
	check.Equal(t, "the bounds", FormatLeft(Never)+FormatLeft(-time.Minute)+Format(-Never-1), "never0s-never")
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"15", "1h30m", "never", "9223372036s", "٣m", "1.5h", "500ms", "9223372036.9s"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if d, err := Parse(text); err == nil && d < 0 {
			t.Fatalf("%q is negative: %v", text, d)
		}
	})
}

func TestSecondsAreWrittenExactly(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0", 1: "0.000000001", time.Second: "1", 61250 * time.Millisecond: "61.25", -1500 * time.Millisecond: "-1.5",
		Never: "never", Never - 1: "9223372036.854775806", math.MinInt64: "-9223372036.854775808",
	} {
		check.Equal(t, d.String(), Seconds(d).String(), want)
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
		check.Equal(t, at.String(), Instant(at), want)
	}
}
