package network

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"adlock/test/support/helper"
	"adlock/test/support/must"
	"adlock/test/support/terminal"
)

func TestAWaitersTerminalShowsTheOwner(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, a, b *host) {
		for expires, waits := range map[string]helper.Command{
			"; it expires in (59m|1h)": b.command("echo ran", "--wait=60s", "--expire-after=1h"),
			"":                         b.script("ADLOCK_WAIT=60s; adlock_get o x 0 && echo ran"),
		} {
			owner := a.start(t, "sleep 60")
			waiter := terminal.Start(t, 200, waits)
			waiter.Shows(t, fmt.Sprintf(`o x: waiting for process %d on \S+: \d+s, at most [0-9ms]+ more`, owner.PID)+expires)
			stop(t, owner)
			shown := waiter.AllShown(t)
			rows := strings.Split(shown, "\r\x1b[K")
			if left := rows[len(rows)-1]; len(rows) < 3 || left != "ran\r\n" {
				t.Errorf("left on the terminal: %q of %q", left, shown)
			}
		}
	})
}

func TestATerminalShowsTheEndingOfAJobOnAnotherHost(t *testing.T) {
	t.Parallel()
	a, b := onEtcd(t)
	owner := a.start(t, "trap '' INT; "+ready+"sleep 60; sleep 60")
	waiter := terminal.Start(t, 200, b.command("echo ran", "--replace"))
	waiter.Shows(t, fmt.Sprintf(`o x: process %d on \S+ was asked to end its job`, owner.PID))
	waiter.Shows(t, `o x: ended process \d+ on \S+ by force`)
}

func TestADenialAtATerminalNamesTheOwnersMachine(t *testing.T) {
	t.Parallel()
	a, b := onEtcd(t)
	owner := a.start(t, "sleep 60")
	denied := terminal.Start(t, 200, b.command("echo ran"))
	const busy = `busy: running for \S+ on %s, no ExpireAfter`
	by := `; process ` + itoa(owner.PID) + ` on \S+, since [-0-9]{10} [0-9:]{8}; --wait D waits, --replace ends it`
	node := must.Get(os.Hostname())(t)
	for text, want := range map[string]string{
		denied.AllShown(t):                    `^adlock: o x: ` + busy + by + `\r\n$`,
		b.run(t, "echo ran", "--verbose").Err: busy, b.run(t, "", "--dry-run").Out: busy,
		b.script("ADLOCK_VERBOSE=1; adlock_get o x").Run(t).Err: busy,
	} {
		if !regexp.MustCompile(fmt.Sprintf(want, node)).MatchString(text) {
			t.Errorf("said %q, want %s", text, want)
		}
	}
}
