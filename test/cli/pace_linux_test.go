package cli

import (
	"strings"
	"testing"
	"time"

	"adlock/lib/runlog"
)

const everySecond = "counts from completion: every second start is denied; --from-start (ADLOCK_FROM_START=1) counts from the start"

// asked writes a history in which the atom was asked for regularly, up to now, and ran every
// second time. It completed half a period ago.
func (s *stage) asked(every time.Duration) {
	s.Helper()
	s.want(0, job("true")...)
	s.aged(s.lastOf("a"), every/2)
	for first, err := range runlog.Read(s.locks, host) { // the acquisition of that run
		must(s, err)
		for n := 6; n > 0; n-- {
			e := first
			e.Time = time.Now().Add(-time.Duration(n) * every)
			if n%2 == 0 {
				e.Kind, e.Token, e.Verdict = runlog.Deny, "", "too-soon"
			}
			must(s, (&runlog.Log{Dir: s.locks, Host: host}).Append(e))
		}
		return
	}
}

func TestADryRunAndADenialWarnOfAnIntervalAsLongAsThePeriod(t *testing.T) {
	s := newStage(t)
	s.asked(time.Hour)
	for _, words := range [][]string{{"--dry-run"}, {"--verbose"}} {
		r := s.adlock(job(append(words, "--if-elapsed", "1h", "true")...)...)
		if r.Status != 75 || !strings.Contains(r.Out+r.Err, "too soon: completed 3") || strings.Count(r.Out+r.Err, everySecond) != 1 {
			t.Errorf("%q: %+v", words, r)
		}
	}
	for claim, words := range map[string][]string{
		"it is cured":         {"--verbose", "--from-start", "--if-elapsed", "1h", "true"},
		"it is meant":         {"--verbose", "--if-elapsed", "15h", "true"},
		"no process reads it": {"--if-elapsed", "1h", "true"},
	} {
		if r := s.adlock(job(words...)...); strings.Contains(r.Err, "every second start") {
			t.Errorf("%s: %+v", claim, r)
		}
	}
}
