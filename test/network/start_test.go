package network

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"adlock/lib/limit"
	"adlock/test/support/helper"
)

// A run waits in line; then it is asked how long ago it started: the wait counts.
func TestTheStartUnderAStoreIsWhenTheRunWasAskedFor(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, a, b *host) {
		owner := a.start(t, "sleep 60")
		waiter := b.command("true", "--wait=60s", "--from-start").Start(t)
		helper.Eventually(t, "it waits", func() bool { return strings.Contains(b.runlog(), "event=wait") })
		const waited = 4 * time.Second
		time.Sleep(waited) // the wait that must be counted
		stop(t, owner)
		endsWith(t, waiter, 0, "")
		told := b.run(t, "", "--from-start", "--if-elapsed=1h", "--dry-run")
		age := regexp.MustCompile(`^too soon: started (\S+) ago`).FindStringSubmatch(told.Out)
		if age == nil {
			t.Fatalf("%+v", told)
		}
		if ago, err := limit.Parse(age[1]); err != nil || ago < waited-time.Second {
			t.Errorf("said %q of a run that was asked for more than %v ago", told.Out, waited)
		}
	})
}
