//go:build soak

package network

import (
	"strings"
	"syscall"
	"testing"

	"adlock/test/support/check"
	"adlock/test/support/helper"
	"adlock/test/support/must"
	"adlock/test/support/relay"
)

const forever = "while :; do sleep 0.1; done"

func TestAScriptThatLosesItsAtomReportsWhyOnce(t *testing.T) {
	signal := func(sig syscall.Signal) func(*testing.T, *host, *relay.Relay, scripted) {
		return func(t *testing.T, _ *host, _ *relay.Relay, s scripted) {
			must.Do(t, syscall.Kill(holderOf(t, s.pid), sig))
		}
	}
	for what, test := range map[string]struct {
		lose func(*testing.T, *host, *relay.Relay, scripted)
		said string
		lost bool // the runlog and the hook get it
	}{
		"its holder is killed":     {signal(syscall.SIGKILL), "the locksmith was killed", true},
		"its holder is terminated": {signal(syscall.SIGTERM), "ended by force: its adlock-locksmith was told to end", false},
		"it is cut off":            {func(_ *testing.T, _ *host, c *relay.Relay, _ scripted) { c.Cut() }, "no answer", true},
		"a newcomer ends it": {func(t *testing.T, b *host, _ *relay.Relay, _ scripted) {
			b.awaitExpired(t, "2s")
			b.run(t, "echo ran", "--expire-after=2s").Ran(t)
		}, "ended by force, as a newcomer asked for it", false},
	} {
		t.Run(what, func(t *testing.T) {
			cable, a, b := onCable(t)
			file := a.brief().notes(t)
			script := a.startScript(t, forever)
			test.lose(t, b, cable, script)
			var lines []string
			for line := range strings.Lines(script.said(t)) {
				if strings.HasPrefix(line, "adlock: ") {
					lines = append(lines, line)
				}
			}
			if len(lines) != 1 || !strings.Contains(lines[0], test.said) {
				t.Errorf("it said %q, want one line with %q", lines, test.said)
			}
			if !test.lost {
				return
			}
			helper.Eventually(t, "the record has it", func() bool { return strings.Count(a.runlog(), "event=lost") == 1 })
			if events := told(t, file, 1); len(events) != 1 || !strings.HasPrefix(events[0], "lost ") || !strings.Contains(events[0], test.said) {
				t.Errorf("the hook was told %q, want %q", events, test.said)
			}
		})
	}
}

// A process that reads a script's output need not wait for the holder of the script's lock.
func TestALocksmithDoesNotKeepItsScriptsStandardErrorOpen(t *testing.T) {
	h, _ := onEtcd(t)
	script := h.brief().startScript(t, forever)
	holder := holderOf(t, script.pid)
	must.Do(t, syscall.Kill(holder, syscall.SIGSTOP))
	t.Cleanup(func() { _ = syscall.Kill(holder, syscall.SIGCONT) })
	must.Do(t, syscall.Kill(script.pid, syscall.SIGKILL))
	if said := script.said(t); strings.Contains(said, "adlock: ") {
		t.Errorf("it said %q", said)
	}
}

// allRun starts so many waiting runs at once, waits for their success, and returns what they said.
func (h *host) allRun(t *testing.T, n int, job string, options ...string) (said string) {
	t.Helper()
	var runs []*helper.Process
	for range n {
		runs = append(runs, h.command(job, append(options, "--wait=60s")...).Start(t))
	}
	for _, p := range runs {
		p.Is(t, 0, "…")
		said += p.Output()
	}
	return said
}

// saysOnce fails the test unless one newcomer has said that it ended the owner.
func saysOnce(t *testing.T, owner *helper.Process, said string) {
	t.Helper()
	owner.Wait(t)
	if strings.Count(said, "ended process "+itoa(owner.PID)+" ") != 1 || strings.Count(said, "\n") != 1 {
		t.Errorf("said %q", said)
	}
}

// Several newcomers may ask an owner to make way. One of them becomes the next owner, and only it
// may report the ending.
func TestOnlyOneNewcomerReportsTheEndingOfAnOwner(t *testing.T) {
	onEachStore(t, func(t *testing.T, a, b *host) {
		a.env = append(a.env, "ADLOCK_PAUSE=5s") // between INT and TERM, so that the others ask too
		owner := a.start(t, "trap '' INT; "+ready+"sleep 60; sleep 60")
		b.awaitExpired(t, "10s") // FTP's clock is a question's length ahead at most
		saysOnce(t, owner, b.allRun(t, 3, "true", "--expire-after=10s"))
		if log := b.runlog(); strings.Count(log, "event=takeover ") != 1 || strings.Count(log, "event=expire ") < 2 {
			t.Errorf("the runlog has %s", log)
		}
	})
}

// The runlog has one end for each run: of several newcomers that find the owner dead, one stamps for it and logs that.
func TestOnlyOneNewcomerLogsTheDeathOfAnOwner(t *testing.T) {
	onEachStore(t, func(t *testing.T, a, b *host) {
		for round := range 3 {
			a.start(t, "sleep 60").Kill(t)
			check.Equal(t, "said", b.allRun(t, 3, "true"), "")
			check.Equal(t, "reclaims", strings.Count(b.runlog(), "event=reclaim "), round+1)
		}
	})
}
