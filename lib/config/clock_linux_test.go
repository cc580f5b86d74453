package config

import (
	"os"
	"strings"
	"testing"
	"time"
)

func TestThePassClockIsTheTimeOfThatUptime(t *testing.T) {
	uptime, err := os.ReadFile("/proc/uptime")
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	first, _, _ := strings.Cut(string(uptime), " ")
	var clock time.Time
	for range 2 {
		if err := passClock(&clock)("uptime:" + first); err != nil {
			t.Fatal(err)
		}
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
