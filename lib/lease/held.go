package lease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"adlock/lib/fault"
	"adlock/lib/learn"
	"adlock/lib/lease/watchdog"
	"adlock/lib/limit"
	"adlock/lib/locker"
	"adlock/lib/policy"
	"adlock/lib/process"
	"adlock/lib/sysfile"
)

// heldLease is a place of this process. It renews the lease, and ends the job if it cannot, or if a newcomer asks.
//
// The times are parts of the lease, counted from sending the last successful renewal. After 1/3 the lease is
// renewed; after 2/3 the job is ended, with pauses of 1/15 between the signals; after 5/6 the watchdog ends
// it; after the whole lease another owner may hold the atom. A release is retried until then.
type heldLease struct {
	store    Store
	recorder locker.Recorder
	place    Place
	record   Record
	end      chan<- time.Duration // Request.End: gets the pause when the job has to end
	most     time.Duration        // how long a question may take (Locker.question)
	watchdog *watchdog.Watchdog   // nil: none was started

	before  Last           // the last lock when the place came to own the atom
	lessons []learn.Lesson // of this run, for the last lock at its end

	after func(time.Duration) <-chan time.Time // time.After, except in tests

	ctx     context.Context // done once Locker.Context is, the place is given up, or a waiter's place is lost
	cancel  context.CancelFunc
	running sync.WaitGroup

	renewed atomic.Int64 // boottime at which the last successful renewal was sent
	holding atomic.Bool  // the job may run: begin was called
	ended   atomic.Bool  // the job has to end because the lease runs out or is gone
	why     atomic.Value // error: the reason for ended
	asked   atomic.Bool  // the job has to end because a newcomer asked for that

	tick policy.Tick // the tick that this acquisition may have claimed

	noting sync.Mutex // held while the record is written to the store and, once the atom is won, while it is changed

	mu     sync.Mutex
	slots  []Place
	wanted []time.Duration // the pauses of requests to end a job that had not begun
}

// enter takes a place, behind others only if queue is true, and begins to renew its lease. It returns nil if
// Store.Enter makes no place. If the atom is likely to be won at once, enter starts the watchdog first.
func (l *Locker) enter(r *locker.Request, record Record, queue, likely bool) (*heldLease, Snapshot, error) {
	t := &heldLease{store: l.Store, recorder: l.Recorder, record: record, end: r.End, most: l.question(), after: time.After}
	if likely {
		t.watchdog = watchdog.Start(l.Recorder, record.Record)
	}
	ctx, cancel := context.WithTimeout(context.Background(), l.question())
	defer cancel()
	sent := process.Boottime()
	place, seen, err := l.Store.Enter(ctx, r.Atom.Name(), record, queue)
	if err != nil || place == nil {
		t.watchdog.Dismiss()
		return nil, seen, err
	}
	t.place = place
	t.renewed.Store(int64(sent))
	t.ctx, t.cancel = context.WithCancel(l.context())
	t.running.Add(2)
	go t.refresh()
	go t.listen()
	return t, seen, nil
}

func (t *heldLease) acquired() locker.Outcome {
	return locker.Outcome{Verdict: locker.Acquired, Token: t.record.Token, Fence: strconv.FormatUint(t.place.Fence(), 10)}
}

// begin lets the job begin; watch is how long a job must be idle before a learned limit ends it. If a third of the
// lease is over, begin first renews it: if this process was stopped, the lease may be nearly over, and the
// watchdog would end the owner at once. begin returns ErrGone if the place is lost or Locker.Context is done.
func (t *heldLease) begin(watch time.Duration) error {
	if t.dueIn(2) == 0 {
		if err := t.renew(); err != nil {
			return err
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ctx.Err() != nil {
		return ErrGone
	}
	t.holding.Store(true)
	if t.record.Source == policy.Learned && t.record.ExpireAfter != limit.Never {
		go t.watch(watch) // a release ends the watch, but does not wait for its end
	}
	t.watchdog.Arm(t.until(5), t.record.Lease/24)
	for _, pause := range t.wanted {
		t.send(pause)
	}
	return nil
}

// startWatchdog starts the watchdog if there is none: one that was started ahead may have failed, or ended.
func (t *heldLease) startWatchdog() {
	if !t.watchdog.IsThere() {
		t.watchdog.Dismiss()
		t.watchdog = watchdog.Start(t.recorder, t.record.Record)
	}
}

// watchdogReady waits until the watchdog is there, and starts another if the first was killed while it started.
func (t *heldLease) watchdogReady() error {
	if err := t.watchdog.Ready(); err != nil || t.watchdog.IsThere() {
		return err
	}
	t.startWatchdog()
	return t.watchdog.Ready()
}

// until returns the boottime at which that many sixths of the lease have passed since its last renewal.
func (t *heldLease) until(sixths time.Duration) time.Duration {
	return time.Duration(t.renewed.Load()) + t.record.Lease*sixths/6
}

func (t *heldLease) refresh() {
	defer t.running.Done()
	var failed error
	for wait := t.dueIn(2); t.pause(wait); {
		if failed != nil && t.dueIn(4) == 0 || t.dueIn(5) == 0 {
			t.lose(cmp.Or(failed, errStoodStill))
		}
		failed = t.renew()
		switch {
		case failed == nil:
			wait = t.dueIn(2)
		case errors.Is(failed, ErrGone):
			t.lose(failed)
			return
		default:
			wait = t.record.Lease / 30
			if left := t.dueIn(4); left > 0 {
				wait = min(wait, left)
			} else {
				t.lose(failed)
			}
		}
	}
}

// dueIn returns the time until that many sixths of the lease have passed; 0 if they have.
func (t *heldLease) dueIn(sixths time.Duration) time.Duration {
	return max(0, t.until(sixths)-process.Boottime())
}

func (t *heldLease) pause(d time.Duration) bool {
	select {
	case <-t.ctx.Done():
		return false
	case <-t.after(d):
		return true
	}
}

// renew renews the leases of the place and of its slots. It takes at most the time that is left before the
// job has to be ended or, if none is left, a sixth of the lease.
func (t *heldLease) renew() error {
	ctx, cancel := context.WithTimeout(t.ctx, cmp.Or(t.dueIn(4), t.record.Lease/6))
	defer cancel()
	sent := process.Boottime()
	if err := t.place.Renew(ctx); err != nil {
		return err
	}
	for _, slot := range t.slotted() {
		// Losing a slot only lets one more job of the program run: that is no reason to end this one.
		_ = slot.Renew(ctx)
	}
	t.renewed.Store(int64(sent))
	if t.holding.Load() {
		t.watchdog.Arm(t.until(5), t.record.Lease/24)
	}
	return nil
}

// lose ends an owner's job because of why or, if this process stood still, of that. After ErrGone another owner may
// already have the atom, so the signals are a millisecond apart. A waiter has no job: it gives up if its place is gone.
func (t *heldLease) lose(why error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	pause := t.record.Lease / 15
	if errors.Is(why, ErrGone) {
		pause = time.Millisecond
	} else if t.dueIn(5) == 0 {
		why = errStoodStill
	}
	switch {
	case !t.holding.Load() && errors.Is(why, ErrGone):
		t.cancel()
	case t.holding.Load() && t.ended.CompareAndSwap(false, true):
		t.why.Store(why)
		t.send(pause)
	}
}

// lost returns why an acquisition was lost: why the job was ended, and the error of the release (nil: none).
func (t *heldLease) lost(released error) error {
	why, ended := t.why.Load().(error)
	switch {
	case !ended || errors.Is(why, ErrGone) && errors.Is(released, ErrGone):
		return cmp.Or(released, why)
	case errors.Is(why, ErrGone):
		return errors.Join(why, unnamed(released))
	}
	return errors.Join(fmt.Errorf("the lease could not be renewed: %w", why), unnamed(released))
}

// askEnd asks for the job's end, as soon as the job has begun. If this place is lost before that,
// the request is dropped: it does not concern a job under a later place.
func (t *heldLease) askEnd(pause time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.holding.Load() {
		t.wanted = append(t.wanted, pause)
		return
	}
	t.send(pause)
}

// send asks for the job's end at once. If an earlier request is still unread, it does nothing.
func (t *heldLease) send(pause time.Duration) {
	select {
	case t.end <- pause:
	default:
	}
}

func (t *heldLease) listen() {
	defer t.running.Done()
	for {
		pause, err := t.place.Asked(t.ctx)
		if t.ctx.Err() != nil {
			return
		}
		switch {
		case err == nil:
			t.asked.Store(true)
			t.askEnd(pause)
			return
		case errors.Is(err, ErrGone):
			t.lose(err)
			return
		}
		if !t.pause(t.record.Lease / 30) {
			return
		}
	}
}

func (t *heldLease) answer(why error) {
	ctx, cancel := context.WithTimeout(t.ctx, t.most)
	defer cancel()
	t.noting.Lock()
	t.record.Stuck = why.Error()
	t.noting.Unlock()
	_ = t.note(ctx) // if this fails, newcomers find the owner stuck later (queue.expire)
}

func (t *heldLease) note(ctx context.Context) error {
	t.noting.Lock()
	defer t.noting.Unlock()
	if err := t.ctx.Err(); err != nil {
		return err // the place is being left
	}
	return t.place.Note(ctx, t.record)
}

// keepNoting writes the record, and retries until that is done or the place is lost or given up.
func (t *heldLease) keepNoting() {
	for {
		ctx, cancel := context.WithTimeout(t.ctx, t.most)
		err := t.note(ctx)
		cancel()
		if err == nil || errors.Is(err, ErrGone) || !t.pause(t.record.Lease/30) {
			return
		}
	}
}

func (t *heldLease) addSlot(slot Place) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.slots = append(t.slots, slot)
}

func (t *heldLease) slotted() []Place {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.slots)
}

func (t *heldLease) stamp() *Last {
	last := &Last{Token: t.record.Token, Node: t.record.Node}
	if !t.record.Atom.Exact() {
		last.Memory.Atom = t.record.Atom
	}
	return last
}

// leave gives the place up with a stamp (nil: none). It stops renewing the lease, and retries until the lease
// has run out. If the last lock cannot be stamped, it leaves without a stamp, and err reports that. left is
// false if the place was lost (ErrGone) or the lease ran out.
func (t *heldLease) leave(stamp *Last) (left bool, err error) {
	t.endNotes()
	for tried := false; ; tried = true {
		err := t.tryLeave(stamp, t.dueIn(6))
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, ErrGone) && tried && t.dueIn(6) > 0:
			return true, nil // the answer to an earlier try was lost
		case errors.Is(err, ErrGone):
			return false, err
		case stamp != nil && fault.KindOf(err) != fault.Unavailable:
			if !stamp.Kept {
				t.tick = policy.Tick{} // the run counts: the tick stays claimed
			}
			left, _ := t.leave(nil)
			return left, fmt.Errorf("the last run is not noted: %w", err)
		case t.dueIn(6) == 0:
			return false, fault.New(fault.Unavailable, locker.Title(t.record.Atom), "not released until the lease ran out, the last run may not be noted: "+err.Error())
		}
		time.Sleep(min(t.record.Lease/30, t.dueIn(6)))
	}
}

// endNotes stops all work for the place. When it returns, no write of the record is under way.
func (t *heldLease) endNotes() {
	t.cancel()
	t.noting.Lock()
	defer t.noting.Unlock()
}

// unnamed returns the error without its object, for a message that already names the object.
func unnamed(err error) error {
	if known, is := err.(*fault.Error); is {
		return known.Err
	}
	return err
}

func (t *heldLease) tryLeave(stamp *Last, most time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), min(t.most, most))
	defer cancel()
	switch {
	case stamp != nil && !stamp.Kept:
		stamp.completes(t.record)
	case t.tick.Asked():
		if err := t.place.DisclaimTick(ctx, t.tick); err != nil {
			return err
		}
	}
	err := t.place.Leave(ctx, stamp)
	for _, slot := range t.slotted() {
		_ = slot.Leave(ctx, nil) // if this fails, the slot is free when its lease runs out
	}
	return err
}

// abandon gives up a place for which no job will run: why is the error, or nil after a denial. If the store does not
// answer, the place is free when its lease runs out. If why reports that already, abandon waits only a second.
func (t *heldLease) abandon(why error) {
	most := t.most
	if fault.KindOf(why) == fault.Unavailable {
		most = time.Second
	}
	t.watchdog.Dismiss() // there is no job
	_ = t.tryLeave(nil, most)
	t.close()
}

func (t *heldLease) close() {
	t.cancel()
	t.running.Wait()
	t.watchdog.Dismiss()
}

// NodeName returns this machine's own name, whatever the atom's host.
func NodeName() (string, error) {
	node, err := sysfile.NodeName()
	return node, fault.Wrap("node name", err)
}
