package limit

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestDurationsMeanWhatTheDesignSays(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0": 0, "15": 15 * time.Minute, "015": 15 * time.Minute, "90s": 90 * time.Second, "1h30m": 90 * time.Minute,
		"2w": 336 * time.Hour, "1d1d": 48 * time.Hour, "never": Never, "0s": 0,
	} {
		if got, err := Parse(text); err != nil || got != want {
			t.Errorf("Parse(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
}

func TestAnythingElseIsAnErrorThatQuotesTheText(t *testing.T) {
	for _, text := range []string{"", " 1", "1 ", "-1", "+1", "1.5h", "1h30", "m", "h1", "1x", "Never", "1H", "99999999999999999999", "9999999999w", "١"} {
		if _, err := Parse(text); err == nil {
			t.Errorf("Parse(%q) was accepted", text)
		} else if !strings.Contains(err.Error(), `"`) {
			t.Errorf("Parse(%q): %v does not quote it", text, err)
		}
	}
}

func TestWhatIsWrittenIsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(0, int64(Never)/int64(time.Second)-1).Draw(t, "s")) * time.Second
		if back, err := Parse(Format(d)); err != nil || back != d {
			t.Fatalf("%v is written %q and read %v, %v", d, Format(d), back, err)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"15", "1h30m", "never", "9223372036s", "٣m"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if d, err := Parse(text); err == nil && d < 0 {
			t.Fatalf("%q is negative: %v", text, d)
		}
	})
}
