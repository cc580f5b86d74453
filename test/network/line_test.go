package network

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"regexp"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/lease"
	"adlock/lib/lease/etcd"
	"adlock/lib/limit"
	"adlock/lib/process"
	"adlock/lib/record"
	"adlock/test/support/check"
	"adlock/test/support/helper"
	"adlock/test/support/must"
)

func aRecord(t testing.TB, shared bool) lease.Record {
	t.Helper()
	me := must.Get(process.Of(os.Getpid()))(t)
	return lease.Record{Taken: time.Now(), Lease: time.Minute, Record: record.Record{Shared: shared,
		Owner: me, Token: record.NewToken(), Boottime: process.Boottime(), ExpireAfter: time.Hour,
		Atom: atom.Atom{Program: "p", Host: "h", Operator: "o", Operand: "x"},
	}}
}

func open(t testing.TB, address string) *etcd.Store {
	t.Helper()
	s := must.Get(etcd.Open(address))(t)
	t.Cleanup(func() { s.Close() })
	return s
}

// leave gives a place up as its owner does: if the answer is lost, it asks again.
func leave(ctx context.Context, p lease.Place, stamp *lease.Last) error {
	for tried := false; ; tried = true {
		err := p.Leave(ctx, stamp)
		if tried && errors.Is(err, lease.ErrGone) {
			return nil
		}
		if fault.KindOf(err) != fault.Unavailable || ctx.Err() != nil {
			return err
		}
	}
}

// waiter has a place at the atom p.h.o.x.
type waiter struct {
	lease.Place
	record lease.Record
}

// lasts is a lease that is longer than a test.
const lasts = 10 * time.Minute

// enter takes a place, and fails the test unless another process is in front, or none.
func enter(t testing.TB, s lease.Store, shared, held bool, length time.Duration) *waiter {
	t.Helper()
	w := &waiter{record: aRecord(t, shared)}
	w.record.Lease = length
	place, seen, err := s.Enter(limited(t), "p.h.o.x", w.record, true)
	if err != nil || seen.Held != held {
		t.Fatal(seen, err)
	}
	w.Place = place
	return w
}

// unlock leaves as an owner does, with a stamp.
func (w *waiter) unlock(ctx context.Context) error {
	last := &lease.Last{Token: w.record.Token}
	last.Completed = time.Now()
	return leave(ctx, w, last)
}

// In each case the place directly in front goes in another way. The waiter behind may get the atom only if it
// is then the head of the queue.
func TestAWaiterGetsTheAtomOnlyAsTheHeadOfTheQueue(t *testing.T) {
	t.Parallel()
	nodes := startEtcd(t, 1)
	s := open(t, url(nodes...))
	var ctx context.Context                    // of each way
	type way func(owner, second *waiter) error // the third looks after that
	alone := func(goes func(second *waiter) error) way {
		return func(_, second *waiter) error { return goes(second) }
	}
	afterOwner := func(goes func(second *waiter) error) way {
		return func(owner, second *waiter) error {
			err := owner.unlock(ctx)
			second.record.Taken = time.Now()
			_, looked := second.Look(ctx)
			return errors.Join(err, looked, second.Note(ctx, second.record), goes(second))
		}
	}
	unlocks := func(w *waiter) error { return w.unlock(ctx) }
	leaves := func(w *waiter) error { return w.Leave(ctx, nil) }
	deleted := func(w *waiter) error {
		for _, key := range []string{"line", "beat"} {
			ctl(t, nodes, "del", "/adlock/p.h.o.x/"+key+"/w/"+w.record.Token)
		}
		return nil
	}
	for what, test := range map[string]struct {
		shared bool // the second is a reader
		goes   way
		next   bool // the third found that only an owner is in front
		free   bool // the third then has the atom
	}{
		"it gave up waiting":       {goes: alone(leaves)},
		"it was removed by hand":   {goes: alone(func(w *waiter) error { return s.Remove(ctx, "p.h.o.x", w.record.Token) })},
		"the owner went before it": {goes: afterOwner(unlocks), next: true, free: true},
		"the owner went before it, and its record never said so": {
			goes: func(owner, second *waiter) error { return errors.Join(owner.unlock(ctx), second.unlock(ctx)) }, free: true,
		},
		"the owner went before it, and left no last lock": {goes: afterOwner(leaves), next: true, free: true},
		"a person deleted its keys":                       {goes: afterOwner(deleted), next: true, free: true},
		"it was a reader, beside another":                 {shared: true, goes: alone(unlocks)},
	} {
		t.Run(what, func(t *testing.T) {
			defer ctl(t, nodes, "del", "--prefix", "/adlock/")
			ctx = limited(t)
			owner, second := enter(t, s, test.shared, false, lasts), enter(t, s, test.shared, !test.shared, lasts)
			third := enter(t, s, false, true, lasts)
			if !test.shared {
				second.record.Taken = time.Time{}
			}
			third.record.Taken = time.Time{}
			must.Do(t, errors.Join(second.Note(ctx, second.record), third.Note(ctx, third.record)))
			woken := make(chan error, 1)
			var next atomic.Int64
			helper.Eventually(t, "no client watches any more", func() bool { return nodes[0].watchers(t) == 0 })
			go func() { woken <- third.Await(ctx, func() { next.Add(1) }) }()
			helper.Eventually(t, "it watches", func() bool { return nodes[0].watchers(t) > 0 })
			check.Equal(t, "calls of next so far", next.Load(), 0)
			must.Do(t, errors.Join(test.goes(owner, second), <-woken))
			check.Equal(t, "Await called next", next.Load() > 0, test.next)
			if seen, err := third.Look(ctx); err != nil || seen.Held == test.free {
				t.Errorf("held: %v, %v", seen.Held, err)
			}
		})
	}
}

// watchers counts the watches that the node serves.
func (m *node) watchers(t testing.TB) int {
	t.Helper()
	return m.metric(t, `etcd_debugging_mvcc_watcher_total`)
}

// metric returns the sum of all metrics of the node whose names match.
func (m *node) metric(t testing.TB, name string) (n int) {
	t.Helper()
	answer := must.Get(http.Get("http://" + m.Client + "/metrics"))(t)
	defer answer.Body.Close()
	text := must.Get(io.ReadAll(answer.Body))(t)
	found := regexp.MustCompile(`(?m)^`+name+` (\d+)$`).FindAllSubmatch(text, -1)
	if found == nil {
		t.Fatalf("etcd has no %s", name)
	}
	for _, each := range found {
		n += int(number(t, string(each[1])))
	}
	return n
}

// The last waiter has seen two places in front. Then the first owner leaves, and the second place becomes the
// owner and dies, before the last waiter has looked again.
func TestAWaiterThatDiesAsNewOwnerIsStillSeenAsTheOwner(t *testing.T) {
	t.Parallel()
	s, ctx := open(t, url(startEtcd(t, 1)...)), limited(t)
	// The last waiter reads the heartbeat in front every third of its own lease.
	first, dies := enter(t, s, false, false, lease.DefaultLease), enter(t, s, false, true, limit.ShortestLease)
	last := enter(t, s, false, true, lease.DefaultLease)
	lives, die := context.WithCancel(ctx)
	defer die()
	var renewals sync.WaitGroup
	renewals.Go(func() { // it dies as an owner
		for lives.Err() == nil {
			_ = dies.Renew(lives)
			time.Sleep(20 * time.Millisecond)
		}
	})
	var watching atomic.Bool
	awaited := make(chan error, 1)
	go func() { awaited <- last.Await(ctx, func() { watching.Store(true) }) }()
	for !watching.Load() { // until its watch reports a new record of the place in front
		must.Do(t, dies.Note(ctx, dies.record))
		time.Sleep(20 * time.Millisecond)
		dies.record.Boottime++
	}
	must.Do(t, leave(ctx, first, nil))
	die()
	renewals.Wait()
	must.Do(t, <-awaited)
	seen, err := last.Look(ctx)
	if err != nil || !seen.Held || !seen.Lapsed || seen.Owner.Token != dies.record.Token {
		t.Errorf("the dead owner is not there to be stamped for: held %v, lapsed %v, %v", seen.Held, seen.Lapsed, err)
	}
}
