package lockdir

import (
	"errors"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/locker"
	"adlock/lib/process"
	"adlock/lib/record"
	"adlock/lib/runlog"
	"adlock/lib/sysfile"
	"adlock/test/support/helper"
	"adlock/test/support/intercept"
	"adlock/test/support/must"
)

// meanwhile runs do, and calls act, for another process, before the n-th call of that number that
// reaches the lock directory; met is false if there are fewer.
func meanwhile(t *testing.T, k *Locker, call, n int, do, act func()) (met bool) {
	t.Helper()
	watched(t, k, call, do, func() unix.Errno {
		if n--; n == 0 {
			met = true
			act()
		}
		return 0
	})
	return met
}

// atTry calls do, and calls act before the n-th flock(2) that do makes on the file: the second
// flock on a file is made by a process that waits for it.
func atTry(t *testing.T, path string, n int, do, act func()) {
	t.Helper()
	intercept.Run(t, do, func(c intercept.Call) unix.Errno {
		if at, _ := os.Readlink("/proc/self/fd/" + strconv.Itoa(c.FD(0))); at == path && c.FD(1) != unix.LOCK_UN {
			if n--; n == 0 {
				act()
			}
		}
		return 0
	}, unix.SYS_FLOCK)
}

// atEach prepares, runs do, and lets the other process act, again and again: before the first of these system calls
// that reaches the lock directory, before the second, and so on. It counts the verdicts.
func atEach(
	t *testing.T, calls string, prepare func(*Locker) (do func() (locker.Verdict, error), act func() error),
) map[locker.Verdict]int {
	t.Helper()
	verdicts := map[locker.Verdict]int{}
	for _, call := range strings.Fields(calls) {
		for n, met := 1, true; met; n++ {
			k := unlogged(t)
			do, act := prepare(k)
			var verdict locker.Verdict
			var err, failed error
			met = meanwhile(t, k, reaching[call], n, func() { verdict, err = do() }, func() { failed = act() })
			if err != nil || failed != nil {
				t.Errorf("before %s %d: %v; the other: %v", call, n, err, failed)
			}
			if met {
				verdicts[verdict]++
			}
			if open := openFiles(t, k); open > 1 {
				t.Errorf("before %s %d: %d files are left open", call, n, open-1)
			}
		}
	}
	return verdicts
}

// anyhow makes a request, whatever its verdict.
func anyhow(k *Locker, r locker.Request) func() error {
	return func() error { _, err := k.Take(r); return err }
}

// between runs two newcomers, and counts those that take their atoms.
func between(
	k *Locker, one, other locker.Request, judge func(taken int),
) (do func() (locker.Verdict, error), act func() error) {
	taken := 0
	count := func(r locker.Request) (locker.Verdict, error) {
		outcome, err := k.Take(r)
		if outcome.Verdict == locker.Acquired {
			taken++
		}
		return outcome.Verdict, err
	}
	return func() (locker.Verdict, error) {
		verdict, err := count(one)
		judge(taken)
		return verdict, err
	}, func() error { _, err := count(other); return err }
}

// anyStep names the system calls that change the lock directory, or read what was changed there.
const anyStep = "openat flock linkat renameat unlinkat"

// wantVerdicts wants each of these verdicts to have occurred, and no other.
func wantVerdicts(t *testing.T, got map[locker.Verdict]int, want ...locker.Verdict) {
	t.Helper()
	if list := slices.Sorted(maps.Keys(got)); !slices.Equal(list, want) {
		t.Errorf("verdicts are %v, want %v", got, want)
	}
}

func verdictOf(k *Locker, r locker.Request) func() (locker.Verdict, error) {
	return func() (locker.Verdict, error) {
		outcome, err := k.Take(r)
		return outcome.Verdict, err
	}
}

// ignoreGuarded drops ErrGuarded: a process that gets this error may try again.
func ignoreGuarded(err error) error {
	if errors.Is(err, locker.ErrGuarded) {
		return nil
	}
	return err
}

func pidLine(id process.Identity) string { return strconv.Itoa(id.PID) + "\n" }

// Without a second look two newcomers would run the atom back to back.
func TestIfElapsedDeniesANewcomerAfterAConcurrentRelease(t *testing.T) {
	owner, newcomer, gone := sleeper(t), sleeper(t), dead(t)
	for _, c := range []struct {
		held, asked, corpse bool // as a reader; a writer has died before it looked for readers
		want                []locker.Verdict
	}{
		{false, false, false, []locker.Verdict{locker.TooSoon}},
		{true, false, false, []locker.Verdict{locker.Busy, locker.TooSoon}},
		{false, true, false, []locker.Verdict{locker.TooSoon}},
		{true, true, false, []locker.Verdict{locker.Acquired, locker.TooSoon}}, // both read at the same time
		{true, false, true, []locker.Verdict{locker.Busy, locker.TooSoon}},
	} {
		wantVerdicts(t, atEach(t, anyStep, func(k *Locker) (func() (locker.Verdict, error), func() error) {
			holder, r := limited(owner), limited(newcomer)
			holder.Shared, r.Shared = c.held, c.asked
			held := wantVerdict(t, k, holder, locker.Acquired)
			if c.corpse {
				plant(t, k, pidLine(gone), 0)
			}
			return verdictOf(k, r), releasing(k, held)
		}), c.want...)
	}
}

func TestAStampCountsThoughANewcomerMakesTheLastLockAnew(t *testing.T) {
	owner, newcomer := sleeper(t), sleeper(t)
	wantVerdicts(t, atEach(t, anyStep, func(k *Locker) (func() (locker.Verdict, error), func() error) {
		held := wantVerdict(t, k, limited(owner), locker.Acquired)
		must.Do(t, k.Dir.RemoveLast(motdFiles))
		return func() (locker.Verdict, error) {
			must.Do(t, releaseOf(k, held))
			return verdictOf(k, limited(newcomer))()
		}, func() error { return k.Dir.MakeLast(motdFiles, record.Memory{}) }
	}), locker.TooSoon)
}

func TestOneOfTwoNewcomersTakesADeadOwnersAtom(t *testing.T) {
	gone, one, two := dead(t), sleeper(t), sleeper(t)
	for _, shared := range []bool{false, true} {
		// limit is that of the second newcomer; with 1 the first has expired, and the second leaves it alone.
		for _, limit := range []time.Duration{time.Hour, 1} {
			wantVerdicts(t, atEach(t, anyStep, func(k *Locker) (func() (locker.Verdict, error), func() error) {
				corpse, other := ask(gone), ask(two)
				corpse.Shared = shared
				other.Limits.ExpireAfter, other.LeaveExpired = limit, true
				wantVerdict(t, k, corpse, locker.Acquired)
				return between(k, ask(one), other, func(taken int) {
					if taken != 1 {
						t.Errorf("%d took the atom", taken)
					}
				})
			}), locker.Acquired, locker.Busy)
		}
	}
}

func TestAReaderMayHaveThePidOfADeadReader(t *testing.T) {
	owner, gone, other := sleeper(t), dead(t), sleeper(t)
	gone.PID = owner.PID
	for _, slots := range []int{0, 1} {
		atEach(t, anyStep, func(k *Locker) (func() (locker.Verdict, error), func() error) {
			wantVerdict(t, k, sharing(slotted(gone, motd.Operand, slots)), locker.Acquired)
			return func() (locker.Verdict, error) {
				outcome, err := k.Take(sharing(slotted(owner, motd.Operand, slots)))
				if outcome.Verdict == locker.Acquired {
					wantLocks(t, k, 1)
				}
				return outcome.Verdict, err
			}, anyhow(k, ask(other)) // the other clears the dead reader's lock, and may do so first
		})
	}
}

// A newcomer that takes the atom has a slot, and the released one is gone: one slot is taken.
func TestANewcomerTakesAConcurrentlyReleasedSlotOrIsDeniedAsFull(t *testing.T) {
	one, two := sleeper(t), sleeper(t)
	wantVerdicts(t, atEach(t, anyStep, func(k *Locker) (func() (locker.Verdict, error), func() error) {
		held := wantVerdict(t, k, slotted(one, motd.Operand, 1), locker.Acquired)
		return func() (locker.Verdict, error) {
			verdict, err := verdictOf(k, slotted(two, "other", 1))()
			if verdict == locker.Acquired && slotsLeft(k) != 1 {
				t.Errorf("it runs, and %d slots are taken", slotsLeft(k))
			}
			return verdict, err
		}, releasing(k, held)
	}), locker.Acquired, locker.Full)
}

func TestAtMostOneOfTwoNewcomersTakesADeadOwnersSlot(t *testing.T) {
	gone, one, two := dead(t), sleeper(t), sleeper(t)
	wantVerdicts(t, atEach(t, anyStep, func(k *Locker) (func() (locker.Verdict, error), func() error) {
		wantVerdict(t, k, slotted(gone, "gone", 1), locker.Acquired)
		return between(k, slotted(one, "one", 1), slotted(two, "two", 1), func(taken int) {
			if taken > 1 {
				t.Error("both run")
			}
		})
	}), locker.Acquired, locker.Full)
}

// The owner of an unused slot may want it for another atom while a stranger takes it.
func TestOnlyOneOfOwnerAndStrangerTakesAnUnusedSlot(t *testing.T) {
	owner, stranger := sleeper(t), sleeper(t)
	for _, ownerFirst := range []bool{false, true} {
		wantVerdicts(t, atEach(t, "flock linkat renameat", func(k *Locker) (func() (locker.Verdict, error), func() error) {
			outer := slotted(owner, "outer", 1)
			wantVerdict(t, k, outer, locker.Acquired)
			must.Do(t, os.Remove(k.Dir.Path(outer.Atom.Name().ActiveLock())))
			first, second := slotted(stranger, "other", 1), slotted(owner, "inner", 1)
			if ownerFirst {
				first, second = second, first
			}
			var meanwhile locker.Verdict
			return func() (locker.Verdict, error) {
					verdict, err := verdictOf(k, first)()
					if verdict == meanwhile {
						t.Errorf("both are told %s", verdict)
					}
					return verdict, err
				}, func() (err error) {
					meanwhile, err = verdictOf(k, second)()
					return err
				}
		}), locker.Acquired, locker.Full)
	}
}

// One helper of an owner may have been called from a trap, in the middle of another helper's run.
func TestTwoReleasesOfOneOwnerLeaveNoSlotTaken(t *testing.T) {
	owner, stranger := sleeper(t), slotted(sleeper(t), "other", 1)
	for _, shared := range []bool{false, true} {
		atEach(t, "flock unlinkat", func(k *Locker) (func() (locker.Verdict, error), func() error) {
			nested, held := nest(t, k, shared, slotted(owner, "outer", 2), slotted(owner, "inner", 2))
			released := 0
			release := func(i int) error {
				err := k.Release(locker.ReleaseRequest{Name: nested[i].Atom.Name(), Token: held[i].Token})
				if err == nil {
					released++
				}
				if granted, _, failed := inWords(k.DryRun(&stranger)); released == 2 && !granted {
					t.Errorf("a slot is left taken: %v", failed)
				}
				return err
			}
			return func() (locker.Verdict, error) { return "", release(0) }, func() error { return ignoreGuarded(release(1)) }
		})
	}
}

// Meanwhile a person has cleared the lock, and another owner has taken the atom.
func TestAReleaseIsLostIfAnotherOwnerTookTheAtomMeanwhile(t *testing.T) {
	k, other := newLocker(t), ask(sleeper(t))
	held := wantVerdict(t, k, ask(sleeper(t)), locker.Acquired)
	var err error
	met := meanwhile(t, k, unix.SYS_FLOCK, 1, func() { err = releaseOf(k, held) }, func() {
		must.Do(t, os.Remove(k.Dir.Path(motdLock.String())))
		wantVerdict(t, k, other, locker.Acquired)
	})
	if !met || fault.KindOf(err) != fault.Denied {
		t.Errorf("met %v: %v", met, err)
	}
	if !lockOf(t, k).Record.Owner.Same(other.Owner) {
		t.Error("the other's lock is gone")
	}
}

func TestASlotIsReleasedWhileItsOwnerReleasesAnotherLock(t *testing.T) {
	owner := sleeper(t)
	for i, third := range []string{"", "", "v", "w", "x", "y", "z"} { // listed before the others, or after
		shared, want := i == 0, min(len(third), 1)
		atEach(t, "openat", func(k *Locker) (func() (locker.Verdict, error), func() error) {
			outer, inner := slotted(owner, "outer", 1), slotted(owner, "inner", 0)
			inner.Shared = shared
			held, other := wantVerdict(t, k, outer, locker.Acquired), wantVerdict(t, k, inner, locker.Acquired)
			if third != "" {
				wantVerdict(t, k, slotted(owner, third, 1), locker.Acquired)
			}
			return func() (locker.Verdict, error) {
				err := k.Release(locker.ReleaseRequest{Name: outer.Atom.Name(), Token: held.Token})
				if slotsLeft(k) != want {
					t.Errorf("%d slots are left, want %d", slotsLeft(k), want)
				}
				return "", err
			}, func() error { return k.Release(locker.ReleaseRequest{Name: inner.Atom.Name(), Token: other.Token}) }
		})
	}
}

func TestAJobWhoseLockIsReleasedMeanwhileIsNotBeingEnded(t *testing.T) {
	owner := sleeper(t)
	for _, shared := range []bool{false, true} {
		atEach(t, anyStep, func(k *Locker) (func() (locker.Verdict, error), func() error) {
			r := ask(owner)
			r.Shared = shared
			held := wantVerdict(t, k, r, locker.Acquired)
			return func() (locker.Verdict, error) {
				ending, err := k.BeingEnded(motdFiles, held.Token)
				if ending {
					t.Error("it is reported as being ended")
				}
				return "", errors.Join(err, k.RecordCommand(motdFiles, held.Token, owner))
			}, releasing(k, held)
		})
	}
}

func TestALockMayBeReleasedWhileItIsListed(t *testing.T) {
	owner := sleeper(t)
	atEach(t, anyStep, func(k *Locker) (func() (locker.Verdict, error), func() error) {
		held := wantVerdict(t, k, ask(owner), locker.Acquired)
		return func() (locker.Verdict, error) {
			entries, err := k.List()
			if len(entries) != 1 || entries[0].Err != nil {
				t.Errorf("%+v", entries)
			}
			return "", err
		}, releasing(k, held)
	})
}

func TestAnAtomThatVanishesIsNotListedAsNeverCompleted(t *testing.T) {
	owner, times := sleeper(t), map[int]int{}
	atEach(t, "openat", func(k *Locker) (func() (locker.Verdict, error), func() error) {
		completed(t, k, owner)
		return func() (locker.Verdict, error) {
			entries, err := k.List()
			if times[len(entries)]++; len(entries) > 0 && entries[0].Completed.IsZero() {
				t.Errorf("%+v", entries[0])
			}
			return "", err
		}, func() error { return k.Dir.RemoveLast(motdFiles) }
	})
	if times[0] == 0 || times[1] == 0 {
		t.Errorf("lists by their number of entries: %v", times)
	}
}

func TestAnAtomThatIsTakenMeanwhileIsNotPruned(t *testing.T) {
	owner := sleeper(t)
	atEach(t, anyStep, func(k *Locker) (func() (locker.Verdict, error), func() error) {
		completed(t, k, owner)
		var taken locker.Verdict
		return func() (locker.Verdict, error) {
				pruned, err := k.Prune(0)
				if _, there := k.Dir.Last(motdFiles); taken == locker.Acquired && there != nil && len(pruned) == 0 {
					t.Error("the last lock of an atom that runs is gone")
				}
				return "", err
			}, func() (err error) {
				taken, err = verdictOf(k, ask(owner))()
				return err
			}
	})
}

func TestALastLockMayVanishWhileItIsPruned(t *testing.T) {
	owner := sleeper(t)
	atEach(t, anyStep, func(k *Locker) (func() (locker.Verdict, error), func() error) {
		completed(t, k, owner)
		return func() (locker.Verdict, error) { _, err := k.Prune(0); return "", err },
			func() error { return k.Dir.RemoveLast(motdFiles) }
	})
}

func TestAnAtomMayBeTakenOrReleasedDuringForget(t *testing.T) {
	owner := sleeper(t)
	for _, runs := range []bool{false, true} {
		atEach(t, "flock linkat", func(k *Locker) (func() (locker.Verdict, error), func() error) {
			complete(t, k, owner, 1, time.Minute)
			act := anyhow(k, ask(owner))
			if runs {
				held := wantVerdict(t, k, learner(owner), locker.Acquired)
				act = func() error { return ignoreGuarded(releaseOf(k, held)) }
			}
			return func() (locker.Verdict, error) {
				err := k.Forget(motdFiles)
				if s := memoryOf(t, k); s.Runs > 1 || s.Runs > 0 && !runs { // the release may teach again
					t.Errorf("%d runs are known", s.Runs)
				}
				return "", err
			}, act
		})
	}
}

// Forget and the release take turns at the mark: once the release waits there, Forget goes on, and
// the release tries again when Forget is done.
func TestForgetDoesNotUndoAReadersStamp(t *testing.T) {
	reader, old := sleeper(t), time.Now().Add(-time.Hour).Truncate(time.Second)
	for call := range reaching {
		for n, met := 1, true; met; n++ {
			k := unlogged(t)
			held := wantVerdict(t, k, read(reader), locker.Acquired)
			setLast(t, k, old)
			waits, forgotten, released := make(chan struct{}), make(chan struct{}), make(chan error, 1)
			var err error
			met = meanwhile(t, k, reaching[call], n, func() { err = k.Forget(motdFiles); close(forgotten) }, func() {
				go func() {
					var err error
					atTry(t, k.Dir.Path(atom.Name(motdFiles).ReadersMark()), 2, func() { err = releaseOf(k, held) }, func() {
						close(waits)
						<-forgotten
					})
					released <- err
				}()
				select {
				case <-waits:
				case err := <-released:
					released <- err
				}
			})
			if met {
				err = errors.Join(err, <-released)
			}
			if err != nil || met && lastStamp(t, k).Equal(old) {
				t.Errorf("before %s %d: %v; stamped %v", call, n, err, lastStamp(t, k))
			}
		}
	}
}

func TestALockMayBeReclaimedWhileAPersonClearsIt(t *testing.T) {
	gone, other := dead(t), sleeper(t)
	atEach(t, anyStep, func(k *Locker) (func() (locker.Verdict, error), func() error) {
		wantVerdict(t, k, limited(gone), locker.Acquired)
		return func() (locker.Verdict, error) {
			err := k.Clear(motdLock)
			if err != nil && !strings.Contains(err.Error(), "another") && !strings.Contains(err.Error(), "its owner lives") {
				return "", err
			}
			return "", nil
		}, anyhow(k, ask(other))
	})
}

func TestAnEmptyLockFilledBeforeTheLastCheckIsNotCleared(t *testing.T) {
	one, writer := sleeper(t), sleeper(t)
	fill := func(k *Locker) error {
		return os.WriteFile(k.Dir.Path(motdLock.String()), []byte(pidLine(writer)), 0o600)
	}
	remove := func(k *Locker) error {
		active, err := k.Dir.Active(motdFiles)
		if err != nil {
			return sysfile.IgnoreMissing(err)
		}
		defer active.Close()
		if err := active.Guard(0); err != nil {
			return nil // the clearing newcomer was faster
		}
		return active.Remove()
	}
	for _, c := range []struct {
		fills bool
		calls string
		want  []locker.Verdict
	}{
		{false, anyStep, []locker.Verdict{locker.Acquired}},
		// A process that fills the lock in place takes no guard, so no check helps after the last look:
		// the calls after that look are left out.
		{true, "openat flock", []locker.Verdict{locker.Acquired, locker.Busy}},
	} {
		wantVerdicts(t, atEach(t, c.calls, func(k *Locker) (func() (locker.Verdict, error), func() error) {
			plant(t, k, "", time.Hour)
			filled := false
			return func() (verdict locker.Verdict, err error) {
					helper.Stderr(t, func() { verdict, err = verdictOf(k, ask(one))() })
					if filled && verdict == locker.Acquired {
						t.Error("a lock that was filled was cleared")
					}
					return verdict, err
				}, func() error {
					if !c.fills {
						return remove(k)
					}
					if info, err := os.Stat(k.Dir.Path(motdLock.String())); err != nil || info.Size() > 0 {
						return nil // it was cleared before
					}
					filled = true
					return fill(k)
				}
		}), c.want...)
	}
}

func TestTheVerdictFollowsTheStateReadUnderTheGuard(t *testing.T) {
	gone, hung, living, newcomer := dead(t), sleeper(t), sleeper(t), ask(sleeper(t))
	newcomer.Limits.IfElapsed = time.Minute
	leaving := newcomer
	leaving.Limits.ExpireAfter, leaving.LeaveExpired = 0, true
	type act = func(k *Locker, held locker.Outcome) error
	nothing := func(*Locker, locker.Outcome) error { return nil }
	stamps := func(k *Locker, _ locker.Outcome) error { return k.Dir.Stamp(motdFiles, record.Memory{}) }
	dies := func(*Locker, locker.Outcome) error { return syscall.Kill(hung.PID, syscall.SIGKILL) }
	survives := func(k *Locker, held locker.Outcome) error {
		return k.RecordMembers(motdFiles, held.Token, []process.Identity{living})
	}
	for claim, c := range map[string]struct {
		holder locker.Request
		r      locker.Request
		act    act
		want   locker.Verdict
	}{
		"nothing":                            {ask(gone), newcomer, nothing, locker.Acquired},
		"the atom completed":                 {ask(gone), newcomer, stamps, locker.TooSoon},
		"the atom completed beside a reader": {read(gone), newcomer, stamps, locker.TooSoon},
		"a member of the job lives":          {ask(gone), newcomer, survives, locker.Busy},
		"a member of an expired job lives":   {ask(gone), leaving, survives, locker.Expired},
		"its owner released it":              {ask(gone), leaving, releaseOf, locker.TooSoon},
		"its reader released it":             {read(gone), leaving, releaseOf, locker.TooSoon},
		"the owner of an expired one died":   {ask(hung), newcomer, dies, locker.Acquired},
	} {
		k := newLocker(t)
		held := wantVerdict(t, k, c.holder, locker.Acquired)
		if c.holder.Owner == hung {
			backdate(t, k, 3*time.Hour)
		}
		var outcome locker.Outcome
		var err, failed error
		act := func() { failed = c.act(k, held) }
		if !meanwhile(t, k, reaching["flock"], 2, func() { outcome, err = k.Take(c.r) }, act) {
			t.Errorf("%s: not reached", claim)
		}
		if err != nil || failed != nil || outcome.Verdict != c.want {
			t.Errorf("%s: verdict is %q (%s), want %q; %v, %v", claim, outcome.Verdict, outcome.Reason, c.want, err, failed)
		}
	}
}

func TestAReclaimNamesTheOwnerFoundUnderTheGuard(t *testing.T) {
	k, first, second, r := newLocker(t), dead(t), dead(t), ask(sleeper(t))
	plant(t, k, pidLine(first), 0)
	var held locker.Outcome
	meanwhile(t, k, reaching["flock"], 2, func() { held, _ = k.Take(r) }, func() { plant(t, k, pidLine(second), 0) })
	found := finding(with(about(runlog.Reclaim, r.Owner.PID), r.Limits), second, "", 0)
	wantEvents(t, k, found, acquired(r, held))
}

func TestAReaderWaitsWhileAnotherReaderEnters(t *testing.T) {
	k, other, r := newLocker(t), read(sleeper(t)), read(sleeper(t))
	record := other.Record()
	record.Monotonic += time.Hour // in the future: the reader stays on its way in, however slow this machine is
	plant(t, k, string(record.Bytes()), 0)
	var outcome locker.Outcome
	var err, failed error
	comesIn := func() { failed = os.Remove(k.Dir.Path(motdLock.String())) }
	meanwhile(t, k, reaching["openat"], 3, func() { outcome, err = k.Take(r) }, comesIn)
	if outcome.Verdict != locker.Acquired || err != nil || failed != nil {
		t.Errorf("verdict is %q (%s), %v; want it to wait; %v", outcome.Verdict, outcome.Reason, err, failed)
	}
}

// If the process is killed, its lock is found stale, and is not taken for another atom's.
func TestForgetAndPruneHoldALockOfTheirOwnProcess(t *testing.T) {
	k, self, r := newLocker(t), self(t), ask(sleeper(t))
	r.Atom.Operand = "my_db"
	files := r.Atom.Name()
	letGo(t, k, r, wantVerdict(t, k, r, locker.Acquired))
	for _, do := range []func() error{
		func() error { return k.Forget(files) },
		func() error { _, err := k.Prune(0); return err },
	} {
		seen := false
		var err error
		watched(t, k, reaching["unlinkat"], func() { err = do() }, func() unix.Errno {
			active, err := k.Dir.Active(files)
			if err != nil {
				return 0
			}
			defer active.Close()
			seen = true
			if !active.Record.Owner.Same(self) || active.Record.Atom != r.Atom {
				t.Errorf("the lock is %+v", active.Record)
			}
			return 0
		})
		if err != nil || !seen {
			t.Errorf("%v; seen is %v", err, seen)
		}
	}
	if isThere(k, files.LastLock()) {
		t.Error("not pruned")
	}
}

func TestForgetFailsIfProcCannotBeRead(t *testing.T) {
	k := newLocker(t)
	plantFile(t, k, "last."+motdFiles, "", 0)
	var before syscall.Rlimit
	must.Do(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before))
	none, n := before, 0
	none.Cur = 3 // 0 to 2 are open, so no file can be opened; poll(2) of two descriptors still works
	var err error
	watched(t, k, unix.SYS_NEWFSTATAT, func() {
		err = k.Forget(motdFiles)
		syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before)
	}, func() unix.Errno {
		if n++; n == 2 { // the look for the active lock, which is not there
			syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none)
		}
		return 0
	})
	if err == nil || !strings.HasPrefix(err.Error(), "own process: ") {
		t.Errorf("forgotten: %v", err)
	}
	wantLocks(t, k, 0)
}

// Where new files have names, a crash can leave some. Elsewhere the directory is not searched for them.
func TestTemporaryFilesAreSweptOnlyWhereTheyHaveNames(t *testing.T) {
	owner := sleeper(t)
	debris := "temp." + record.NewToken()
	for _, named := range []bool{false, true} {
		for n, met := 1, true; met; n++ {
			k := unlogged(t)
			plantFile(t, k, debris, "", time.Hour)
			r := ask(owner)
			met = false
			var err error
			opened := 0
			intercept.Run(t, func() { err = taking(k, r)() }, func(c intercept.Call) unix.Errno {
				if !within(k, c.FD(0)) {
					return 0
				}
				if named && c.Args[2]&unix.O_TMPFILE == unix.O_TMPFILE {
					return unix.EOPNOTSUPP
				}
				if opened++; opened == n {
					met = true
					return unix.EIO
				}
				return 0
			}, unix.SYS_OPENAT)
			if met != (fault.KindOf(err) == fault.IO) || !met && err != nil {
				t.Errorf("named %v, before openat %d: %v", named, n, err)
			}
			if _, there := os.Stat(k.Dir.Path(debris)); !met && os.IsNotExist(there) != named {
				t.Errorf("named %v: %v", named, there)
			}
		}
	}
}

func TestAReaderMayLeaveDuringADryRun(t *testing.T) {
	owner, other, newcomer := sleeper(t), sleeper(t), ask(sleeper(t))
	atEach(t, "openat", func(k *Locker) (func() (locker.Verdict, error), func() error) {
		held := wantVerdict(t, k, read(owner), locker.Acquired)
		wantVerdict(t, k, read(other), locker.Acquired)
		return func() (locker.Verdict, error) {
			granted, _, err := inWords(k.DryRun(&newcomer))
			if granted {
				t.Error("granted beside a reader that stays")
			}
			return "", err
		}, releasing(k, held)
	})
}

func TestAPauseThatIsOlderThanTheLockDeniesTheAtom(t *testing.T) {
	owner := self(t) // its own lock is no job that it is inside
	atEach(t, anyStep, func(k *Locker) (func() (locker.Verdict, error), func() error) {
		completed(t, k, owner)
		paused := false
		return func() (verdict locker.Verdict, err error) {
				if verdict, err = verdictOf(k, ask(owner))(); paused && verdict != locker.Paused {
					t.Errorf("verdict is %q", verdict)
				}
				return verdict, err
			}, func() (err error) {
				if paused = !isThere(k, motdLock.String()); paused {
					err = k.Pause(motdFiles, record.NewPause(time.Hour, ""))
				}
				return err
			}
	})
}

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

// A newer start's lock is guarded until that start runs or has withdrawn: the older one waits for that.
func TestANewerStartThatWithdrawsOrDiesDeniesNoOlderOne(t *testing.T) {
	for _, c := range []struct {
		dies, withdraws bool
		want            locker.Verdict
	}{{false, false, locker.Busy}, {false, true, locker.Acquired}, {true, false, locker.Acquired}} {
		k, older, newer := newLocker(t), replacing(sleeper(t), time.Hour), replacing(sleeper(t), 0)
		older.Wait = time.Hour
		temp := must.Get(k.Dir.TempLock(newer.Record()))(t)
		must.Do(t, temp.Link(motdLock.String()))
		took := takes(t, k, older)
		select {
		case o := <-took:
			t.Fatalf("%s, endless %v, although the newer one may withdraw", o.Verdict, o.Endless)
		case <-time.After(2 * guardWait):
		}
		if c.withdraws {
			must.Do(t, temp.Withdraw())
		}
		if c.dies {
			end(t, newer.Owner)
		}
		temp.Discard()
		if o := wantTaken(t, took, c.want); o.Endless != (c.want == locker.Busy) {
			t.Errorf("%+v: endless is %v", c, o.Endless)
		}
	}
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
