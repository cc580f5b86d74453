//go:build soak

package network

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"adlock/lib/atom"
	"adlock/lib/lease"
	"adlock/test/support/helper"
)

// A reader whose place a person has removed may read on for a lease. The writer waits for that
// reader, wherever its place was in line. The lease is longer than the test.
func TestAWriterWaitsForReadersThatWereRemovedByHand(t *testing.T) {
	nodes := startEtcd(t, 1)
	s := open(t, url(nodes...))
	for what, test := range map[string]struct {
		reader int // -1: none
		keys   []string
		forget bool // etcd then forgets the past
	}{
		"nothing":                        {reader: -1},
		"the first's place":              {0, []string{"line"}, false},
		"the second's place":             {1, []string{"line"}, false},
		"the last's place":               {2, []string{"line"}, false},
		"the first's place and beat":     {0, []string{"line", "beat"}, false},
		"the second's place and beat":    {1, []string{"line", "beat"}, false},
		"the second's beat and place":    {1, []string{"beat", "line"}, false},
		"the last's beat and place":      {2, []string{"beat", "line"}, false},
		"and then etcd forgets the past": {1, []string{"line", "beat"}, true},
	} {
		for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}} {
			t.Run(what+strings.Repeat(", backwards", order[0]/2), func(t *testing.T) {
				defer ctl(t, nodes, "del", "--prefix", "/adlock/")
				ctx := limited(t)
				var readers []*waiter
				for range 3 {
					readers = append(readers, enter(t, s, true, false, lasts))
				}
				writer := enter(t, s, false, true, lasts)
				for _, key := range test.keys {
					ctl(t, nodes, "del", "/adlock/p.h.o.x/"+key+"/r/"+readers[test.reader].record.Token)
				}
				if test.forget {
					compact(t, nodes)
				}
				for _, i := range order {
					if i == test.reader {
						continue
					}
					woken := watching(ctx, t, nodes[0], writer)
					err := errors.Join(leave(ctx, readers[i], nil), <-woken)
					if _, looked := writer.Look(ctx); errors.Join(err, looked) != nil {
						t.Fatal(err, looked)
					}
				}
				for range 2 {
					if seen, err := writer.Look(ctx); err != nil || seen.Held != (test.reader >= 0) {
						t.Errorf("held: %v, %v", seen.Held, err)
					}
				}
			})
		}
	}
}

// watching makes p wait until the place in front of it goes. It waits for a second at most, because
// the test may remove another place.
func watching(ctx context.Context, t *testing.T, m *node, p lease.Place) <-chan error {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	t.Cleanup(cancel)
	woken := make(chan error, 1)
	helper.Eventually(t, "no client watches any more", func() bool { return m.watchers(t) == 0 })
	go func() { woken <- p.Await(ctx, func() {}) }()
	helper.Eventually(t, "it watches", func() bool { return m.watchers(t) > 0 || ctx.Err() != nil })
	return woken
}

// compact has etcd compact all revisions before the present one.
func compact(t testing.TB, nodes []*node) {
	t.Helper()
	_, rest, _ := strings.Cut(ctl(t, nodes, "endpoint", "status", "-w", "fields"), `"Revision" : `)
	revision, _, _ := strings.Cut(rest, "\n")
	ctl(t, nodes, "compact", revision)
}

// The waiter directly behind the removed place gives up. The waiter behind it saw the removed place
// too, and waits for its owner.
func TestAWaiterBehindOneThatGaveUpWaitsForTheRemoved(t *testing.T) {
	nodes := startEtcd(t, 1)
	s, ctx := open(t, url(nodes...)), limited(t)
	for _, shared := range []bool{false, true} {
		t.Run(map[bool]string{false: "an owner", true: "a reader"}[shared], func(t *testing.T) {
			defer ctl(t, nodes, "del", "--prefix", "/adlock/")
			removed := enter(t, s, shared, false, lasts)
			next, last := enter(t, s, false, true, lasts), enter(t, s, false, true, lasts)
			for _, key := range keysOf(t, nodes, "/adlock/p.h.o.x/") {
				if strings.HasSuffix(key, removed.record.Token) {
					ctl(t, nodes, "del", key)
				}
			}
			if seen, err := last.Look(ctx); err != nil || !seen.Held { // by the next
				t.Fatal(seen, err)
			}
			woken := watching(ctx, t, nodes[0], last)
			if err := errors.Join(next.Leave(ctx, nil), <-woken); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if seen, err := last.Look(ctx); err != nil || !seen.Held {
					t.Errorf("held: %v, %v", seen.Held, err)
				}
			}
		})
	}
}

func TestManyAtomsAreListedInAFewQuestions(t *testing.T) {
	const many = 1100 // more than one answer has
	m := startEtcd(t, 1)[0]
	s, ctx := open(t, url(m)), t.Context()
	for i := range many {
		w := &waiter{record: aRecord(t, false)}
		name := atom.Atom{Program: "p", Host: "h", Operator: "o", Operand: fmt.Sprint("x", i)}.Name()
		var err error
		if w.Place, _, err = s.Enter(ctx, name, w.record, time.Minute, false); err == nil {
			err = w.unlock(ctx)
		}
		if err != nil {
			t.Fatal(name, err)
		}
	}
	asked := func() int { return m.metric(t, `grpc_server_started_total\{grpc_method="(?:Range|Txn)",.*\}`) }
	before := asked()
	if n := strings.Count(newHost(t, url(m)).wants(t, "", "status"), " idle "); n != many {
		t.Errorf("listed are %d", n)
	}
	if n := asked() - before; n > 5 {
		t.Errorf("the listing asked %d questions", n)
	}
}

func TestHandOverWakesOneOfAThousand(t *testing.T) {
	const waiters, length, handOvers = 1000, 20 * time.Minute, 50 // the leases are not renewed
	s := open(t, url(startEtcd(t, 1)...))
	var all sync.WaitGroup
	defer all.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	last := enter(t, s, false, false, length)
	var woken atomic.Int64
	places := make([]*waiter, waiters)
	turns := make(chan int, waiters)
	for i := range places {
		places[i] = enter(t, s, false, true, length)
		all.Go(func() { // if all looked at the line at the same time, etcd would be busy for a minute
			for held := true; held; {
				err := places[i].Await(ctx, func() {})
				if ctx.Err() != nil {
					return
				}
				woken.Add(1)
				seen, looked := places[i].Look(ctx)
				if ctx.Err() != nil {
					return
				}
				if err = errors.Join(err, looked); err != nil {
					t.Error(err)
					return
				}
				held = seen.Held
			}
			turns <- i
		})
	}
	for n := range handOvers { // more would show nothing new
		if err := leave(ctx, last, nil); err != nil {
			t.Fatal(err)
		}
		select {
		case i := <-turns:
			if i != n {
				t.Fatalf("number %d came before number %d", i, n)
			}
			last = places[i]
		case <-ctx.Done():
			t.Fatalf("no waiter took over, hand-over %d", n)
		}
	}
	if woken.Load() != handOvers {
		t.Errorf("%d hand-overs woke %d of %d waiters", handOvers, woken.Load(), waiters)
	}
}
