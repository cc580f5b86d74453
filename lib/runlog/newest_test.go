package runlog

import (
	"slices"
	"strings"
	"testing"
	"time"

	"adlock/test/support/must"
)

func TestNewestComesFirstAndDamageIsPassedOver(t *testing.T) {
	l := &Log{Dir: folderOf(t), Host: testHost}
	for range l.Newest(1 << 20) {
		t.Error("an event of no record")
	}
	at := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	for pid := 1; pid <= 3; pid++ {
		must.Do(t, l.Append(Event{Kind: Deny, Time: at, Program: "p", PID: pid}))
	}
	addText(t, l.Path(), "\nno event\n\n")
	must.Do(t, l.Append(Event{Kind: Deny, Time: at, Program: "p", PID: 4}))
	newest := func(most int64) (pids []int) {
		for e := range l.Newest(most) {
			if e.Host != "dax" {
				t.Errorf("host %q", e.Host)
			}
			pids = append(pids, e.PID)
		}
		return pids
	}
	if got := newest(1 << 20); len(got) != 4 || got[0] != 4 || got[3] != 1 {
		t.Errorf("events of %v", got)
	}
	if got := newest(80); len(got) != 1 || got[0] != 4 {
		t.Errorf("of the last 80 bytes, which cut a line: events of %v", got)
	}
}

func TestNewestYieldsEachLineOnceWhereverItsPiecesBegin(t *testing.T) {
	for _, length := range []int{1, 100, firstPiece - 200, firstPiece, 3 * firstPiece} {
		l := &Log{Dir: folderOf(t), Host: testHost}
		const lines = 200
		for pid := 1; pid <= lines; pid++ {
			operand := strings.Repeat("a", length+pid%7)
			must.Do(t, l.Append(Event{Kind: Deny, Time: time.Unix(1, 0), Program: "p", Operand: operand, PID: pid}))
		}
		var pids, want []int
		for e := range l.Newest(1 << 30) {
			pids = append(pids, e.PID)
		}
		for pid := lines; pid > 0; pid-- {
			want = append(want, pid)
		}
		if !slices.Equal(pids, want) {
			t.Errorf("with %d bytes in a line: %v", length, pids)
		}
	}
}
