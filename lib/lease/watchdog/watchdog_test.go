package watchdog

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/process"
	"adlock/lib/sysfile"
	"adlock/test/support/must"
)

// post returns the locksmith's end and the watchdog's end of a socket pair.
func post(t *testing.T) (*os.File, int) {
	t.Helper()
	ours, theirs, err := sysfile.SocketPair()
	must.Do(t, err)
	t.Cleanup(func() { unix.Close(theirs) })
	return os.NewFile(uintptr(ours), "watchdog"), theirs
}

func say(t *testing.T, line *os.File, text string) {
	t.Helper()
	must.Get(line.WriteString(text))(t)
}

func TestAStoppedWatchdogBlocksNoRenewalAndIsDismissed(t *testing.T) {
	ours, theirs := post(t)
	w := &Watchdog{line: ours}
	defer time.AfterFunc(time.Minute, func() { panic("the locksmith is blocked") }).Stop()
	for range 2000 { // more than the socket can hold
		w.Arm(1, time.Second)
	}
	w.Dismiss()
	if _, why := (&locksmith{line: theirs}).awaitTrouble(); why != nil {
		t.Errorf("it ends a job for orders that are too old: %v", why)
	}
}

func TestAWatchdogActsOnlyIfArmedAndNotDismissed(t *testing.T) {
	armed := order(process.Boottime()+time.Hour, time.Second)
	behind := strings.Repeat(order(1, 1), 2000) // unread, as the watchdog was stopped
	for said, pause := range map[string]time.Duration{
		armed + dismissal: 0, "": 0, armed: 4 * time.Second, behind + armed: 4 * time.Second, behind + dismissal: 0,
	} {
		g, line := post(t)
		say(t, g, said)
		g.Close()
		if got, why := (&locksmith{line: line}).awaitTrouble(); got != pause || (why != nil) != (pause > 0) {
			t.Errorf("%.60q: %v, pause %v", said, why, got)
		}
	}
}

// A locksmith that was only late at ending the job reports the ending. One that stood still, or died first,
// does not: then the watchdog does.
func TestAWatchdogStaysSilentOnlyIfItsLocksmithReports(t *testing.T) {
	for said, want := range map[string]bool{
		reporting + dismissal: true, dismissal: false, order(1, 1): false, "": false, reporting: false,
	} {
		g, line := post(t)
		say(t, g, said)
		heard := &locksmith{line: line, signalled: true}
		if said == reporting {
			g.Close() // it has died
		}
		if got := heard.reports(20 * time.Millisecond); got != want {
			t.Errorf("%q: %v", said, got)
		}
		g.Close()
		if (&locksmith{line: line}).reports(time.Minute) {
			t.Errorf("%q: a locksmith that is gone reports", said)
		}
	}
}

func TestAWatchdogEndsNothingOnceItsLocksmithReports(t *testing.T) {
	g, line := post(t)
	say(t, g, order(process.Boottime()+time.Hour, time.Second))
	heard := &locksmith{line: line}
	if heard.hasEnded() {
		t.Error("the job is over before its locksmith says so")
	}
	say(t, g, reporting)
	if _, why := heard.awaitTrouble(); why == nil || !heard.hasEnded() {
		t.Errorf("%v; the job is over: %v", why, heard.hasEnded())
	}
	go func() { // longer than it would wait for a locksmith that says nothing
		time.Sleep(50 * time.Millisecond)
		say(t, g, dismissal)
	}()
	if !heard.reports(time.Millisecond) {
		t.Error("it does not wait for the report")
	}
	if l := (&locksmith{line: line, dismissed: true}); !l.hasEnded() || !l.reports(0) {
		t.Error("it ends a script that has released, or reports that it did")
	}
}

func TestAWatchdogActsAtTheTimeOfItsLocksmithsLastOrder(t *testing.T) {
	g, line := post(t)
	say(t, g, order(process.Boottime()+time.Hour, time.Second))
	at := process.Boottime() + 50*time.Millisecond
	say(t, g, order(at, time.Millisecond)) // the last order counts
	pause, why := (&locksmith{line: line}).awaitTrouble()
	if why == nil || pause != time.Millisecond || process.Boottime() < at {
		t.Errorf("%v, pause %v, %v early", why, pause, at-process.Boottime())
	}
}

func TestIsThereIsFalseForAWatchdogThatDidNotStart(t *testing.T) {
	refused := errors.New("no more processes just now")
	w := &Watchdog{started: make(chan error, 1)}
	w.started <- refused
	if err := w.Ready(); !errors.Is(err, refused) || w.IsThere() {
		t.Errorf("%v; it is there: %v", err, w.IsThere())
	}
	w.Dismiss()
	var none *Watchdog
	if none.IsThere() {
		t.Error("none is there")
	}
	none.Dismiss()
}
