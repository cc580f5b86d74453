package store

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/atom"
	"adlock/lib/exit"
	"adlock/lib/process"
	"adlock/lib/runlog"
)

// tenure is a place that is tended: its lease is renewed, and others' requests
// are listened to.
//
// The times, as parts of the lease, counted from when the last renewal that went
// well was sent: renewed every 1/3; after 2/3 without another the job is ended,
// with pauses of 1/15 between the signals; after 5/6 the guard sees to it; after
// the whole of it somebody else may hold the atom.
type tenure struct {
	store  Store
	log    *runlog.Log
	place  Place
	record Record
	end    chan<- time.Duration // Request.End
	guard  *guard               // nil while only waiting

	ctx    context.Context // done once the place is given up or lost
	cancel context.CancelFunc
	tended sync.WaitGroup

	renewed atomic.Int64 // boottime
	holding atomic.Bool  // the atom, not a place in the line for it
	ended   atomic.Bool  // the job was told to end, as the lease runs out

	mu    sync.Mutex
	slots []Place
}

// enter takes a place and begins to tend it; nil where there is none (Enter).
// Where the atom is likely to be won at once the guard starts meanwhile.
func (l *Locksmith) enter(r *atom.Request, record Record, line, likely bool) (*tenure, Sight, error) {
	t := &tenure{store: l.Store, log: l.Log, record: record, end: r.End}
	if likely {
		t.guard = startGuard(l.Log, record)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	sent := process.Boottime()
	place, seen, err := l.Store.Enter(ctx, r.Atom.Name(), record, l.lease(), line)
	if err != nil || place == nil {
		t.guard.dismiss()
		return nil, seen, err
	}
	t.place = place
	t.renewed.Store(int64(sent))
	t.ctx, t.cancel = context.WithCancel(l.context())
	t.tended.Add(2)
	go t.tend()
	go t.listen()
	return t, seen, nil
}

// acquired is the outcome where the place is the first.
func (t *tenure) acquired() atom.Outcome {
	if t.guard == nil {
		t.guard = startGuard(t.log, t.record)
	}
	t.holding.Store(true)
	t.guard.arm(t.until(5), t.place.Lease()/24)
	return atom.Outcome{Verdict: atom.Acquired, Token: t.record.Token, Fence: strconv.FormatUint(t.place.Fence(), 10)}
}

// until is the boottime at which so many sixths of the lease have passed.
func (t *tenure) until(sixths time.Duration) time.Duration {
	return time.Duration(t.renewed.Load()) + t.place.Lease()*sixths/6
}

// tend renews the lease until the place is given up or lost.
func (t *tenure) tend() {
	defer t.tended.Done()
	for wait := t.place.Lease() / 3; t.pause(wait); {
		err := t.renew()
		switch {
		case err == nil:
			wait = t.place.Lease() / 3
		case errors.Is(err, ErrGone):
			t.lose()
			return
		default:
			wait = min(t.place.Lease()/30, max(0, t.until(4)-process.Boottime()))
			if t.until(4) <= process.Boottime() {
				wait = t.place.Lease() / 30
				t.lose()
			}
		}
	}
}

// pause returns false once the place is given up.
func (t *tenure) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-t.ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// renew renews all leases. It takes no longer than there is time before the job
// has to be ended, or a sixth of the lease.
func (t *tenure) renew() error {
	most := t.place.Lease() / 6
	if left := t.until(4) - process.Boottime(); left > 0 {
		most = min(most, left)
	}
	ctx, cancel := context.WithTimeout(t.ctx, most)
	defer cancel()
	sent := process.Boottime()
	if err := t.place.Renew(ctx); err != nil {
		return err
	}
	for _, slot := range t.slotted() {
		// A slot that is lost lets one more of the program in: no reason to end
		// the job.
		_ = slot.Renew(ctx)
	}
	t.renewed.Store(int64(sent))
	if t.holding.Load() {
		t.guard.arm(t.until(5), t.place.Lease()/24)
	}
	return nil
}

// lose ends the job; in the line there is none, and the place is lost.
func (t *tenure) lose() {
	if !t.holding.Load() {
		t.cancel()
		return
	}
	if t.ended.CompareAndSwap(false, true) {
		t.tell(t.place.Lease() / 15)
	}
}

// tell tells the job to end. One that has been told so already is being ended.
func (t *tenure) tell(pause time.Duration) {
	select {
	case t.end <- pause:
	default:
	}
}

// listen waits for a newcomer that asks for the job's end.
func (t *tenure) listen() {
	defer t.tended.Done()
	for {
		pause, err := t.place.Asked(t.ctx)
		if t.ctx.Err() != nil {
			return
		}
		if err == nil {
			t.tell(pause)
			return
		}
		if !t.pause(t.place.Lease() / 30) {
			return
		}
	}
}

// answer tells those who ask why the job cannot be ended.
func (t *tenure) answer(why error) {
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	t.record.Stuck = why.Error()
	_, _ = t.place.Note(ctx, t.record) // without it they find out by themselves, later
}

func (t *tenure) addSlot(slot Place) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.slots = append(t.slots, slot)
}

func (t *tenure) slotted() []Place {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]Place(nil), t.slots...)
}

// stamp is the last lock that this acquisition leaves; leave sets the time.
func (t *tenure) stamp() *Last {
	last := &Last{Token: t.record.Token}
	if !t.record.Atom.Exact() {
		last.Memory.Atom = t.record.Atom
	}
	if t.record.FromStart {
		last.Memory.Started = t.record.Taken
	}
	return last
}

// leave gives the place up, trying for as long as the lease lasts.
func (t *tenure) leave(stamp *Last) error {
	for tried := false; ; tried = true {
		err := t.tryLeave(stamp)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, ErrGone) && tried && process.Boottime() < t.until(6):
			return nil // the answer to an earlier try was lost on its way
		case errors.Is(err, ErrGone):
			return err
		case process.Boottime() >= t.until(6):
			return exit.New(exit.Unavailable, t.store.String(), "no answer until the lease ran out: the last run may not be noted there")
		}
		time.Sleep(t.place.Lease() / 30)
	}
}

func (t *tenure) tryLeave(stamp *Last) error {
	ctx, cancel := context.WithTimeout(context.Background(), min(patience, t.place.Lease()/3))
	defer cancel()
	if stamp != nil {
		stamp.Completed = time.Now()
	}
	err := t.place.Leave(ctx, stamp)
	for _, slot := range t.slotted() {
		_ = slot.Leave(ctx, nil) // else it is free when its lease runs out
	}
	return err
}

// abandon gives up a place that was not won. One that cannot be given back now
// is free when its lease runs out.
func (t *tenure) abandon() {
	_ = t.tryLeave(nil)
	t.close()
}

// close ends the tending; the guard goes home.
func (t *tenure) close() {
	t.cancel()
	t.tended.Wait()
	t.guard.dismiss()
}

// NodeName is what this machine calls itself, whatever the atom's host.
func NodeName() (string, error) {
	var system unix.Utsname
	if err := unix.Uname(&system); err != nil {
		return "", exit.Wrap("node name", err)
	}
	node, _, _ := bytes.Cut(system.Nodename[:], []byte{0})
	return string(node), nil
}
