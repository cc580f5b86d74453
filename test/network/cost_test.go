//go:build soak

package network

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"

	"adlock/test/support/need"
)

// `etcdctl lock` does less: no record, no last lock, no watchdog. The bound is for a busy machine;
// the test prints the figure.
func TestARunCostsAtMostThriceEtcdctlLock(t *testing.T) {
	m := startEtcd(t, 1)[0]
	h := newHost(t, url(m)).brief()
	smith := filepath.Join(filepath.Dir(h.bin), "adlock-locksmith")
	ours := func() *exec.Cmd { return exec.Command(smith, "run", "--", "true") }
	theirs := func() *exec.Cmd { return exec.Command("etcdctl", "--endpoints", m.client, "lock", "bench", "true") }
	var us, them []time.Duration
	for n := range 40 {
		a, b := h.time(t, theirs()), h.time(t, ours())
		if n >= 5 { // the first runs are slower
			them, us = append(them, a), append(us, b)
		}
	}
	t.Logf("acquire and release: %v; etcdctl lock: %v; ratio %.2f", median(us), median(them), ratio(us, them))
	if r := ratio(us, them); r > 3 {
		t.Errorf("%.2f times etcdctl lock", r)
	}
}

// TestHandOverBesideEtcdctl prints how long it takes from the end of a job to the
// beginning of the next, which waits in another process, beside `etcdctl lock`.
func TestHandOverBesideEtcdctl(t *testing.T) {
	for _, waiters := range line(1, 100) {
		m := startEtcd(t, 1)[0]
		h := newHost(t, url(m)).brief()
		smith := filepath.Join(filepath.Dir(h.bin), "adlock-locksmith")
		us := handOvers(t, waiters, m, h.byCommand(t, smith, "run", "--wait=5m", "--"))
		them := handOvers(t, waiters, m, h.byCommand(t, "etcdctl", "--endpoints", m.client, "lock", "hand", "--"))
		t.Logf("%4d wait: %v from job to job; etcdctl lock: %v; ratio %.2f", waiters, median(us), median(them), ratio(us, them))
	}
}

// byCommand makes contenders that run a job under a lock: it prints a word, and ends when its
// input does.
func (h *host) byCommand(t testing.TB, lock ...string) func() contender {
	return func() contender {
		input := filepath.Join(t.TempDir(), "input") // etcdctl gives its command no standard input
		start := func(ctx context.Context) error {
			c := exec.CommandContext(ctx, lock[0], append(lock[1:len(lock):len(lock)], "sh", "-c", "echo in; read -r _ <"+input)...)
			c.Env = append(need.Clean(), h.env...)
			out, err := c.StdoutPipe()
			if err = errors.Join(err, syscall.Mkfifo(input, 0o600)); err == nil {
				err = c.Start()
			}
			if err != nil {
				return err
			}
			t.Cleanup(func() {
				_ = c.Wait() // ended, or killed: a killed etcdctl leaves its job running
				if left, err := os.OpenFile(input, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
					_, _ = left.WriteString("go\n")
					left.Close()
				}
			})
			return awaitWord(bufio.NewReader(out))
		}
		return contender{start, func(context.Context) error { return os.WriteFile(input, []byte("go\n"), 0) }}
	}
}

// awaitWord waits until the job runs; etcdctl prints its key first.
func awaitWord(out *bufio.Reader) error {
	for {
		if line, err := out.ReadString('\n'); err != nil || line == "in\n" {
			return err
		}
	}
}

// TestHandOverAmongManyBesideEtcdsOwn prints what a hand-over costs with more and more waiters,
// beside the mutex of etcd's own client: all in one process, over one connection.
func TestHandOverAmongManyBesideEtcdsOwn(t *testing.T) {
	for _, waiters := range line(1, 100, 1000) {
		m := startEtcd(t, 1)[0]
		us, them := ourHandOvers(t, m, waiters), theirHandOvers(t, m, waiters)
		t.Logf("%4d wait: %v a hand-over; etcd's own mutex: %v; ratio %.2f", waiters, median(us), median(them), ratio(us, them))
	}
}

func ratio(us, them []time.Duration) float64 { return float64(median(us)) / float64(median(them)) }

// line returns the numbers of waiters: in a soak the given ones, otherwise a few, because the test
// judges no time.
func line(waiters ...int) []int {
	if os.Getenv("ADLOCK_SOAK") == "" {
		return []int{1, 10}
	}
	return waiters
}

// contender waits for a lock (lock), and releases it (unlock).
type contender struct {
	lock, unlock func(context.Context) error
}

// handOvers lets that many contenders wait in line, and passes the lock from one to the next. After
// each release a new contender goes to the end of the line. It returns the times from each release
// to the next owner.
func handOvers(t testing.TB, waiters int, m *node, next func() contender) (each []time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	turns := make(chan contender, waiters+1)
	enter := func() {
		c := next()
		all.Go(func() {
			switch err := c.lock(ctx); {
			case err == nil:
				turns <- c
			case ctx.Err() == nil:
				t.Error(err)
			}
		})
	}
	owns := func() contender {
		select {
		case c := <-turns:
			return c
		case <-ctx.Done():
			t.Fatal("no newcomer took over")
		}
		panic("not reached")
	}
	enter()
	owner := owns()
	for range waiters {
		enter()
		time.Sleep(10 * time.Millisecond) // a waiter without an answer for a second asks again: a thousand at once would take long
	}
	m.rests(t, max(15, waiters/10))
	for range min(25, 5*waiters) {
		began := time.Now()
		if err := owner.unlock(ctx); err != nil {
			t.Fatal(err)
		}
		owner = owns()
		each = append(each, time.Since(began))
		enter()
		time.Sleep(300 * time.Millisecond) // a watch that begins in the past is late by 100 ms (etcd's syncWatchersLoop)
	}
	return each
}

// rests waits until nothing was written for a second: then all waiters are in line. Waiters in
// processes of their own write heartbeats, so it waits for the given seconds at most.
func (m *node) rests(t testing.TB, seconds int) {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{m.client}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	last := int64(0)
	for quiet, tries := 0, 0; quiet < 10 && tries < 10*seconds; time.Sleep(100 * time.Millisecond) {
		answer, err := c.Get(t.Context(), "/none")
		if err != nil {
			t.Fatal(err)
		}
		tries++
		if quiet++; answer.Header.Revision != last {
			quiet, last = 0, answer.Header.Revision
		}
	}
}

// ourHandOvers measures contenders that do what lease.queue does.
func ourHandOvers(t testing.TB, m *node, waiters int) []time.Duration {
	t.Helper()
	s := open(t, url(m))
	return handOvers(t, waiters, m, func() contender {
		w := &waiter{store: s, record: aRecord(t, false)}
		return contender{w.lock, w.unlock}
	})
}

func theirHandOvers(t testing.TB, m *node, waiters int) []time.Duration {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{m.client}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return handOvers(t, waiters, m, func() contender {
		session, err := concurrency.NewSession(c)
		if err != nil {
			t.Fatal(err)
		}
		mutex := concurrency.NewMutex(session, "/theirs")
		return contender{mutex.Lock, mutex.Unlock}
	})
}

func (h *host) time(t testing.TB, command *exec.Cmd) time.Duration {
	t.Helper()
	command.Env = append(need.Clean(), h.env...)
	command.Stderr = os.Stderr
	began := time.Now()
	if err := command.Run(); err != nil {
		t.Fatal(err)
	}
	return time.Since(began)
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2].Round(10 * time.Microsecond)
}
