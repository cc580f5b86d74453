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
	"syscall"
	"testing"
	"time"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/lease"
	"adlock/lib/lease/etcd"
	"adlock/lib/limit"
	"adlock/lib/process"
	"adlock/lib/record"
	"adlock/test/support/helper"
)

func aRecord(t testing.TB, shared bool) lease.Record {
	t.Helper()
	me, err := process.Of(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	return lease.Record{Taken: time.Now(), Record: record.Record{Shared: shared,
		Owner: me, Token: record.NewToken(), Boottime: process.Boottime(), ExpireAfter: time.Hour,
		Atom: atom.Atom{Program: "p", Host: "h", Operator: "o", Operand: "x"},
	}}
}

func open(t testing.TB, address string) *etcd.Store {
	t.Helper()
	s, err := etcd.Open(address)
	if err != nil {
		t.Fatal(err)
	}
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

func TestReadersShareAndAWriterIsAlone(t *testing.T) {
	t.Parallel()
	s := url(startEtcd(t, 1)...)
	a, b, c := newHost(t, s), newHost(t, s), newHost(t, s)
	one := a.start(t, "sleep 60", "--shared")
	two := b.start(t, "sleep 60", "--shared")
	c.run(t, "echo ran").Denied(t)
	writer := c.command("echo wrote", "--wait=60s").Start(t)
	// A reader does not overtake a waiting writer: otherwise the writer might wait for ever.
	var late string
	helper.Eventually(t, "the writer stands in line", func() bool {
		r := a.run(t, "echo read", "--shared")
		late = r.Out
		return r.Status == 75
	})
	if late != "" {
		t.Errorf("read: %q", late)
	}
	one.Signal(t, syscall.SIGTERM)
	two.Signal(t, syscall.SIGTERM)
	endsWith(t, writer, 0, "wrote\n")
	a.run(t, "echo ran", "--shared").Ran(t)
}

// A waiter concludes from how the place directly in front goes whether any other place is left. In
// each case that place goes in another way; the waiter may get the atom only if it is then first.
func TestQueueHeadIsPromotedOnlyBehindOwner(t *testing.T) {
	t.Parallel()
	nodes := startEtcd(t, 1)
	s := open(t, url(nodes...))
	var ctx context.Context // of each way
	handOver := func(owner, second *waiter) error {
		if err := owner.unlock(ctx); err != nil {
			return err
		}
		second.record.Taken = time.Now()
		if _, err := second.place.Look(ctx); err != nil {
			return err
		}
		return second.place.Note(ctx, second.record)
	}
	for way, test := range map[string]struct {
		shared bool                              // the second is a reader
		goes   func(owner, second *waiter) error // then the third looks
		next   bool                              // the third found that only an owner is in front
		free   bool                              // the third then has the atom
	}{
		"it gave up waiting": {false, func(_, second *waiter) error { return second.place.Leave(ctx, nil) }, false, false},
		"it was removed by hand": {false, func(_, second *waiter) error {
			return s.Remove(ctx, "p.h.o.x", second.record.Token)
		}, false, false},
		"the owner went before it": {false, func(owner, second *waiter) error {
			if err := handOver(owner, second); err != nil {
				return err
			}
			return second.unlock(ctx)
		}, true, true},
		"the owner went before it, and its record never said so": {false, func(owner, second *waiter) error {
			return errors.Join(owner.unlock(ctx), second.unlock(ctx))
		}, false, true},
		"the owner went before it, and left no last lock": {false, func(owner, second *waiter) error {
			if err := handOver(owner, second); err != nil {
				return err
			}
			return second.place.Leave(ctx, nil)
		}, true, true},
		"only its place was removed, and its beat is left": {false, func(owner, second *waiter) error {
			if err := handOver(owner, second); err != nil {
				return err
			}
			ctl(t, nodes, "del", "/adlock/p.h.o.x/line/w/"+second.record.Token)
			return nil
		}, true, false},
		"its place was removed, and then its beat": {false, func(owner, second *waiter) error {
			err := handOver(owner, second)
			for _, key := range []string{"line/w/", "beat/w/"} {
				ctl(t, nodes, "del", "/adlock/p.h.o.x/"+key+second.record.Token)
			}
			return err
		}, true, false},
		"its beat was removed, and then its place": {false, func(owner, second *waiter) error {
			err := handOver(owner, second)
			for _, key := range []string{"beat/w/", "line/w/"} {
				ctl(t, nodes, "del", "/adlock/p.h.o.x/"+key+second.record.Token)
			}
			return err
		}, true, false},
		"it was a reader, beside another": {true, func(_, second *waiter) error { return second.unlock(ctx) }, false, false},
	} {
		t.Run(way, func(t *testing.T) {
			var cancel func()
			ctx, cancel = context.WithTimeout(context.Background(), helper.Patience)
			defer cancel()
			owner := &waiter{store: s, record: aRecord(t, test.shared)}
			if err := owner.lock(ctx); err != nil {
				t.Fatal(err)
			}
			second := &waiter{store: s, record: aRecord(t, test.shared)}
			third := &waiter{store: s, record: aRecord(t, false)}
			for _, w := range []*waiter{second, third} {
				var err error
				if w.place, _, err = s.Enter(ctx, "p.h.o.x", w.record, 10*time.Minute, true); err != nil {
					t.Fatal(err)
				}
				if !w.record.Shared {
					w.record.Taken = time.Time{}
				}
				if err = w.place.Note(ctx, w.record); err != nil {
					t.Fatal(err)
				}
			}
			woken := make(chan error, 1)
			var next atomic.Int64
			helper.Eventually(t, "no client watches any more", func() bool { return nodes[0].watchers(t) == 0 })
			go func() { woken <- third.place.Await(ctx, func() { next.Add(1) }) }()
			helper.Eventually(t, "it watches", func() bool { return nodes[0].watchers(t) > 0 })
			if next.Load() != 0 {
				t.Error("Await called next too early")
			}
			if err := test.goes(owner, second); err != nil {
				t.Fatal(err)
			}
			if err := <-woken; err != nil {
				t.Fatal(err)
			}
			if called := next.Load() > 0; called != test.next {
				t.Errorf("Await called next: %v", called)
			}
			for range 2 { // when no place is in front, the second look asks no more
				if seen, err := third.place.Look(ctx); err != nil || seen.Held == test.free {
					t.Errorf("held: %v, %v", seen.Held, err)
				}
			}
			for _, w := range []*waiter{owner, second, third} {
				_ = w.place.Leave(ctx, nil) // it may be gone
			}
			ctl(t, nodes, "del", "--prefix", "/adlock/")
		})
	}
}

// watchers counts the watches that the node serves.
func (m *node) watchers(t testing.TB) int {
	t.Helper()
	found := regexp.MustCompile(`(?m)^etcd_debugging_mvcc_watcher_total (\d+)$`).FindStringSubmatch(fetched(t, "http://"+m.client+"/metrics"))
	if found == nil {
		t.Fatal("etcd does not say how many watch")
	}
	return int(number(t, found[1]))
}

// A waiter at any place in line that finds the owner dead stamps the last lock for it. Then that
// waiter may give up: its stamp does not show that it was an owner.
func TestAWaiterThatStampedForADeadOwnerWasNotFirst(t *testing.T) {
	t.Parallel()
	s := open(t, url(startEtcd(t, 1)...))
	ctx := limited(t)
	enter := func(length time.Duration) *waiter {
		w := &waiter{store: s, record: aRecord(t, false)}
		var err error
		if w.place, _, err = s.Enter(ctx, "p.h.o.x", w.record, length, true); err != nil {
			t.Fatal(err)
		}
		return w
	}
	dead := enter(time.Second)
	enter(10 * time.Minute) // the next one
	passer, behind := enter(10*time.Minute), enter(10*time.Minute)
	woken := make(chan error, 1)
	go func() { woken <- behind.place.Await(ctx, func() {}) }()
	helper.Eventually(t, "the owner is dead", func() bool {
		seen, err := passer.place.Look(ctx)
		return err == nil && seen.Lapsed
	})
	stamp := &lease.Last{Token: passer.record.Token}
	stamp.Completed = time.Now()
	if err := errors.Join(passer.place.Pass(ctx, dead.record.Token, stamp), passer.place.Leave(ctx, nil), <-woken); err != nil {
		t.Fatal(err)
	}
	if seen, err := behind.place.Look(ctx); err != nil || !seen.Held || seen.Last.Token != stamp.Token {
		t.Errorf("held: %v, stamped by %q, %v", seen.Held, seen.Last.Token, err)
	}
}

// The last waiter has seen two places in front. Then the first owner leaves, and the place between
// becomes the owner's; the waiter has not looked since.
func TestADeadOwnerIsNotRemovedAsAWaiter(t *testing.T) {
	t.Parallel()
	s := open(t, url(startEtcd(t, 1)...))
	ctx := limited(t)
	record := aRecord(t, false)
	var places [3]lease.Place
	for i, own := range []lease.Record{aRecord(t, false), record, aRecord(t, false)} {
		length := lease.DefaultLease // the waiter looks at the heartbeat in front every third of its own
		if i == 1 {
			length = limit.ShortestLease
		}
		var err error
		if places[i], _, err = s.Enter(ctx, "p.h.o.x", own, length, true); err != nil {
			t.Fatal(err)
		}
	}
	lives, dies := context.WithCancel(ctx)
	defer dies()
	var renewals sync.WaitGroup
	renewals.Go(func() { // it dies as an owner
		for lives.Err() == nil {
			_ = places[1].Renew(lives)
			time.Sleep(20 * time.Millisecond)
		}
	})
	watches, awaited := make(chan struct{}, 1), make(chan error, 1)
	go func() {
		awaited <- places[2].Await(ctx, func() {
			select {
			case watches <- struct{}{}:
			default:
			}
		})
	}()
	for watching := false; !watching; { // until its watch reports a new record of the place in front
		if err := places[1].Note(ctx, record); err != nil {
			t.Fatal(err)
		}
		select {
		case <-watches:
			watching = true
		case <-time.After(20 * time.Millisecond):
			record.Boottime++
		}
	}
	if err := leave(ctx, places[0], nil); err != nil {
		t.Fatal(err)
	}
	dies()
	renewals.Wait()
	if err := <-awaited; err != nil {
		t.Fatal(err)
	}
	seen, err := places[2].Look(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if !seen.Held || !seen.Lapsed || seen.Owner.Token != record.Token {
		t.Errorf("the dead owner is not there to be stamped for: held %v, lapsed %v, by %q", seen.Held, seen.Lapsed, seen.Owner.Token)
	}
}

func fetched(t testing.TB, address string) string {
	t.Helper()
	answer, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// waiter waits for the atom p.h.o.x as package lease does.
type waiter struct {
	store  *etcd.Store
	record lease.Record
	place  lease.Place
	noted  sync.WaitGroup
}

func (w *waiter) lock(ctx context.Context) (err error) {
	var seen lease.Snapshot
	w.place, seen, err = w.store.Enter(ctx, "p.h.o.x", w.record, 10*time.Minute, true)
	if err != nil || !seen.Held {
		return err
	}
	w.record.Taken = time.Time{}
	if err = w.place.Note(ctx, w.record); err != nil {
		return err
	}
	for seen.Held {
		if err = w.place.Await(ctx, func() {}); err != nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		if seen, err = w.place.Look(ctx); err != nil {
			return err
		}
	}
	w.record.Taken = time.Now()
	w.noted.Go(func() { _ = w.place.Note(ctx, w.record) }) // after unlock it has no effect
	return nil
}

func (w *waiter) unlock(ctx context.Context) error {
	last := &lease.Last{Token: w.record.Token}
	last.Completed = time.Now()
	return leave(ctx, w.place, last)
}
