package lockdir

import (
	"testing"
	"time"

	"adlock/lib/locker"
	"adlock/lib/process"
	"adlock/test/support/must"
)

// replacing is a request that was made that long ago, and that replaces the owner.
func replacing(owner process.Identity, ago time.Duration) locker.Request {
	r := ask(owner)
	r.Limits.ExpireAfter, r.Asked = 0, process.Boottime()-ago
	return r
}

func TestAnOwnerWithALaterRequestIsNotReplaced(t *testing.T) {
	for _, waited := range []bool{false, true} {
		for _, shared := range []bool{false, true} {
			k, owner, newcomer := newLocker(t), replacing(sleeper(t), time.Minute), replacing(sleeper(t), 0)
			owner.Shared = shared
			if waited {
				owner.WaitSince = owner.Asked
			}
			wantVerdict(t, k, owner, locker.Acquired)
			older := replacing(newcomer.Owner, time.Hour)
			if o := wantVerdict(t, k, older, locker.Busy); !o.Endless || owner.Owner.Life() != process.Alive {
				t.Errorf("waited %v: %+v", waited, o)
			}
			wantVerdict(t, k, newcomer, locker.Acquired)
			if owner.Owner.Life() != process.Dead {
				t.Errorf("waited %v: the older owner lives", waited)
			}
		}
	}
}

// Boot times of another time namespace cannot be compared.
func TestRequestsOfTwoTimeNamespacesAreOrderedByWallClock(t *testing.T) {
	for ago, older := range map[time.Duration]bool{time.Hour: true, 0: false} {
		r := replacing(sleeper(t), ago)
		own := replacing(r.Owner, 0)
		record := own.Record()
		record.Owner.TimeNS++
		if got := r.IsOlder(record, time.Minute); got != older {
			t.Errorf("%v ago: %v", ago, got)
		}
	}
}

// The newer start takes the atom, runs and releases it, or leaves it to the older one.
func TestAnOlderReplaceRequestNeverRunsAfterANewerOne(t *testing.T) {
	one, two := sleeper(t), sleeper(t)
	wantVerdicts(t, atEach(t, anyStep, func(k *Locker) (func() (locker.Verdict, error), func() error) {
		older, newer, ran := replacing(one, time.Second), replacing(two, 0), false
		newer.LeaveExpired = true
		return func() (locker.Verdict, error) {
				outcome, err := k.Take(older)
				if outcome.Verdict == locker.Acquired && ran {
					t.Error("it did")
				}
				return outcome.Verdict, err
			}, func() error {
				outcome, err := k.Take(newer)
				if outcome.Verdict != locker.Acquired {
					return err
				}
				ran = true
				return k.Release(locker.ReleaseRequest{Name: motd.Name(), Token: outcome.Token})
			}
	}), locker.Acquired, locker.Busy)
}

func TestAnOwnerThatEnforcesItsOwnLimitIsReplacedAtOnce(t *testing.T) {
	k, owner := newLocker(t), ask(sleeper(t))
	owner.Patience = time.Hour
	wantVerdict(t, k, owner, locker.Acquired)
	wantVerdict(t, k, replacing(sleeper(t), 0), locker.Acquired)
}

func TestANewcomerThatReplacesWaitsForTheGuard(t *testing.T) {
	k, owner, newcomer := newLocker(t), replacing(sleeper(t), time.Hour), replacing(sleeper(t), 0)
	wantVerdict(t, k, owner, locker.Acquired)
	other := takeGuard(t, k, motdFiles)
	took := takes(t, k, newcomer)
	select {
	case o := <-took:
		t.Fatalf("%s, although the guard is held", o.Verdict)
	case <-time.After(2 * guardWait):
	}
	if granted, reason, err := inWords(k.DryRun(&newcomer)); err != nil || !granted {
		t.Errorf("a dry run says %q (%v)", reason, err)
	}
	withGrace(t, guardWait/2)
	newcomer.Pause = 0
	wantVerdict(t, k, newcomer, locker.Busy) // the guard is held for longer than an ending takes
	must.Do(t, other.Close())
	wantTaken(t, took, locker.Acquired)
	wantLife(t, owner.Owner, process.Dead)
}
