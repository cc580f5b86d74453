package lockdir

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/limit"
	"adlock/lib/lockdir/lockfile"
	"adlock/lib/locker"
	"adlock/lib/policy"
	"adlock/lib/process"
	"adlock/test/support/helper"
	"adlock/test/support/must"
)

// queue is an atom with an owner and newcomers that wait for it.
type queue struct {
	t     *testing.T
	k     *Locker
	owner locker.Outcome
	came  chan string // the waiters that have taken the atom
	names []string
	all   sync.WaitGroup // the waiters; they end with the processes for which they ask
}

func newQueue(t *testing.T) *queue {
	k := newLocker(t)
	q := &queue{t: t, k: k, came: make(chan string, 100)}
	t.Cleanup(q.all.Wait)
	q.owner = wantVerdict(t, k, ask(sleeper(t)), locker.Acquired)
	return q
}

// joins starts a newcomer that waits, and that releases the atom at once. It returns when that is in the queue.
func (q *queue) joins(name string, change func(*locker.Request)) {
	q.t.Helper()
	r := ask(sleeper(q.t))
	r.Wait = limit.Never
	if change != nil {
		change(&r)
	}
	before := q.inLine()
	q.all.Go(func() {
		o, err := q.k.Take(r)
		if err != nil || o.Verdict != locker.Acquired {
			name = fmt.Sprint(name, ": ", o.Verdict, err)
		}
		q.came <- name
		if o.Verdict == locker.Acquired {
			if err := q.k.Release(locker.ReleaseRequest{Name: motdFiles, Token: o.Token}); err != nil {
				q.t.Error(err)
			}
		}
	})
	q.names = append(q.names, name)
	helper.Eventually(q.t, name+" is in the line", func() bool { return q.inLine() > before })
}

// inLine counts the newcomers that hold line.NAME or block for it.
func (q *queue) inLine() int {
	var st unix.Stat_t
	if unix.Stat(q.k.Dir.Path(motd.Name().Line()), &st) != nil {
		return 0
	}
	locks := must.Get(os.ReadFile("/proc/locks"))(q.t)
	return strings.Count(string(locks), fmt.Sprintf(":%d 0 EOF", st.Ino))
}

func (q *queue) comes(names ...string) {
	q.t.Helper()
	for _, name := range names {
		select {
		case came := <-q.came:
			if came != name {
				q.t.Errorf("%s comes, want %s", came, name)
			}
		case <-time.After(helper.Patience):
			q.t.Fatal(name, " does not come")
		}
	}
}

func TestWaitersTakeTheAtomInOrderOfArrival(t *testing.T) {
	q := newQueue(t)
	for n := range 10 {
		q.joins(fmt.Sprint(n), nil)
	}
	release(t, q.k, q.owner)
	q.comes(q.names...)
}

func TestAQueueHeadThatIsTooSoonDoesNotBlockTheOthers(t *testing.T) {
	q := newQueue(t)
	q.joins("first", func(r *locker.Request) { r.Limits.IfElapsed, r.WaitElapsed = time.Hour, true })
	q.joins("second", nil)
	release(t, q.k, q.owner)
	q.comes("second")
}

func TestAWaiterThatMayEndTheOwnerPassesTheQueue(t *testing.T) {
	q := newQueue(t)
	q.joins("first", nil)
	q.joins("second", func(r *locker.Request) { r.Limits.ExpireAfter = time.Second })
	q.comes("second", "first")
}

func TestANewcomerPassesTheQueueOnceItsWaitIsOver(t *testing.T) {
	for _, wait := range []time.Duration{0, 200 * time.Millisecond} {
		k := newLocker(t)
		head := heldLine(t, k)
		r := ask(sleeper(t))
		r.Wait = wait
		wantVerdict(t, k, r, locker.Acquired)
		unix.Close(head)
	}
}

// heldLine makes a queue whose head never takes the atom.
func heldLine(t *testing.T, k *Locker) (head int) {
	t.Helper()
	head, err := unix.Open(k.Dir.Path(motd.Name().Line()), unix.O_RDONLY|unix.O_CREAT, 0o600)
	if err == nil {
		err = unix.Flock(head, unix.LOCK_EX|unix.LOCK_NB)
	}
	must.Do(t, err)
	return head
}

func TestAQueueHeadThatDoesNotTakeAFreeAtomIsPassed(t *testing.T) {
	for claim, owner := range map[string]func(*Locker){
		"the atom is free":  func(*Locker) {},
		"its owner is dead": func(k *Locker) { wantVerdict(t, k, ask(dead(t)), locker.Acquired) },
	} {
		k := newLocker(t)
		owner(k)
		head := heldLine(t, k)
		r := ask(sleeper(t))
		r.Wait = limit.Never
		began := process.Monotonic()
		wantVerdict(t, k, r, locker.Acquired)
		if took := process.Monotonic() - began; took < time.Second {
			t.Errorf("%s: the head was passed after %v", claim, took)
		}
		unix.Close(head)
	}
}

// Newcomers that do not wait may use the atom all the time, so it never looks abandoned.
func TestAStoppedQueueHeadIsPassedWhileOthersUseTheAtom(t *testing.T) {
	k := newLocker(t)
	unix.Close(heldLine(t, k))
	head := start(t, "exec flock '"+k.Dir.Path(motd.Name().Line())+"' sleep 60")
	helper.Eventually(t, "it has the line", func() bool { return (&queue{t: t, k: k}).inLine() == 1 })
	must.Do(t, unix.Kill(head.PID, unix.SIGSTOP))
	waiter, other, done := ask(sleeper(t)), ask(sleeper(t)), make(chan locker.Outcome, 1)
	waiter.Wait = limit.Never
	go func() {
		o, _ := k.Take(waiter)
		done <- o
	}()
	for began := time.Now(); time.Since(began) < helper.Patience; time.Sleep(50 * time.Millisecond) {
		if o, err := k.Take(other); err == nil && o.Verdict == locker.Acquired {
			release(t, k, o)
		}
		select {
		case o := <-done:
			if o.Verdict != locker.Acquired {
				t.Errorf("%+v", o)
			}
			return
		default:
		}
	}
	t.Fatal("it is not passed")
}

// If an atom is taken and released again and again, its head does not leave it alone.
func TestARunningQueueHeadIsNotPassedWhileTheAtomIsInUse(t *testing.T) {
	k := newLocker(t)
	head := heldLine(t, k)
	defer unix.Close(head)
	waiter, other, done := ask(sleeper(t)), ask(sleeper(t)), make(chan struct{})
	waiter.Wait = limit.Never
	go func() {
		defer close(done)
		if o, err := k.Take(waiter); err != nil || o.Verdict != locker.Acquired {
			t.Errorf("%+v, %v", o, err)
		}
	}()
	for began := time.Now(); time.Since(began) < 3500*time.Millisecond; {
		select {
		case <-done:
			t.Fatal("the head is passed")
		default:
			release(t, k, wantVerdict(t, k, other, locker.Acquired))
			time.Sleep(50 * time.Millisecond)
		}
	}
	<-done
}

func TestAWaiterTakesTheAtomEvenIfTheQueueCannotBeUsed(t *testing.T) {
	q := newQueue(t)
	line := q.k.Dir.Path(motd.Name().Line())
	must.Do(t, unix.Mkfifo(line, 0o600))
	names := []string{"a", "b"}
	for _, name := range names {
		r := ask(sleeper(t))
		r.Wait = limit.Never
		go func() {
			o, err := q.k.Take(r)
			if err == nil {
				err = q.k.Release(locker.ReleaseRequest{Name: motdFiles, Token: o.Token})
			}
			q.came <- fmt.Sprint(name, err)
		}()
	}
	release(t, q.k, q.owner)
	came := []string{<-q.came, <-q.came}
	if slices.Sort(came); !slices.Equal(came, []string{"a<nil>", "b<nil>"}) {
		t.Error(came)
	}
}

func TestACallerThatKeepsItsPlaceLeavesTheQueueItself(t *testing.T) {
	q := newQueue(t)
	leave := make(chan func(), 1)
	q.joins("first", func(r *locker.Request) { r.Keep = func(l func()) { leave <- l } })
	q.joins("second", nil)
	release(t, q.k, q.owner)
	q.comes("first")
	let := <-leave
	helper.Eventually(t, "the atom is free", func() bool { return !isThere(q.k, motd.Name().ActiveLock()) })
	if q.inLine() != 2 {
		t.Errorf("%d newcomers in the line", q.inLine())
	}
	let()
	q.comes("second")
}

func TestAQueueIsPrunedUnlessANewcomerWaitsInIt(t *testing.T) {
	k := newLocker(t)
	release(t, k, wantVerdict(t, k, ask(sleeper(t)), locker.Acquired))
	line := motd.Name().Line()
	head := heldLine(t, k)
	if _, err := k.Prune(0); err != nil || !isThere(k, line) {
		t.Errorf("a line in use: %v", err)
	}
	unix.Close(head)
	release(t, k, wantVerdict(t, k, ask(sleeper(t)), locker.Acquired))
	if _, err := k.Prune(0); err != nil || isThere(k, line) {
		t.Errorf("a line that is not used: %v", err)
	}
}

func isThere(k *Locker, file string) bool {
	_, err := os.Lstat(k.Dir.Path(file))
	return err == nil
}

func TestANewcomerQueuesOnlyForTheActiveLock(t *testing.T) {
	held := view{active: &lockfile.Active{}, readers: make([]view, 1)}
	for _, c := range []struct {
		v      view
		step   policy.Step
		reader int
		want   bool
	}{{held, policy.Busy, -1, true}, {held, policy.Busy, 0, false}, {held, policy.Full, -1, false}, {view{}, policy.Busy, -1, false}} {
		if got := c.v.inWay(policy.Decision{Step: c.step, Reader: c.reader}).Line; got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
