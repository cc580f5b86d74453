package lockdir

import (
	"os"
	"strings"
	"testing"
	"time"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/locker"
	"adlock/lib/policy"
	"adlock/lib/process"
	"adlock/test/support/helper"
	"adlock/test/support/must"
)

func read(owner process.Identity) locker.Request {
	r := ask(owner)
	r.Shared = true
	return r
}

func TestAReaderWithTheLongestNameAndPidHoldsTheAtom(t *testing.T) {
	k, reader, writer := newLocker(t), read(sleeper(t)), ask(sleeper(t))
	part := strings.Repeat("x", 60)
	reader.Atom = atom.Atom{Program: part, Host: part, Operator: part, Operand: part}
	reader.Owner.PID, reader.Owner.PIDNS = 4194304, reader.Owner.PIDNS+1 // of another namespace: counts as alive
	held := wantVerdict(t, k, reader, locker.Acquired)
	writer.Atom = reader.Atom
	wantVerdict(t, k, writer, locker.Busy)
	letGo(t, k, reader, held)
	wantVerdict(t, k, writer, locker.Acquired)
}

func TestAReaderStoppedAsItEntersMeansBusy(t *testing.T) {
	k, r, newcomer := newLocker(t), read(sleeper(t)), read(sleeper(t))
	record, elsewhere := r.Record(), r.Record()
	record.Monotonic -= 2 * entering
	elsewhere.Monotonic, elsewhere.Owner.TimeNS = elsewhere.Monotonic+time.Hour, r.Owner.TimeNS+1
	newcomer.Now = time.Now().Add(-time.Hour)
	for _, content := range [][]byte{record.Bytes(), elsewhere.Bytes()} {
		plant(t, k, string(content), 2*entering)
		wantTaken(t, takes(t, k, newcomer), locker.Busy) // not: it checks again and again
	}
}

func TestAnExpiredReaderIsEndedByAWriterAndNotByAReader(t *testing.T) {
	k, hung, writer := newLocker(t), sleeper(t), hasty(sleeper(t))
	wantVerdict(t, k, read(hung), locker.Acquired)
	release(t, k, wantVerdict(t, k, sharing(hasty(sleeper(t))), locker.Acquired))
	writer.LeaveExpired = true
	wantVerdict(t, k, writer, locker.Expired)
	wantLife(t, hung, process.Alive)
	writer.LeaveExpired = false
	wantVerdict(t, k, writer, locker.Acquired)
	wantLife(t, hung, process.Dead)
}

func TestASecondReadByTheSameProcessIsBusy(t *testing.T) {
	k, owner := newLocker(t), sleeper(t)
	wantVerdict(t, k, read(owner), locker.Acquired)
	wantVerdict(t, k, read(owner), locker.Busy)
}

// The newcomer's own stamp, for the first reader that it ends, must not deny it the atom.
func TestAWriterReplacesManyDeadAndExpiredReaders(t *testing.T) {
	k, writer := newLocker(t), ask(sleeper(t))
	for range 3 {
		wantVerdict(t, k, read(dead(t)), locker.Acquired)
		wantVerdict(t, k, read(sleeper(t)), locker.Acquired)
	}
	writer.Limits.ExpireAfter = 1
	setLast(t, k, time.Now().Add(-2*time.Hour))
	writer.Limits.IfElapsed = time.Hour
	wantVerdict(t, k, writer, locker.Acquired)
}

func TestAReaderThatCannotBeCheckedMeansBusyThenStuck(t *testing.T) {
	k, reader, writer := newLocker(t), sleeper(t), hasty(sleeper(t))
	reader.PIDNS++
	wantVerdict(t, k, read(reader), locker.Acquired)
	wantVerdict(t, k, ask(writer.Owner), locker.Busy)
	if outcome, err := k.Take(writer); outcome.Verdict != locker.Stuck || fault.KindOf(err) != fault.NotPermitted {
		t.Errorf("%v, %v", outcome.Verdict, err)
	}
	wantLocks(t, k, 1)
}

func TestADamagedReadersLockIsAnErrorAndStays(t *testing.T) {
	k := newLocker(t)
	must.Do(t, k.Dir.MarkRead(motdFiles))
	for _, content := range []string{"12", "12\n"} {
		plantFile(t, k, "read."+motdFiles+".12", content, 0)
		if outcome, err := k.Take(ask(sleeper(t))); outcome.Verdict != "" || fault.KindOf(err) != fault.IO {
			t.Errorf("%q: %v, %v", content, outcome.Verdict, err)
		}
		wantLocks(t, k, 1)
	}
}

func TestAGuardedReadersLockMeansBusy(t *testing.T) {
	k, gone := newLocker(t), dead(t)
	wantVerdict(t, k, read(gone), locker.Acquired)
	lock := readerLock(gone)
	guard := openActive(t, k.Dir.Lock, lock)
	must.Do(t, guard.Guard(0))
	if o := wantVerdict(t, k, ask(sleeper(t)), locker.Busy); o.Reason != "busy: "+locker.ErrGuarded.Error() {
		t.Errorf("%s", o.Reason)
	}
	if err := k.Clear(lock); fault.KindOf(err) != fault.Denied {
		t.Errorf("cleared: %v", err)
	}
	plantFile(t, k, lock.String(), "", time.Hour) // the same inode, empty
	wantVerdict(t, k, ask(sleeper(t)), locker.Busy)
}

// A learned limit does not shorten the limit of a reader; an explicit one does.
func TestALearnedLimitDoesNotShortenAReadersLimit(t *testing.T) {
	k, long, writer := newLocker(t), read(sleeper(t)), hasty(sleeper(t))
	long.Limits.ExpireAfter = 5 * time.Hour
	wantVerdict(t, k, long, locker.Acquired)
	writer.Limits.Source, writer.LeaveExpired = policy.Learned, true
	wantVerdict(t, k, writer, locker.Busy)
	writer.Limits.Source = policy.Said
	wantVerdict(t, k, writer, locker.Expired)
}

func TestADeniedReaderLeavesNoLock(t *testing.T) {
	k := newLocker(t)
	wantVerdict(t, k, slotted(sleeper(t), "other", 1), locker.Acquired)
	wantVerdict(t, k, sharing(slotted(sleeper(t), motd.Operand, 1)), locker.Full)
	wantLocks(t, k, 0)
	tooSoon := read(sleeper(t))
	setLast(t, k, time.Now())
	tooSoon.Limits.IfElapsed = time.Hour
	wantVerdict(t, k, tooSoon, locker.TooSoon)
	wantLocks(t, k, 0)
}

func TestADeadOwnerBesideAnEmptyReadersLockIsReplaced(t *testing.T) {
	k, r := newLocker(t), ask(sleeper(t))
	r.Limits.IfElapsed = time.Hour
	wantVerdict(t, k, ask(dead(t)), locker.Acquired)
	must.Do(t, k.Dir.MarkRead(motdFiles))
	plantFile(t, k, motd.Name().ReaderLock(4711), "", time.Hour)
	helper.Stderr(t, func() { wantVerdict(t, k, r, locker.Acquired) })
	wantLocks(t, k, 1)
}

// A writer clears dead readers too, but there may never be one.
func TestReadersClearTheLocksOfDeadReaders(t *testing.T) {
	k := newLocker(t)
	var owners []process.Identity
	for range 5 {
		owner := sleeper(t)
		owners = append(owners, owner)
		wantVerdict(t, k, read(owner), locker.Acquired)
	}
	for _, owner := range owners {
		end(t, owner)
	}
	for _, left := range []int{3, 1, 0} {
		release(t, k, wantVerdict(t, k, read(sleeper(t)), locker.Acquired))
		wantLocks(t, k, left)
	}
}

func TestAStoppedHolderOfADeadReadersGuardBlocksNoReader(t *testing.T) {
	withoutGrace(t)
	k, dies, newcomer := newLocker(t), sleeper(t), read(sleeper(t))
	wantVerdict(t, k, read(dies), locker.Acquired)
	lock := atom.File{Kind: atom.ReaderLock, Name: motd.Name(), Number: dies.PID}
	stop(t, guards(t, must.Get(k.Dir.Lock(lock))(t)))
	end(t, dies)
	newcomer.Pause = 0
	wantVerdict(t, k, newcomer, locker.Acquired)
}

func TestAReaderThatCannotLinkItsLockGivesItsTickBack(t *testing.T) {
	k, r := newLocker(t), read(sleeper(t))
	r.Tick = policy.Tick{Period: time.Hour, Number: 1}
	must.Do(t, os.Mkdir(k.Dir.Path(motd.Name().ReadersMark()), 0o700))
	_, _ = k.Take(r) // fails: if it were a reader now, the next would be denied
	must.Do(t, os.Remove(k.Dir.Path(motd.Name().ReadersMark())))
	wantVerdict(t, k, r, locker.Acquired)
}
