package network

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"adlock/test/support/helper"
	"adlock/test/support/must"
)

// notes sets a hook that appends each event to a file, in one line.
func (h *host) notes(t testing.TB) (file string) {
	t.Helper()
	file = t.TempDir() + "/told"
	h.env = append(h.env, `ADLOCK_HOOK=echo "$ADLOCK_EVENT $ADLOCK_ATOM pid:$ADLOCK_PID owner:$ADLOCK_OWNER status:$ADLOCK_STATUS run:$ADLOCK_RUN: $ADLOCK_TEXT" >>`+file)
	return file
}

// told waits for that many events, and returns them sorted, as hooks may overtake each other.
func told(t testing.TB, file string, lines int) []string {
	t.Helper()
	return slices.Sorted(slices.Values(helper.Lines(t, file, lines)))
}

// are fails the test unless the lines begin and end as wanted.
func are(t testing.TB, lines []string, want ...[2]string) {
	t.Helper()
	ok := len(lines) == len(want)
	for i := 0; ok && i < len(want); i++ {
		ok = strings.HasPrefix(lines[i], want[i][0]) && strings.HasSuffix(lines[i], want[i][1])
	}
	if !ok {
		t.Errorf("told of %q, want %q", lines, want)
	}
}

func TestTheHookGetsOnlyFailedRunsUnlessHookRunsIsSet(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, h, _ *host) {
		file := h.notes(t)
		h.run(t, "exit 0").Is(t, 0, "…", "…")
		h.run(t, "exit 3").Is(t, 3, "…", "")
		are(t, told(t, file, 1), [2]string{"fail p.shared.o.x ", ": o x: failed with status 3"})
		must.Do(t, os.Remove(file))
		h.run(t, "exit 0", "--hook-runs").Is(t, 0, "…", "…")
		lines := told(t, file, 2)
		are(t, lines, [2]string{"start p.shared.o.x ", ": o x: started"}, [2]string{"success p.shared.o.x ", ": o x: succeeded"})
		run := regexp.MustCompile(` run:\S{36}: `)
		if started := run.FindString(lines[0]); started == "" || started != run.FindString(lines[1]) {
			t.Errorf("start and end are of one run: %q", lines)
		}
	})
}

func TestOwnerAndNewcomerReportAForcedEndingInAStore(t *testing.T) {
	t.Parallel()
	a, b := onEtcd(t)
	node := must.Get(os.Hostname())(t)
	victims, newcomers := a.notes(t), b.notes(t)
	owner := a.start(t, "sleep 60")
	next := b.run(t, "echo ran", "--replace")
	if next.Out != "ran\n" || !strings.HasPrefix(next.Err, "adlock: o x: ended process "+itoa(owner.PID)+" on "+node+" by force: it had run for ") {
		t.Errorf("the newcomer: %+v", next)
	}
	owner.Wait(t)
	if said := owner.Said(); !strings.HasPrefix(said, "adlock: o x: ended by force") || strings.Count(said, "\n") != 1 {
		t.Errorf("the victim said %q", said)
	}
	are(t, told(t, newcomers, 1), [2]string{"ended p.shared.o.x ", ", ExpireAfter is 0s"})
	are(t, told(t, victims, 1), [2]string{"fail p.shared.o.x ", ""})
}

func TestTheWatchdogReportsAnEndingToHookAndStandardError(t *testing.T) {
	t.Parallel()
	h, _ := onEtcd(t)
	file, errors := h.notes(t), t.TempDir()+"/errors"
	h.start(t, "exec 2>>"+errors+"; "+ready+"exec sleep 60").Signal(t, syscall.SIGKILL)
	const why = "o x: lost: the locksmith was killed: the watchdog ended the job"
	are(t, told(t, file, 1), [2]string{"lost p.shared.o.x ", ": " + why})
	helper.Eventually(t, "the job's standard error has it", func() bool {
		said, _ := os.ReadFile(errors)
		return string(said) == "adlock: "+why+"\n"
	})
}

// A job that is deaf to INT and TERM lives until shortly before its watchdog acts.
func TestTheLostLockOfAJobEndedByKILLIsReportedOnce(t *testing.T) {
	t.Parallel()
	cable, h, _ := onCable(t)
	file := h.notes(t)
	owner := h.start(t, "trap '' INT TERM; "+ready+"while :; do sleep 0.1; done")
	cable.Cut()
	status, said := owner.Wait(t), owner.Said()
	if status != 137 || !strings.HasPrefix(said, "adlock: o x: lost: ") || strings.Count(said, "\n") != 1 {
		t.Errorf("status %d, said %q", status, said)
	}
	are(t, told(t, file, 1), [2]string{"lost p.shared.o.x pid:" + itoa(owner.PID), ""})
	if log := h.runlog(); strings.Count(log, "event=lost ") != 1 {
		t.Errorf("the runlog has %s", log)
	}
}
