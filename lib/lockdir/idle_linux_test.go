package lockdir

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/idle"
	"adlock/lib/killer"
	"adlock/lib/locker"
	"adlock/lib/process"
	"adlock/lib/runlog"
	"adlock/test/support/helper"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

// watchFor sets the length of all watches in this test.
func watchFor(t *testing.T, d time.Duration) {
	t.Helper()
	shortest, longest := idle.Shortest, idle.Longest
	t.Cleanup(func() { idle.Shortest, idle.Longest = shortest, longest })
	idle.Shortest, idle.Longest = d, d
}

// late returns a locker, the request of a newcomer, and an owner that is past the learned limit of its atom.
func late(t *testing.T, script string) (*Locker, locker.Request, process.Identity) {
	t.Helper()
	k, owner := newLocker(t), start(t, script)
	complete(t, k, sleeper(t), 30, 10*time.Minute)
	wantVerdict(t, k, learner(owner), locker.Acquired)
	backdate(t, k, 2*time.Hour)
	dueNow(t, k)
	awaitAsleep(t, owner)
	return k, learner(sleeper(t)), owner
}

// awaitAsleep waits until the job sleeps: its start counts as work.
func awaitAsleep(t *testing.T, owner process.Identity) {
	t.Helper()
	helper.Eventually(t, "the owner sleeps", func() bool {
		members, err := killer.Members(process.Job{Owner: owner, FileUID: -1})
		return err == nil && len(members) > 0 && !slices.ContainsFunc(members, func(e process.Entry) bool {
			text, err := os.ReadFile("/proc/" + strconv.Itoa(e.PID) + "/stat")
			_, state, _ := strings.Cut(string(text), ") ")
			return err != nil || state[0] != 'S' || e.Command != "sleep" && len(members) == 1
		})
	})
}

// eventOf is the newest event of that kind.
func eventOf(t *testing.T, k *Locker, kind runlog.Kind) runlog.Event {
	t.Helper()
	for e := range k.Log.Newest(1 << 20) {
		if e.Kind == kind {
			return e
		}
	}
	t.Fatalf("no event %s", kind)
	return runlog.Event{}
}

func TestAnIdleOwnerPastItsLearnedLimitIsEnded(t *testing.T) {
	watchFor(t, time.Second)
	k, newcomer, owner := late(t, "sleep 60 & wait")
	said := helper.Stderr(t, func() { wantVerdict(t, k, newcomer, locker.Acquired) })
	want := ` by force: it had run for 2h(\d+s)?, past its learned limit of 33m12s and idle for \d+s\n$`
	if !regexp.MustCompile(want).MatchString(said) {
		t.Errorf("said %q", said)
	}
	for _, kind := range []runlog.Kind{runlog.Expire, runlog.Takeover} {
		if e := eventOf(t, k, kind); e.Idle < time.Second || e.Owner != owner.PID {
			t.Errorf("%s: idle for %s", kind, e.Idle)
		}
	}
	if isThere(k, "look."+motdFiles) {
		t.Error("the watch has left a file")
	}
}

func TestAnOwnerThatWorksOutlivesItsLearnedLimit(t *testing.T) {
	watchFor(t, 5*time.Second)
	k, newcomer, owner := late(t, "while sleep 0.2; do echo; done >/dev/null")
	said := helper.Stderr(t, func() {
		if o := wantVerdict(t, k, newcomer, locker.Busy); !strings.Contains(o.Reason, ", and it works (") {
			t.Errorf("denied: %s", o.Reason)
		}
	})
	if !strings.Contains(said, ": overdue, and works (") || !strings.Contains(said, "to end it: adlock stop ") || strings.Count(said, "\n") != 1 {
		t.Errorf("said %q", said)
	}
	if e := eventOf(t, k, runlog.Deny); e.Work == "" || owner.Life() != process.Alive {
		t.Errorf("%+v, the owner is %v", e, owner.Life())
	}
	if said := helper.Stderr(t, func() { wantVerdict(t, k, newcomer, locker.Busy) }); said != "" {
		t.Errorf("said again: %q", said)
	}
}

func TestAnExplicitLimitEndsAnOwnerThatWorks(t *testing.T) {
	watchFor(t, time.Hour)
	k, newcomer, _ := late(t, "while :; do sleep 0.1; done")
	said := helper.Stderr(t, func() { wantVerdict(t, k, ask(newcomer.Owner), locker.Acquired) })
	if !strings.Contains(said, "ExpireAfter is 1h") || strings.Contains(said, "idle") {
		t.Errorf("said %q", said)
	}
}

func TestNoOwnerIsWatchedBeforeItsLearnedLimit(t *testing.T) {
	watchFor(t, time.Hour)
	k, newcomer, _ := late(t, "exec sleep 60")
	backdate(t, k, 20*time.Minute)
	newcomer.AtOnce = true // an agent answers at once or not at all
	if o := wantVerdict(t, k, newcomer, locker.Busy); strings.Contains(o.Reason, "watch") {
		t.Errorf("denied: %s", o.Reason)
	}
	backdate(t, k, 2*time.Hour)
	if _, err := k.Take(newcomer); err != locker.ErrNotAtOnce {
		t.Errorf("an agent watches: %v", err)
	}
}

func TestOneNewcomerWatchesAndTheOthersAreDenied(t *testing.T) {
	watchFor(t, time.Hour)
	k, newcomer, owner := late(t, "exec sleep 60")
	done := turn(t, k)
	defer done()
	for _, r := range []locker.Request{newcomer, learner(sleeper(t))} {
		said := helper.Stderr(t, func() {
			if o := wantVerdict(t, k, r, locker.Busy); !strings.HasSuffix(o.Reason, "another newcomer watches whether it works") {
				t.Errorf("denied: %s", o.Reason)
			}
		})
		if said != "" || owner.Life() != process.Alive {
			t.Errorf("said %q, the owner is %v", said, owner.Life())
		}
	}
}

// turn begins a watch, as another newcomer may.
func turn(t *testing.T, k *Locker) (done func()) {
	t.Helper()
	done, _, err := idle.Turn(k.Dir.Fd(), "look."+motdFiles, func() bool { return false })
	if err != nil || done == nil {
		t.Fatalf("no turn: %v", err)
	}
	return done
}

// A watcher that is killed during its watch leaves its file. If that happens each time, no watcher ever ends the job.
func TestAnOwnerWhoseWatcherWasKilledIsReportedAsOverdue(t *testing.T) {
	watchFor(t, time.Second)
	k, newcomer, owner := late(t, "exec sleep 60")
	plantFile(t, k, "look."+motdFiles, "", time.Minute)
	said := helper.Stderr(t, func() { wantVerdict(t, k, newcomer, locker.Acquired) })
	overdue, ended, _ := strings.Cut(said, "\n")
	want := ": overdue: process " + strconv.Itoa(owner.PID) + " has run for 2h"
	if !strings.Contains(overdue, want) || !strings.Contains(overdue, ", its learned limit is 33m12s; ") ||
		!strings.Contains(ended, " by force: ") {
		t.Errorf("said %q, want %q", said, want)
	}
}

// If a stopped watcher kept others from watching, a hung job would never be ended or reported.
func TestAStoppedWatcherDoesNotKeepOthersFromWatching(t *testing.T) {
	need.Tools(t, "flock")
	watchFor(t, time.Second)
	k, newcomer, owner := late(t, "exec sleep 60")
	watcher := start(t, "exec flock '"+k.Dir.Path("look."+motdFiles)+"' sleep 60")
	eventually(t, "it watches", func() bool { return k.Dir.Watcher(motdFiles).PID == watcher.PID })
	foreseen := func(want string) {
		t.Helper()
		asked := newcomer
		if _, reason, err := inWords(k.DryRun(&asked)); err != nil || !strings.HasPrefix(reason, want) {
			t.Errorf("the dry run: %s, %v; want %s", reason, err, want)
		}
	}
	wantVerdict(t, k, newcomer, locker.Busy)
	foreseen("busy: ")
	stop(t, watcher)
	foreseen("expired: ")
	said := helper.Stderr(t, func() { wantVerdict(t, k, newcomer, locker.Acquired) })
	if owner.Life() == process.Alive || !regexp.MustCompile(`(?s): overdue: process .* and idle for `).MatchString(said) {
		t.Errorf("the owner is %v, said %q", owner.Life(), said)
	}
}

func TestATooLongWatchDoesNotKeepOthersFromWatching(t *testing.T) {
	watchFor(t, time.Second)
	k, newcomer, _ := late(t, "exec sleep 60")
	done := turn(t, k)
	defer done()
	wantVerdict(t, k, newcomer, locker.Busy)
	long := time.Now().Add(-2 * time.Minute)
	must.Do(t, os.Chtimes(k.Dir.Path("look."+motdFiles), long, long))
	helper.Stderr(t, func() { wantVerdict(t, k, newcomer, locker.Acquired) })
}

// watching starts a newcomer that watches an idle owner for an hour, and returns once it watches.
func watching(t *testing.T, k *Locker, r locker.Request) <-chan locker.Outcome {
	t.Helper()
	took := takes(t, k, r)
	eventually(t, "it watches", func() bool { return isThere(k, "look."+motdFiles) })
	return took
}

func TestAWatchEndsWhenTheOwnerReleases(t *testing.T) {
	watchFor(t, time.Hour)
	k, newcomer, owner := late(t, "exec sleep 60")
	newcomer.Auto.IfElapsed = false
	token := lockOf(t, k).Record.Token
	took := watching(t, k, newcomer)
	release(t, k, locker.Outcome{Token: token})
	wantTaken(t, took, locker.Acquired)
	wantLife(t, owner, process.Alive)
}

func TestAWatchEndsWhenTheOwnerDies(t *testing.T) {
	watchFor(t, time.Hour)
	k, newcomer, owner := late(t, "exec sleep 60")
	took := watching(t, k, newcomer)
	unix.Kill(owner.PID, unix.SIGKILL)
	// While the owner exits, it may be seen running, which counts as work.
	if o := wantTaken(t, took, locker.Acquired, locker.Busy); o.Verdict == locker.Busy {
		helper.Eventually(t, "the owner is dead", func() bool { return owner.Life() == process.Dead })
		wantVerdict(t, k, newcomer, locker.Acquired)
	}
	if e := eventOf(t, k, runlog.Reclaim); e.Owner != owner.PID {
		t.Errorf("reclaimed from %d", e.Owner)
	}
}

// Meanwhile another newcomer, with an explicit limit, ends the owner and takes the atom.
func TestAWatchDoesNotEndTheNextOwner(t *testing.T) {
	watchFor(t, time.Hour)
	k, newcomer, _ := late(t, "exec sleep 60")
	newcomer.Auto.IfElapsed = false
	took := watching(t, k, newcomer)
	second := ask(sleeper(t))
	helper.Stderr(t, func() { wantVerdict(t, k, second, locker.Acquired) })
	if o := wantTaken(t, took, locker.Busy); second.Owner.Life() != process.Alive || strings.Contains(o.Reason, "watch") {
		t.Errorf("the second owner is %v; %s", second.Owner.Life(), o.Reason)
	}
}

// The result of a watch is about one acquisition, and holds only for a moment.
func TestOnlyTheOwnerThatWasWatchedMayBeEnded(t *testing.T) {
	watchFor(t, time.Second)
	k, newcomer, owner := late(t, "exec sleep 60")
	dropped := false
	outcome, err := k.WatchFirst(&newcomer, k.Dir.Fd(), func() (locker.Outcome, error) {
		v := view{}
		d, err := k.look(&v, &newcomer, motdFiles, newcomer.Clock(time.Now()), first)
		if err != nil {
			return locker.Outcome{}, err
		}
		defer v.close()
		switch {
		case !newcomer.MayEnd(&v.View):
			return locker.Outcome{}, k.late(&newcomer, &v, d)
		case !dropped:
			dropped = true
			v.Record.Token = strings.Repeat("0", 32)
			if newcomer.MayEnd(&v.View) {
				t.Error("another owner may be ended")
			}
		}
		return locker.Outcome{Verdict: locker.Busy}, nil
	})
	if err != nil || outcome.Verdict != locker.Busy || !dropped || owner.Life() != process.Alive {
		t.Errorf("%+v, %v", outcome, err)
	}
}

func TestAWaitingNewcomerEndsAnOwnerThatFallsIdle(t *testing.T) {
	watchFor(t, time.Second)
	flag := t.TempDir() + "/works"
	must.Do(t, os.WriteFile(flag, nil, 0o600))
	k, newcomer, _ := late(t, "while [ -e '"+flag+"' ]; do sleep 0.1; done; exec sleep 600")
	newcomer.Wait = 5 * time.Minute
	helper.Stderr(t, func() {
		took := takes(t, k, newcomer)
		eventually(t, "it has seen the owner work", func() bool {
			return slices.ContainsFunc(slices.Collect(k.Log.Newest(1<<20)), func(e runlog.Event) bool { return e.Work != "" })
		})
		must.Do(t, os.Remove(flag))
		wantTaken(t, took, locker.Acquired)
	})
}

func TestAWriterHoldsNoLockWhileItWatchesAReader(t *testing.T) {
	watchFor(t, time.Second)
	k := newLocker(t)
	complete(t, k, sleeper(t), 30, 10*time.Minute)
	reader := sharing(learner(sleeper(t)))
	wantVerdict(t, k, reader, locker.Acquired)
	awaitAsleep(t, reader.Owner)
	backdateFile(t, k, readerLock(reader.Owner).String(), 2*time.Hour)
	dueNow(t, k)
	helper.Stderr(t, func() {
		took := watching(t, k, learner(sleeper(t)))
		if isThere(k, motdLock.String()) {
			t.Error("it holds the atom while it watches")
		}
		wantTaken(t, took, locker.Acquired)
	})
	wantLife(t, reader.Owner, process.Dead)
}
