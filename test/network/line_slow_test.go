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
	"adlock/test/support/check"
	"adlock/test/support/must"
)

func TestManyAtomsAreListedInAFewRequests(t *testing.T) {
	const many = 1100 // more than one answer has
	m := startEtcd(t, 1)[0]
	s, ctx := open(t, url(m)), t.Context()
	for i := range many {
		w := &waiter{record: aRecord(t, false)}
		name := atom.Atom{Program: "p", Host: "h", Operator: "o", Operand: fmt.Sprint("x", i)}.Name()
		place, _, err := s.Enter(ctx, name, w.record, false)
		must.Do(t, err)
		w.Place = place
		must.Do(t, w.unlock(ctx))
	}
	asked := func() int { return m.metric(t, `grpc_server_started_total\{grpc_method="(?:Range|Txn)",.*\}`) }
	before := asked()
	check.Equal(t, "listed are", strings.Count(newHost(t, url(m)).wants(t, "", "status"), " idle "), many)
	if n := asked() - before; n > 5 {
		t.Errorf("the listing asked %d questions", n)
	}
}

func TestAHandOverWakesOneOfAThousandWaiters(t *testing.T) {
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
		all.Go(func() { // if all read the queue at the same time, etcd would be busy for a minute
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
		must.Do(t, leave(ctx, last, nil))
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
	check.Equal(t, "waiters woken", woken.Load(), handOvers)
}
