package record

import (
	"testing"
	"time"

	"adlock/lib/limit"
	"adlock/lib/process"
)

func TestAPauseIsParsedAsItWasWritten(t *testing.T) {
	for _, p := range []Pause{NewPause(90*time.Minute, "disk \"sda\"\n"), NewPause(limit.Never, "")} {
		p.Since = p.Since.UTC().Round(0)
		if got, err := ParsePause(p.Bytes()); err != nil || got != p {
			t.Errorf("%+v, %v\nwant %+v", got, err, p)
		}
	}
	for _, text := range []string{"", "paused=now\n", "paused=2026-11-24T17:00:00Z\n"} {
		if p, err := ParsePause([]byte(text)); err == nil {
			t.Errorf("%q: %+v", text, p)
		}
	}
}

func TestAPauseFollowsTheBootClockWithinItsBoot(t *testing.T) {
	up := process.Boottime()
	for claim, c := range map[string]struct {
		change func(*Pause)
		on     bool
	}{
		"it has just begun":             {func(*Pause) {}, true},
		"it is over":                    {func(p *Pause) { p.boottime -= 2 * time.Hour }, false},
		"the clock was set back since":  {func(p *Pause) { p.Since = p.Since.Add(24 * time.Hour); p.boottime -= 2 * time.Hour }, false},
		"the clock was set ahead since": {func(p *Pause) { p.Since = p.Since.Add(-24 * time.Hour) }, true},
		"it began in an earlier boot":   {func(p *Pause) { p.boot, p.For = "another", 2*up+time.Hour }, true},
		"it ended in an earlier boot":   {func(p *Pause) { p.boot, p.Since = "another", p.Since.Add(-2*time.Hour) }, false},
		// Only a machine with an id recognises the earlier boot as its own.
		"it began by a clock that was a year ahead": {func(p *Pause) { p.boot, p.For, p.Since = "another", up/2, p.Since.AddDate(1, 0, 0) }, process.Here().Machine == ""},
		"it began on another machine": {func(p *Pause) {
			p.boot, p.machine, p.For, p.Since = "another", "another", up/2, p.Since.AddDate(1, 0, 0)
		}, true},
		"it began in another namespace": {func(p *Pause) { p.timeNS++; p.boottime -= 2 * time.Hour }, true},
		"it has no end":                 {func(p *Pause) { p.For, p.Since = limit.Never, p.Since.AddDate(-1, 0, 0) }, true},
		"there is none":                 {func(p *Pause) { *p = Pause{} }, false},
	} {
		p := NewPause(time.Hour, "")
		c.change(&p)
		if got := p.Policy(); got.On != c.on || p.For != limit.Never && got.Left != p.For-got.Age {
			t.Errorf("%s: %+v", claim, got)
		}
	}
}
