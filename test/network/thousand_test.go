//go:build soak

package network

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"adlock/lib/atom"
	"adlock/lib/lease"
	"adlock/lib/record"
)

const many = 1000

// completed are many atoms, each completed once.
func completed() (names []atom.Name, last lease.Last) {
	for i := range many {
		names = append(names, atom.Atom{Program: "p", Host: "h", Operator: "o", Operand: fmt.Sprintf("x%04d", i)}.Name())
	}
	return names, lease.Last{Token: record.NewToken(), Last: record.Last{Completed: time.Now()}}
}

func listsMany(t *testing.T, h *host) {
	t.Helper()
	h.verb(t, "status") // the first call loads the programs
	began := time.Now()
	out := h.wants(t, "", "status")
	t.Logf("%d atoms in %v", many, time.Since(began).Round(time.Millisecond))
	if n := strings.Count(out, " idle "); n != many {
		t.Errorf("listed are %d", n)
	}
}

func TestAThousandAtomsAreListedInAFewQuestions(t *testing.T) {
	m := startEtcd(t, 1)
	s := open(t, url(m...))
	names, last := completed()
	var all sync.WaitGroup
	next := make(chan atom.Name)
	for range 16 {
		all.Go(func() {
			for name := range next {
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				place, _, err := s.Enter(ctx, name, aRecord(t, false), time.Minute, false)
				if err == nil {
					err = place.Leave(ctx, &last)
				}
				if err != nil {
					t.Error(name, err)
				}
				cancel()
			}
		})
	}
	for _, name := range names {
		next <- name
	}
	close(next)
	all.Wait()
	h := newHost(t, url(m...))
	before := ranges(t, m[0])
	listsMany(t, h)
	if asked := ranges(t, m[0]) - before; asked > 8 {
		t.Errorf("two listings asked %d questions", asked)
	}
}

// ranges counts the reads that clients have asked the node for.
func ranges(t testing.TB, m *node) (n int) {
	t.Helper()
	text := fetched(t, "http://"+m.client+"/metrics")
	for _, found := range regexp.MustCompile(`(?m)^grpc_server_started_total\{grpc_method="(?:Range|Txn)",.*\} (\d+)$`).FindAllStringSubmatch(text, -1) {
		more, _ := strconv.Atoi(found[1])
		n += more
	}
	return n
}

func TestAThousandAtomsOnFTPAreListed(t *testing.T) {
	f := startFTP(t, "")
	account, err := user.Lookup("ftp")
	if err != nil {
		t.Fatal(err)
	}
	uid, _ := strconv.Atoi(account.Uid)
	names, last := completed()
	for _, name := range names {
		dir := f.root + "/" + name.Generation(1)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		for _, file := range []string{dir + "/released", f.root + "/" + name.LastLock()} {
			if err := os.WriteFile(file, last.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
			_ = os.Chown(file, uid, -1)
		}
		_ = os.Chown(dir, uid, -1)
	}
	listsMany(t, f.host(t))
}

func TestHandOverWakesOneOfAThousand(t *testing.T) {
	const waiters = 1000
	s := open(t, url(startEtcd(t, 1)...))
	var all sync.WaitGroup
	defer all.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	const length = 20 * time.Minute // of the leases, which are not renewed
	first, seen, err := s.Enter(ctx, "p.h.o.x", aRecord(t, false), length, true)
	if err != nil || seen.Held {
		t.Fatal(seen, err)
	}
	var woken atomic.Int64
	places := make([]lease.Place, waiters)
	turns := make(chan int, waiters)
	for i := range places {
		place, seen, err := s.Enter(ctx, "p.h.o.x", aRecord(t, false), length, true)
		if err != nil || !seen.Held {
			t.Fatal(seen, err)
		}
		places[i] = place
		all.Go(func() { // if all looked at the line at the same time, etcd would be busy for a minute
			for {
				if err := place.Await(ctx, func() {}); err != nil {
					t.Error(err)
					return
				}
				if ctx.Err() != nil {
					return
				}
				woken.Add(1)
				seen, err := place.Look(ctx)
				if ctx.Err() != nil {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				if !seen.Held {
					turns <- i
					return
				}
			}
		})
	}
	const handOvers = 50 // more would show nothing new
	began := time.Now()
	last := first
	for n := range handOvers {
		if n == handOvers/2 {
			began = time.Now() // by now the thousand are in line and rest
		}
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
	took := time.Since(began)
	if woken.Load() != handOvers {
		t.Errorf("%d hand-overs woke %d of %d waiters", handOvers, woken.Load(), waiters)
	}
	t.Logf("%d hand-overs among %d waiters woke %d, %v each", handOvers, waiters, woken.Load(), (took / (handOvers / 2)).Round(10*time.Microsecond))
}
