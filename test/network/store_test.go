package network

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"adlock/lib/fault"
	"adlock/lib/lease"
	"adlock/lib/policy"
	"adlock/test/support/helper"
	"adlock/test/support/memory"
	"adlock/test/support/must"
	"adlock/test/support/relay"
)

// stores has a row for each kind of store: it starts one, and returns a function that makes a host of
// it, and one that opens it anew, as another process would.
var stores = map[string]func(t testing.TB) (host func() *host, open func() lease.Store){
	"etcd": func(t testing.TB) (func() *host, func() lease.Store) {
		address := url(startEtcd(t, 1)...)
		return func() *host { return newHost(t, address) }, func() lease.Store { return open(t, address) }
	},
	"ftp": func(t testing.TB) (func() *host, func() lease.Store) {
		f := startFTP(t, "")
		return func() *host { return f.host(t) }, func() lease.Store { return openFTP(t, f.Address) }
	},
}

// onEachStore runs the test with two hosts of each kind of store.
func onEachStore(t *testing.T, test func(t *testing.T, a, b *host)) {
	for kind, start := range stores {
		t.Run(kind, func(t *testing.T) {
			host, _ := start(t)
			test(t, host(), host())
		})
	}
}

// Every store has to pass these steps. Each step has the atom to itself.
func TestEachStoreFulfilsTheContractOfLeaseStore(t *testing.T) {
	t.Parallel()
	inMemory := new(memory.Store)
	opens := map[string]func() lease.Store{"memory": func() lease.Store { return inMemory }}
	for kind, start := range stores {
		_, opens[kind] = start(t)
	}
	p := relay.NewTeller(t, "127.0.0.1", startFTP(t, "").Address)
	p.Answers("RNFR", "550 Renaming is disabled.")
	opens["ftp without renaming"] = func() lease.Store { return openFTP(t, p.Address()) }
	for kind, open := range opens {
		for claim, test := range map[string]func(t *testing.T, a, b lease.Store){
			"an owner excludes newcomers until it leaves": excludes,
			"a fence grows": fenceGrows,
			"only a lease without a sign of life is over": lapses,
			"a heartbeat keeps the place":                 keeps,
			"an owner is asked to end its job":            asks,
			"a waiter is woken once the owner has left":   wakes,
			"a lock is removed once":                      removesOnce,
			"readers share, or are refused":               shares,
			"a tick is claimed once, or is refused":       claimsOnce,
			"a listing names the owner":                   lists,
		} {
			t.Run(kind+", "+claim, func(t *testing.T) {
				a, b := open(), open()
				test(t, a, b)
				seen, err := b.List(limited(t))
				for i := range seen {
					for _, record := range append(seen[i].Behind, seen[i].Owner) {
						if seen[i].Held {
							err = errors.Join(err, a.Remove(limited(t), seen[i].Name, record.Token))
						}
					}
				}
				must.Do(t, err)
			})
		}
	}
}

// finds fails the test unless a newcomer finds the atom held, or free, as wanted.
func finds(t *testing.T, s lease.Store, held bool) lease.Snapshot {
	t.Helper()
	seen, err := s.Look(limited(t), "p.h.o.x", false)
	if err != nil || seen.Held != held {
		t.Fatalf("held: %v, %v", seen.Held, err)
	}
	return seen
}

func excludes(t *testing.T, a, b lease.Store) {
	ctx := limited(t)
	owner := enter(t, a, false, false, lasts)
	if seen := finds(t, b, true); seen.Owner.Token != owner.record.Token || seen.Lapsed || seen.Silent || seen.Bare {
		t.Errorf("found %+v", seen)
	}
	if place, seen, err := b.Enter(ctx, "p.h.o.x", aRecord(t, false), false); place != nil || !seen.Held || err != nil {
		t.Errorf("a newcomer that does not queue got %v, %v", place, err)
	}
	must.Do(t, owner.unlock(ctx))
	if last := finds(t, b, false).Last; last.Token != owner.record.Token || time.Since(last.Completed).Abs() > helper.Patience {
		t.Errorf("the last lock is %+v", last)
	}
	if err := owner.Renew(ctx); !errors.Is(err, lease.ErrGone) && err != nil {
		t.Errorf("after it left: %v", err)
	}
}

func fenceGrows(t *testing.T, a, b lease.Store) {
	var before uint64
	for _, s := range []lease.Store{a, b, a} {
		owner := enter(t, s, false, false, lasts)
		if fence := owner.Fence(); fence <= before {
			t.Errorf("%d follows %d", fence, before)
		} else {
			before = fence
		}
		must.Do(t, owner.Leave(limited(t), nil))
	}
}

func lapses(t *testing.T, a, b lease.Store) {
	const length = 2 * time.Second
	ctx, began := limited(t), time.Now()
	owner := enter(t, a, false, false, length)
	waiter := enter(t, b, false, true, lasts)
	helper.Eventually(t, "the owner is dead", func() bool {
		seen, err := waiter.Look(ctx)
		return err == nil && seen.Lapsed
	})
	if spent := time.Since(began); spent < length {
		t.Errorf("dead after %v", spent)
	}
	stamp := &lease.Last{Token: waiter.record.Token}
	stamp.Completed = time.Now()
	must.Do(t, waiter.Pass(ctx, owner.record.Token, stamp))
	seen, err := waiter.Look(ctx)
	if err != nil || seen.Held {
		t.Fatalf("held: %v, %v", seen.Held, err)
	}
	if last, err := b.Look(ctx, "p.h.o.x", false); err != nil || last.Last.Token != stamp.Token {
		t.Errorf("stamped by %q, %v", last.Last.Token, err)
	}
	for what, err := range map[string]error{
		"renew": owner.Renew(ctx), "note": owner.Note(ctx, owner.record), "leave": owner.unlock(ctx),
	} {
		if !errors.Is(err, lease.ErrGone) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func keeps(t *testing.T, a, b lease.Store) {
	const length = 2 * time.Second
	ctx := limited(t)
	owner := enter(t, a, false, false, length)
	waiter := enter(t, b, false, true, lasts)
	helper.Eventually(t, "the owner seems to be dead", func() bool {
		seen, err := waiter.Look(ctx)
		return err == nil && seen.Lapsed
	})
	must.Do(t, errors.Join(owner.Renew(ctx), waiter.Pass(ctx, owner.record.Token, nil)))
	if seen, err := waiter.Look(ctx); err != nil || !seen.Held || seen.Lapsed {
		t.Errorf("held: %v, lapsed: %v, %v", seen.Held, seen.Lapsed, err)
	}
}

func asks(t *testing.T, a, b lease.Store) {
	ctx := limited(t)
	owner := enter(t, a, false, false, lasts)
	waiter := enter(t, b, false, true, lasts)
	if first, err := waiter.Ask(ctx, owner.record.Token, 3*time.Second); !first || err != nil {
		t.Fatal(first, err)
	}
	if pause, err := owner.Asked(ctx); pause != 3*time.Second || err != nil {
		t.Error(pause, err)
	}
	owner.record.Stuck = "it cannot"
	must.Do(t, owner.Note(ctx, owner.record))
	if seen, err := waiter.Look(ctx); err != nil || seen.Owner.Stuck != "it cannot" {
		t.Errorf("%+v, %v", seen.Owner, err)
	}
	if again, err := waiter.Ask(ctx, owner.record.Token, time.Second); again && waiter.InLine() || err != nil {
		t.Error(again, err)
	}
	must.Do(t, waiter.Leave(ctx, nil))
}

func wakes(t *testing.T, a, b lease.Store) {
	ctx, woken := limited(t), make(chan error)
	owner := enter(t, a, false, false, lasts)
	waiter := enter(t, b, false, true, lasts)
	go func() { woken <- waiter.Await(ctx, func() {}) }()
	must.Do(t, owner.unlock(ctx))
	must.Do(t, errors.Join(<-woken, ctx.Err()))
	if seen, err := waiter.Look(ctx); err != nil || seen.Held {
		t.Errorf("held: %v, %v", seen.Held, err)
	}
}

func removesOnce(t *testing.T, a, b lease.Store) {
	ctx := limited(t)
	owner := enter(t, a, false, false, lasts)
	finds(t, b, true)
	must.Do(t, owner.Renew(ctx)) // it was only suspended
	if err := b.Remove(ctx, "p.h.o.x", owner.record.Token); fault.KindOf(err) != fault.NotPermitted {
		t.Errorf("a living owner's lock is removed: %v", err)
	}
	finds(t, b, true)
	must.Do(t, b.Remove(ctx, "p.h.o.x", owner.record.Token))
	finds(t, b, false)
	if err := b.Remove(ctx, "p.h.o.x", owner.record.Token); !errors.Is(err, lease.ErrGone) {
		t.Error(err)
	}
}

func shares(t *testing.T, a, b lease.Store) {
	_, err := a.Look(limited(t), "p.h.o.x", true)
	if fault.KindOf(err) == fault.Usage {
		if _, _, err := a.Enter(limited(t), "p.h.o.x", aRecord(t, true), true); fault.KindOf(err) != fault.Usage {
			t.Errorf("refused to look alone: %v", err)
		}
		return
	}
	enter(t, a, true, false, lasts)
	enter(t, b, true, false, lasts)
	finds(t, b, true)
	enter(t, a, false, true, lasts)
	if seen, err := b.Look(limited(t), "p.h.o.x", true); err != nil || !seen.Held {
		t.Errorf("a reader may overtake a writer: %v", err)
	}
}

func claimsOnce(t *testing.T, a, b lease.Store) {
	ctx, tick := limited(t), policy.Tick{Period: time.Hour, Number: 7}
	_, err := a.HasTick(ctx, "p.h.o.x", tick)
	refused := fault.KindOf(err) == fault.Usage
	owner := enter(t, a, false, false, lasts)
	claims := func(w *waiter, want bool) {
		t.Helper()
		if claimed, err := w.ClaimTick(ctx, tick); claimed != want && !refused || (fault.KindOf(err) == fault.Usage) != refused {
			t.Errorf("claimed: %v, %v", claimed, err)
		}
	}
	claims(owner, true)
	claims(owner, true) // the answer to the first may have been lost
	must.Do(t, owner.Leave(ctx, nil))
	next := enter(t, b, false, false, lasts)
	claims(next, false)
	if used, err := b.HasTick(ctx, "p.h.o.x", tick); used == refused || (err != nil) != refused {
		t.Errorf("used: %v, %v", used, err)
	}
	if tick.Number++; !refused {
		claims(next, true)
		must.Do(t, next.DisclaimTick(ctx, tick))
		must.Do(t, next.Leave(ctx, nil))
		claims(enter(t, a, false, false, lasts), true)
	}
}

func lists(t *testing.T, a, b lease.Store) {
	owner := enter(t, a, false, false, lasts)
	found, err := b.List(context.Background())
	i := slices.IndexFunc(found, func(l lease.Listed) bool { return l.Name == "p.h.o.x" })
	if err != nil || i < 0 || found[i].Err != nil || found[i].Owner.Token != owner.record.Token {
		t.Errorf("listed %+v, %v", found, err)
	}
}
