package lockdir

import (
	"errors"
	"os"
	"os/signal"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/fault"
	"adlock/lib/locker"
	"adlock/lib/policy"
	"adlock/lib/process"
	"adlock/lib/record"
	"adlock/lib/runlog"
	"adlock/test/support/helper"
	"adlock/test/support/must"
)

// hung is the record of an owner that has run for that long.
func hung(held time.Duration) record.Record {
	return record.Record{Atom: motd, Owner: process.Identity{PID: 8}, Token: record.NewToken(), ExpireAfter: time.Hour, Source: policy.Said, Monotonic: process.Monotonic() - held}
}

func TestANewcomerThatEndsAJobPrintsItsPidAndTheReason(t *testing.T) {
	k, r := newLocker(t), ask(process.Identity{PID: 7})
	own := hung(2 * time.Hour)
	v := locker.View{Record: own, Active: policy.Active{Held: true, Age: 2 * time.Hour}}
	want := "adlock: editfile /etc/motd: ended process 8 by force: it had run for 2h, ExpireAfter is 1h\n"
	if said := helper.Stderr(t, func() { k.Replaced(&r, policy.Expire, &v) }); said != want {
		t.Errorf("said %q, want %q", said, want)
	}
	if said := helper.Stderr(t, func() { k.Replaced(&r, policy.Reclaim, &v) }); said != "" {
		t.Errorf("for a dead owner it says %q", said)
	}
}

func TestASupervisorThatEndsItsJobPrintsTheReason(t *testing.T) {
	k := newLocker(t)
	r := locker.ReleaseRequest{Status: runlog.Some(124), Signal: "TERM", Expired: true}
	want := "adlock: editfile /etc/motd: ended by force: it had run for 2h, ExpireAfter is 1h\n"
	if said := helper.Stderr(t, func() { k.Released(r, hung(2*time.Hour), nil) }); said != want {
		t.Errorf("said %q, want %q", said, want)
	}
	r.Expired = false
	if said := helper.Stderr(t, func() { k.Released(r, hung(2*time.Hour), nil) }); said != "" {
		t.Errorf("for a job that failed it says %q", said)
	}
}

func TestAnEndedOwnerPrintsTheNewcomerAndTheReasonOnce(t *testing.T) {
	k, own := newLocker(t), hung(2*time.Hour)
	end := func() (said string) {
		return helper.Stderr(t, func() {
			if err := k.EndedByForce(locker.ReleaseRequest{}, own, 9); fault.KindOf(err) != fault.Denied || !errors.Is(err, locker.ErrGuarded) {
				t.Errorf("%v", err)
			}
		})
	}
	newcomer := ask(process.Identity{PID: 7})
	v := locker.View{Record: own, Active: policy.Active{Held: true, Age: 2 * time.Hour}}
	k.Expiring(&newcomer, &v)
	want := "adlock: editfile /etc/motd: ended by force by process 7: it had run for 2h, ExpireAfter is 1h\n"
	if said := end(); said != want {
		t.Errorf("said %q, want %q", said, want)
	}
	if said := end(); said != "" {
		t.Errorf("a second time it says %q", said)
	}
	own = hung(time.Minute) // another run, without an event in the runlog
	if said := end(); said != "adlock: editfile /etc/motd: ended by force by process 9\n" {
		t.Errorf("without an event it says %q", said)
	}
}

// The helper that releases for a script is signalled with the script.
func TestASignalledScriptsReleaseReportsTheEndingAtOnce(t *testing.T) {
	k, owner := newLocker(t), self(t)
	held := wantVerdict(t, k, ask(owner), locker.Acquired)
	active := openActive(t, k.Dir.Active, motdFiles)
	must.Do(t, active.Guard(0))
	stop := signalSelf(t)
	defer stop()
	begun := time.Now()
	said := helper.Stderr(t, func() {
		err := k.Release(locker.ReleaseRequest{Name: motdFiles, Token: held.Token, GuardWait: time.Hour, ForScript: true})
		if !errors.Is(err, locker.ErrGuarded) {
			t.Errorf("%v", err)
		}
	})
	if took := time.Since(begun); took > helper.Patience {
		t.Errorf("it took %v", took)
	}
	if !strings.Contains(said, "ended by force by process ") {
		t.Errorf("said %q", said)
	}
}

// signalSelf sends this process TERM repeatedly, as the test cannot know when the handler is set.
func signalSelf(t *testing.T) (stop func()) {
	t.Helper()
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, unix.SIGTERM)
	ticker := time.NewTicker(20 * time.Millisecond)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-ticker.C:
				_ = unix.Kill(os.Getpid(), unix.SIGTERM)
				<-heard
			case <-done:
				return
			}
		}
	}()
	return func() {
		ticker.Stop()
		close(done)
		signal.Stop(heard)
	}
}

// unlimited is a request without limits, for which an owner is overdue after a millisecond.
func unlimited(owner process.Identity) locker.Request {
	r := ask(owner)
	r.Limits, r.Notice = policy.Limits{}, time.Millisecond
	return r
}

func TestAnOverdueOwnerOfALockOrSlotInTheWayIsReportedOnce(t *testing.T) {
	for claim, c := range map[string]struct {
		holds, asks func(*locker.Request)
		want        locker.Verdict
	}{
		"the atom's own":       {want: locker.Busy},
		"a reader's":           {holds: func(r *locker.Request) { r.Shared = true }, want: locker.Busy},
		"a slot":               {holds: func(r *locker.Request) { r.Slots, r.Atom.Operand = 1, "other" }, asks: func(r *locker.Request) { r.Slots = 1 }, want: locker.Full},
		"while it is waited":   {asks: func(r *locker.Request) { r.Wait = 100 * time.Millisecond }, want: locker.Busy},
		"for a slot in a wait": {holds: func(r *locker.Request) { r.Slots, r.Atom.Operand = 1, "other" }, asks: func(r *locker.Request) { r.Slots, r.Wait = 1, 100*time.Millisecond }, want: locker.Full},
	} {
		k, owner, newcomer := newLocker(t), unlimited(sleeper(t)), unlimited(sleeper(t))
		for r, change := range map[*locker.Request]func(*locker.Request){&owner: c.holds, &newcomer: c.asks} {
			if change != nil {
				change(r)
			}
		}
		wantVerdict(t, k, owner, locker.Acquired)
		time.Sleep(2 * time.Millisecond)
		said := helper.Stderr(t, func() { wantVerdict(t, k, newcomer, c.want) })
		if strings.Count(said, "overdue: process ") != 1 || !strings.Contains(said, "adlock stop ") || !strings.Contains(said, string(owner.Atom.Name())) {
			t.Errorf("%s: said %q", claim, said)
		}
		if late := owner.Atom.Operator + " other is overdue: "; strings.Contains(said, late) != (c.want == locker.Full) {
			t.Errorf("%s: said %q, want the atom that is late", claim, said)
		}
		if said := helper.Stderr(t, func() { wantVerdict(t, k, newcomer, c.want) }); said != "" {
			t.Errorf("%s: said again %q", claim, said)
		}
	}
}

// A helper that the script runs has the script's standard error.
func TestAnAgentLeavesTheReportOfAnOverdueOwnerToAHelper(t *testing.T) {
	k := newLocker(t)
	wantVerdict(t, k, unlimited(sleeper(t)), locker.Acquired)
	time.Sleep(2 * time.Millisecond)
	asked := unlimited(sleeper(t))
	asked.AtOnce = true
	if _, err := k.Take(asked); !errors.Is(err, locker.ErrNotAtOnce) {
		t.Errorf("answered: %v", err)
	}
	asked.AtOnce = false
	helper.Stderr(t, func() { wantVerdict(t, k, asked, locker.Busy) })
	asked.AtOnce = true
	wantVerdict(t, k, asked, locker.Busy)
}
