package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"adlock/lib/process"
	"adlock/test/support/must"
)

func TestAPassClockIsComputedFromAnUptime(t *testing.T) {
	first, began := readUptime(t), time.Now()
	var clock time.Time
	for range 2 {
		must.Do(t, passClock(&clock)("uptime:"+first))
		if off := clock.Sub(began).Abs(); off > time.Second {
			t.Errorf("off by %v", off)
		}
		time.Sleep(20 * time.Millisecond) // the clock stands meanwhile, to the resolution of /proc/uptime
	}
	if err := passClock(&clock)("1000000000"); err != nil || clock.Unix() != 1e9 {
		t.Errorf("%v, %v", clock, err)
	}
	for _, bad := range []string{"uptime:", "uptime:x", "uptime:-1", "x"} {
		if err := passClock(&clock)(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func readUptime(t *testing.T) string {
	t.Helper()
	text := must.Get(os.ReadFile(uptimeFile))(t)
	first, _, _ := strings.Cut(string(text), " ")
	return first
}

// A start that seemed older than the owner that it found would not replace that owner.
func TestAScriptsStartIsNeverComputedTooEarly(t *testing.T) {
	var since time.Duration
	for n := range 50 {
		before, text := process.Boottime(), readUptime(t)
		time.Sleep(time.Duration(n%7) * time.Millisecond) // in some of these the file goes one step on
		if err := Since(&since)(text); err != nil || since < before || since > process.Boottime() {
			t.Fatalf("%v before its start (%v)", before-since, err)
		}
	}
}

func TestAScriptsStartIsComputedFromAContainersUptime(t *testing.T) {
	defer func(file string) { uptimeFile = file }(uptimeFile)
	uptimeFile = filepath.Join(t.TempDir(), "uptime")
	must.Do(t, os.WriteFile(uptimeFile, []byte("65.00 3.00\n"), 0o600))
	var since time.Duration
	before := process.Boottime()
	err := Since(&since)("5.00")
	if asked := process.Boottime() - time.Minute; err != nil || since < before-time.Minute || since > asked+uptimeStep {
		t.Errorf("%v, %v: want a minute before %v", since, err, before)
	}
	for _, bad := range []string{"", "x", "-1"} {
		if err := Since(&since)(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
