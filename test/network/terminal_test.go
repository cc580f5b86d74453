package network

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"adlock/test/support/helper"
	"adlock/test/support/need"
)

// onTerminal starts the command on a terminal of its own; the terminal's output is the
// process's.
func onTerminal(t testing.TB, c helper.Command) *helper.Process {
	t.Helper()
	need.Tools(t, "script")
	var words []string
	for _, word := range c.Args {
		words = append(words, "'"+strings.ReplaceAll(word, "'", `'\''`)+"'")
	}
	c.Env = append([]string{"TERM=vt100"}, c.Env...)
	c.Args = []string{"script", "-qec", "exec " + strings.Join(words, " "), "/dev/null"}
	return c.Start(t)
}

func shows(t testing.TB, p *helper.Process, pattern string) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("shown: %q", p.Output())
		}
	}()
	helper.Eventually(t, "the terminal shows "+pattern, func() bool { return regexp.MustCompile(pattern).MatchString(p.Output()) })
}

func TestAWaitersTerminalShowsTheOwner(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, a, b *host) {
		for expires, waits := range map[string]helper.Command{
			"; it expires in (59m|1h)": b.command("echo ran", "--wait=60s", "--expire-after=1h"),
			"":                         b.script("ADLOCK_WAIT=60s; adlock_get o x 0 && echo ran"),
		} {
			owner := a.start(t, "sleep 60")
			waiter := onTerminal(t, waits)
			shows(t, waiter, fmt.Sprintf(`o x: waiting for process %d on \S+: \d+s, at most [0-9ms]+ more`, owner.PID)+expires)
			stop(t, owner)
			waiter.Wait(t)
			rows := strings.Split(waiter.Output(), "\r\x1b[K")
			if left := rows[len(rows)-1]; len(rows) < 3 || left != "ran\r\n" {
				t.Errorf("left on the terminal: %q of %q", left, waiter.Output())
			}
		}
	})
}

func TestAnEndedJobElsewhereIsShownAtTheTerminal(t *testing.T) {
	t.Parallel()
	a, b := onEtcd(t)
	owner := a.start(t, "trap '' INT; "+ready+"sleep 60; sleep 60")
	waiter := onTerminal(t, b.command("echo ran", "--replace"))
	shows(t, waiter, fmt.Sprintf(`o x: process %d on \S+ was asked to end its job`, owner.PID))
	waiter.Wait(t)
	shows(t, waiter, `o x: ended process \d+ on \S+ by force`)
}

func TestADenialByAStoreAtATerminalNamesTheOwnersMachine(t *testing.T) {
	t.Parallel()
	a, b := onEtcd(t)
	owner := a.start(t, "sleep 60")
	denied := onTerminal(t, b.command("echo ran"))
	denied.Wait(t)
	const busy = `busy: running for \S+ on %s, no ExpireAfter`
	by := `; process ` + itoa(owner.PID) + ` on \S+, since [-0-9]{10} [0-9:]{8}; --wait D waits, --replace ends it`
	node, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		denied.Output():                       `^adlock: o x: ` + busy + by + `\r\n$`,
		b.run(t, "echo ran", "--verbose").Err: busy, b.run(t, "", "--dry-run").Out: busy,
		b.script("ADLOCK_VERBOSE=1; adlock_get o x").Run(t).Err: busy,
	} {
		if !regexp.MustCompile(fmt.Sprintf(want, node)).MatchString(text) {
			t.Errorf("said %q, want %s", text, want)
		}
	}
}
