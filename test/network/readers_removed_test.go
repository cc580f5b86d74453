//go:build soak

package network

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"adlock/lib/lease"
	"adlock/test/support/helper"
)

// A reader whose place a person has removed may read on for a lease. The writer waits for that
// reader, wherever its place was in line. The lease, a minute, is longer than the test.
func TestAWriterWaitsForReadersThatWereRemovedByHand(t *testing.T) {
	nodes := startEtcd(t, 1)
	s := open(t, url(nodes...))
	ctx := limited(t)
	del := func(t *testing.T, w *waiter, keys ...string) {
		for _, key := range keys {
			ctl(t, nodes, "del", "/adlock/p.h.o.x/"+key+"/r/"+w.record.Token)
		}
	}
	for what, remove := range map[string]func(t *testing.T, readers []*waiter) (gone int){
		"nothing":                        func(*testing.T, []*waiter) int { return -1 },
		"the first's place":              func(t *testing.T, r []*waiter) int { del(t, r[0], "line"); return 0 },
		"the second's place":             func(t *testing.T, r []*waiter) int { del(t, r[1], "line"); return 1 },
		"the last's place":               func(t *testing.T, r []*waiter) int { del(t, r[2], "line"); return 2 },
		"the first's place and beat":     func(t *testing.T, r []*waiter) int { del(t, r[0], "line", "beat"); return 0 },
		"the second's place and beat":    func(t *testing.T, r []*waiter) int { del(t, r[1], "line", "beat"); return 1 },
		"the second's beat and place":    func(t *testing.T, r []*waiter) int { del(t, r[1], "beat", "line"); return 1 },
		"the last's beat and place":      func(t *testing.T, r []*waiter) int { del(t, r[2], "beat", "line"); return 2 },
		"and then etcd forgets the past": func(t *testing.T, r []*waiter) int { del(t, r[1], "line", "beat"); compact(t, nodes); return 1 },
	} {
		for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}} {
			t.Run(what+strings.Repeat(", backwards", order[0]/2), func(t *testing.T) {
				defer ctl(t, nodes, "del", "--prefix", "/adlock/")
				var readers []*waiter
				for range 3 {
					r := &waiter{store: s, record: aRecord(t, true)}
					if err := r.lock(ctx); err != nil {
						t.Fatal(err)
					}
					readers = append(readers, r)
				}
				writer, _, err := s.Enter(ctx, "p.h.o.x", aRecord(t, false), 10*time.Minute, true)
				if err != nil {
					t.Fatal(err)
				}
				gone := remove(t, readers)
				for _, i := range order {
					if i == gone {
						continue
					}
					woken := watching(t, ctx, nodes[0], writer)
					if err := leave(ctx, readers[i].place, nil); err != nil {
						t.Fatal(err)
					}
					if err := <-woken; err != nil {
						t.Fatal(err)
					}
					if _, err := writer.Look(ctx); err != nil {
						t.Fatal(err)
					}
				}
				for range 2 {
					if seen, err := writer.Look(ctx); err != nil || seen.Held != (gone >= 0) {
						t.Errorf("held: %v, %v", seen.Held, err)
					}
				}
			})
		}
	}
}

// watching makes p wait until the place in front of it goes. It waits for a second at most, because
// the test may remove another place.
func watching(t *testing.T, ctx context.Context, m *node, p lease.Place) <-chan error {
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
	status := ctl(t, nodes, "endpoint", "status", "-w", "fields")
	_, rest, _ := strings.Cut(status, `"Revision" : `)
	revision, _, _ := strings.Cut(rest, "\n")
	ctl(t, nodes, "compact", revision)
}

// The waiter directly behind the removed place gives up. The waiter behind it saw the removed place
// too, and waits for its owner.
func TestAWaiterBehindOneThatGaveUpWaitsForTheRemoved(t *testing.T) {
	nodes := startEtcd(t, 1)
	s := open(t, url(nodes...))
	ctx := limited(t)
	for _, shared := range []bool{false, true} {
		t.Run(map[bool]string{false: "an owner", true: "a reader"}[shared], func(t *testing.T) {
			defer ctl(t, nodes, "del", "--prefix", "/adlock/")
			removed := &waiter{store: s, record: aRecord(t, shared)}
			if err := removed.lock(ctx); err != nil {
				t.Fatal(err)
			}
			var line []lease.Place
			for range 2 {
				place, seen, err := s.Enter(ctx, "p.h.o.x", aRecord(t, false), 10*time.Minute, true)
				if err != nil || !seen.Held {
					t.Fatal(seen, err)
				}
				line = append(line, place)
			}
			for _, key := range keysOf(t, nodes, "/adlock/p.h.o.x/") {
				if strings.HasSuffix(key, removed.record.Token) {
					ctl(t, nodes, "del", key)
				}
			}
			if seen, err := line[1].Look(ctx); err != nil || !seen.Held { // by line[0]
				t.Fatal(seen, err)
			}
			woken := watching(t, ctx, nodes[0], line[1])
			if err := errors.Join(line[0].Leave(ctx, nil), <-woken); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if seen, err := line[1].Look(ctx); err != nil || !seen.Held {
					t.Errorf("held: %v, %v", seen.Held, err)
				}
			}
		})
	}
}

func TestAReaderThatIsCutOffAndRemovedEndsBeforeAWriterBegins(t *testing.T) {
	nodes := startEtcd(t, 1)
	cable := newRelay(t, nodes[0].client)
	s := url(nodes...)
	a, b, c, d := newHost(t, s).brief(), newHost(t, "etcd://"+cable.address()+"/adlock").brief(), newHost(t, s).brief(), newHost(t, s).brief()
	file := t.TempDir() + "/beats"
	one := a.start(t, "sleep 60", "--shared")
	two := b.start(t, beats(file), "--shared")
	key := keysOf(t, nodes, "/adlock/p.shared.o.x/line/r/")
	three := c.start(t, "sleep 60", "--shared")
	writer := d.command(begins, "--wait=80s").Start(t)
	helper.Eventually(t, "the writer waits", func() bool { return len(keysOf(t, nodes, "/adlock/p.shared.o.x/line/w/")) == 1 })
	cable.cut()
	byAge := strings.Fields(ctl(t, nodes, "get", "--prefix", "--keys-only", "--sort-by=CREATE", "--order=ASCEND", "/adlock/p.shared.o.x/line/r/"))
	if len(key) != 2 || len(byAge) != 3 {
		t.Fatal(key, byAge)
	}
	ctl(t, nodes, "del", byAge[1])
	for _, p := range []*helper.Process{three, one} {
		stop(t, p)
	}
	if status := writer.Wait(t); status != 0 {
		t.Fatalf("%d: %s", status, writer.Output())
	}
	two.Wait(t)
	t.Logf("the writer began %v after the last sign of the reader that was removed", margin(t, file, writer.Output()))
}
