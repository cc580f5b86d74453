package etcd

import (
	"testing"
	"time"

	"adlock/lib/lease"
	"adlock/lib/process"
	"adlock/lib/record"
)

func TestElapsedIsByTheLeadersClockUnlessTheLeaderChanged(t *testing.T) {
	const then, ran = 7, 100 * time.Second
	for _, test := range []struct {
		claim       string
		byWall      time.Duration
		term        uint64 // the leader's term when the clock is read
		shows, want time.Duration
	}{
		{"clocks that agree to the second give the finer figure", 60400 * time.Millisecond, then, 161 * time.Second, 60400 * time.Millisecond},
		{"a machine's clock that is ahead is ignored", time.Hour, then, 160 * time.Second, time.Minute},
		{"a machine's clock that is behind is ignored", -time.Hour, then, 160 * time.Second, time.Minute},
		{"a negative figure from rounding counts as 0", -time.Hour, then, 99500 * time.Millisecond, 0},
		{"a leader's clock that was made again is ignored", time.Hour, then, 3 * time.Second, time.Hour},
		{"a leader's clock that cannot be read is ignored", time.Hour, 0, 0, time.Hour},
		{"an earlier leader's clock is ignored", time.Hour, then - 1, 500 * time.Second, time.Hour},
		{"under a new leader the machines' clocks count", time.Hour, then + 1, time.Minute, time.Hour},
		{"the figure is at least as long as the new leader has led", -time.Hour, then + 2, 61 * time.Second, time.Minute},
		{"under a new leader the figure is not negative", -time.Hour, then + 1, 0, 0},
	} {
		read := reading{term: test.term, ran: test.shows, at: process.Boottime()}
		if got := elapsed(test.byWall, then, ran, read); (got - test.want).Abs() > 300*time.Millisecond {
			t.Errorf("%s: %v, want %v", test.claim, got, test.want)
		}
	}
}

func TestALastLockKeepsTheLeadersClock(t *testing.T) {
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
