package watchdog

import (
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/process"
	"adlock/lib/sysfile"
)

// post returns both ends of a socket pair: the locksmith's end, and the watchdog's.
func post(t *testing.T) (*os.File, int) {
	t.Helper()
	ours, theirs, err := sysfile.SocketPair()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(theirs) })
	return os.NewFile(uintptr(ours), "watchdog"), theirs
}

func say(t *testing.T, line *os.File, text string) {
	t.Helper()
	if _, err := line.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

func TestAWatchdogThatIsDismissedDoesNothing(t *testing.T) {
	g, line := post(t)
	say(t, g, order(process.Boottime()+time.Hour, time.Second))
	say(t, g, dismissal)
	g.Close()
	if _, why := awaitTrouble(line); why != nil {
		t.Error(why)
	}
}

func TestAWatchdogThatWasNeverArmedDoesNothing(t *testing.T) {
	g, line := post(t)
	g.Close()
	if _, why := awaitTrouble(line); why != nil {
		t.Error(why)
	}
}

func TestAWatchdogActsWhenItsLocksmithIsGone(t *testing.T) {
	g, line := post(t)
	say(t, g, order(process.Boottime()+time.Hour, time.Second))
	g.Close()
	pause, why := awaitTrouble(line)
	if why == nil || pause != 4*time.Second {
		t.Errorf("%v, pause %v", why, pause)
	}
}

// A locksmith that was only late at ending the job reports the ending; one that stood still does
// not.
func TestOneEndingIsReportedOnce(t *testing.T) {
	for said, want := range map[string]bool{reporting + dismissal: true, dismissal: false, order(1, 1): false, "": false} {
		g, line := post(t)
		say(t, g, said)
		if got := reports(line, 20*time.Millisecond); got != want {
			t.Errorf("%q: %v", said, got)
		}
		g.Close()
		if reports(line, time.Minute) {
			t.Errorf("%q: a locksmith that is gone reports", said)
		}
	}
}

func TestAWatchdogActsInTimeWhenItsLocksmithIsSilent(t *testing.T) {
	g, line := post(t)
	say(t, g, order(process.Boottime()+time.Hour, time.Second))
	at := process.Boottime() + 50*time.Millisecond
	say(t, g, order(at, time.Millisecond)) // the last order counts
	pause, why := awaitTrouble(line)
	if why == nil || pause != time.Millisecond || process.Boottime() < at {
		t.Errorf("%v, pause %v, %v early", why, pause, at-process.Boottime())
	}
}
