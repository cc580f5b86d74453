package etcd

import (
	"testing"
	"time"

	"adlock/lib/lease"
	"adlock/lib/process"
	"adlock/lib/record"
)

func TestHowLongAgoIsToldByTheLeaderThatLedThenAndNow(t *testing.T) {
	const then, ran = 7, 100 * time.Second
	for _, test := range []struct {
		claim       string
		byWall      time.Duration
		term        uint64 // in which the clock is read
		shows, want time.Duration
	}{
		{"clocks that agree to the second tell it finer", 60400 * time.Millisecond, then, 161 * time.Second, 60400 * time.Millisecond},
		{"a clock that is ahead is not believed", time.Hour, then, 160 * time.Second, time.Minute},
		{"nor one that is behind", -time.Hour, then, 160 * time.Second, time.Minute},
		{"what rounding makes of no time at all is none", -time.Hour, then, 99500 * time.Millisecond, 0},
		{"a clock that was made anew tells nothing", time.Hour, then, 3 * time.Second, time.Hour},
		{"a clock that cannot be read tells nothing", time.Hour, 0, 0, time.Hour},
		{"nor does one that led before", time.Hour, then - 1, 500 * time.Second, time.Hour},
		{"after a new leader the machines' clocks tell it", time.Hour, then + 1, time.Minute, time.Hour},
		{"and it is not less than that one has led", -time.Hour, then + 2, 61 * time.Second, time.Minute},
		{"nor does it lie in the future", -time.Hour, then + 1, 0, 0},
	} {
		read := reading{term: test.term, ran: test.shows, at: process.Boottime()}
		if got := elapsed(test.byWall, then, ran, read); (got - test.want).Abs() > 300*time.Millisecond {
			t.Errorf("%s: %v, want %v", test.claim, got, test.want)
		}
	}
}

func TestWhatTheClockShowedIsReadBackFromALastLock(t *testing.T) {
	last := lease.Last{Last: record.Last{Completed: time.Now()}, Clock: "12/1h2m3.5s"}
	read, err := lease.ParseLast("", last.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if term, ran := stampedAt(read); term != 12 || ran != time.Hour+2*time.Minute+3500*time.Millisecond {
		t.Error(term, ran)
	}
	for _, text := range []string{"", "12", "12/", "12/soon", "x/1s", "-1/1s"} {
		if term, _ := stampedAt(lease.Last{Clock: text}); term != 0 {
			t.Errorf("%q: %d", text, term)
		}
	}
}
