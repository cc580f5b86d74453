//go:build soak

package network

import (
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/lease"
	"adlock/test/support/helper"
)

// successions starts n owners on a, each with a waiter on b. Once all waiters wait, each owner's job
// takes at least that many tenths of a second. judge waits for the end of all, and returns how many
// jobs ran to their end.
func successions(t testing.TB, nodes []*node, a, b *host, n, tenths int) (judge func() (survivors int)) {
	t.Helper()
	dir := t.TempDir()
	var owners, waiters []*helper.Process
	file := func(i int) string { return fmt.Sprint(dir, "/beats", i) }
	for i := range n {
		operand := fmt.Sprint("--operand=x", i)
		owners = append(owners, a.start(t, fmt.Sprintf(`trap "" INT TERM; n=0
			while [ $n -lt %d ]; do
				read -r now _ </proc/uptime; echo $now >>%s; sleep 0.1; [ ! -e %s/there ] || n=$((n + 1))
			done`, tenths, file(i), dir), operand))
		waiters = append(waiters, b.command(begins, operand, "--wait=85s").Start(t))
	}
	for i := range n {
		helper.Eventually(t, "the next one waits", func() bool {
			return len(keysOf(t, nodes, fmt.Sprint("/adlock/p.shared.o.x", i, "/line/"))) == 2
		})
	}
	touch(t, dir+"/there")
	return func() (survivors int) {
		least := time.Hour
		for i, next := range waiters {
			if status := next.Wait(t); status != 0 {
				t.Errorf("the waiter for %d: status %d: %s", i, status, next.Output())
				continue
			}
			least = min(least, margin(t, file(i), next.Output()))
			if owners[i].Wait(t) == 0 {
				survivors++
			} else {
				t.Logf("owner %d: %s", i, owners[i].Output())
			}
		}
		t.Logf("the least margin of %d is %v", n, least)
		return survivors
	}
}

func leaderOf(t testing.TB, nodes []*node) (leader *node) {
	t.Helper()
	helper.Eventually(t, "there is a leader", func() bool {
		for _, m := range nodes {
			if m.leads() {
				leader = m
			}
		}
		return leader != nil
	})
	return leader
}

// A stopped leader that resumes takes leases for expired that were renewed at another member.
func TestAStoppedLeaderEndsNoJobAndLetsNoNewcomerIn(t *testing.T) {
	nodes := startEtcd(t, 3)
	h := newHost(t, url(nodes...)).leased(12 * time.Second) // an election and a renewal take less than two thirds of it
	judge := successions(t, nodes, h, h.another(t), 12, 200)
	leader := leaderOf(t, nodes)
	leader.signal(t, syscall.SIGSTOP)
	lapsed := time.After(13 * time.Second) // more than the lease
	leaderOf(t, slices.DeleteFunc(slices.Clone(nodes), func(m *node) bool { return m == leader }))
	<-lapsed
	leader.signal(t, syscall.SIGCONT)
	if survivors := judge(); survivors != 12 {
		t.Errorf("%d of 12 jobs came to their end", survivors)
	}
}

func TestAMemberThatDoesNotAnswerEndsNoJob(t *testing.T) {
	nodes := startEtcd(t, 3)
	cable := newRelay(t, nodes[0].client)
	a, b := newHost(t, url(&node{client: cable.address()}, nodes[1], nodes[2])).brief(), newHost(t, url(nodes...)).brief()
	judge := successions(t, nodes, a, b, 12, 120)
	cable.cut()
	a.run(t, "echo ran", "--operand=other").Ran(t)
	if survivors := judge(); survivors != 12 {
		t.Errorf("%d of 12 jobs came to their end", survivors)
	}
}

// After its key was removed by hand, a lock excludes newcomers only until the owner has found that
// out and ended its job.
func TestNoNewcomerComesInWhereAKeyIsRemovedFromOutside(t *testing.T) {
	nodes := startEtcd(t, 1)
	const atom = "/adlock/p.shared.o.x0/"
	for what, remove := range map[string]func(t testing.TB){
		"the leases are revoked": func(t testing.TB) {
			for _, id := range regexp.MustCompile(`(?m)^[0-9a-f]+$`).FindAllString(ctl(t, nodes, "lease", "list"), -1) {
				_ = etcdctl(nodes, "lease", "revoke", id).Run() // it may have gone
			}
		},
		"the line is removed":       func(t testing.TB) { ctl(t, nodes, "del", "--prefix", atom+"line/") },
		"signs of life are removed": func(t testing.TB) { ctl(t, nodes, "del", "--prefix", atom+"beat/") },
		"all keys are removed":      func(t testing.TB) { ctl(t, nodes, "del", "--prefix", "") },
		"the owner's place is removed": func(t testing.TB) {
			first := ctl(t, nodes, "get", "--prefix", "--keys-only", "--sort-by=CREATE", "--order=ASCEND", atom+"line/")
			ctl(t, nodes, "del", strings.Fields(first)[0])
		},
		"the keys are removed one by one": func(t testing.TB) {
			for _, key := range keysOf(t, nodes, atom) {
				ctl(t, nodes, "del", key)
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			h := newHost(t, url(nodes...)).brief()
			judge := successions(t, nodes, h, h.another(t), 1, 100)
			remove(t)
			judge()
		})
	}
}

func TestAJobEndsWithItsLeaseWhereTheStoreIsFull(t *testing.T) {
	m := startEtcd(t, 1, "--quota-backend-bytes=200000")[0]
	h := newHost(t, url(m)).brief()
	owner := h.start(t, "sleep 60")
	began := time.Now()
	filler := strings.Repeat("x", 50000)
	for n := range 20 {
		if exec.Command("etcdctl", "--endpoints", m.client, "put", fmt.Sprint("filler", n), filler).Run() != nil {
			break
		}
	}
	endsByItsLease(t, h, owner, began, "no space")
	h.run(t, "echo ran", "--operand=y").Refused(t, 74, "no space")
}

func TestAJobEndsWithItsLeaseWhereItsUserMayWriteNoMore(t *testing.T) {
	nodes := startEtcd(t, 1)
	for _, line := range []string{
		"user add root:secret", "role add root", "user grant-role root root",
		"user add job:word", "role add writes", "role grant-permission --prefix=true writes readwrite /adlock",
		"role add reads", "role grant-permission --prefix=true reads read /adlock",
		"user grant-role job writes", "user grant-role job reads", "auth enable",
	} {
		ctl(t, nodes, strings.Fields(line)...)
	}
	h := newHost(t, url(nodes...)).brief().with("ETCDCTL_USER=job", "ETCDCTL_PASSWORD=word")
	owner := h.start(t, "sleep 60")
	ctl(t, nodes, "--user=root:secret", "user", "revoke-role", "job", "writes")
	endsByItsLease(t, h, owner, time.Now(), "permission denied")
	h.run(t, "echo ran", "--operand=y").Refused(t, 77, "permission denied")
}

// endsByItsLease waits until the owner has ended its job, and fails the test unless the message has
// the reason.
func endsByItsLease(t testing.TB, h *host, owner *helper.Process, began time.Time, why string) {
	t.Helper()
	if status := owner.Wait(t); status != 130 && status != 143 {
		t.Errorf("the owner's status is %d", status)
	}
	took := time.Since(began).Round(10 * time.Millisecond)
	t.Logf("%s: it ended after %v: %s", why, took, owner.Output())
	if took > 20*time.Second {
		t.Errorf("it took %v, and the lease is 6s", took)
	}
	if !strings.Contains(owner.Output(), why) {
		t.Errorf("it does not say %q: %s", why, owner.Output())
	}
	if !strings.Contains(h.runlog(), "event=lost") {
		t.Errorf("nothing of that is in the record:\n%s", h.runlog())
	}
}

// A newcomer that does not want to wait still watches for a lease whether a silent owner is dead.
func TestANewcomerWithoutWaitTakesADeadOwnersAtom(t *testing.T) {
	a, b := onEtcd(t)
	owner := a.brief().start(t, "sleep 60", "--slots=1")
	b.brief().run(t, "echo ran").Denied(t)
	owner.Kill(t)
	helper.Eventually(t, "the watchdog has ended the job", func() bool { return strings.Contains(a.runlog(), "event=lost") })
	time.Sleep(6500 * time.Millisecond) // longer than the lease: by the clocks it is silent
	b.run(t, "echo ran").Ran(t)
	b.run(t, "echo ran", "--slots=1", "--operand=y").Ran(t)
	if !strings.Contains(b.runlog(), "event=reclaim") {
		t.Errorf("no takeover in\n%s", b.runlog())
	}
}

func TestJobOutlivesAStoreThatIsAwayForAWhile(t *testing.T) {
	cable, h, _ := onCable(t)
	owner := h.leased(12*time.Second).start(t, "sleep 10; echo done")
	cable.cut()
	time.Sleep(5 * time.Second) // the lease is renewed after 1/3, and the job would be ended after 2/3
	cable.drop()
	cable.mend()
	endsWith(t, owner, 0, "done\n")
	h.run(t, "echo ran", "--if-elapsed=1h").Denied(t)
}

// A waiter watches for a third of the lease, checks the heartbeat, and watches again. A place may
// go between two watches.
func TestNoWaiterMissesAPlaceThatGoesBetweenTwoWatches(t *testing.T) {
	s, ctx := open(t, url(startEtcd(t, 1)...)), limited(t)
	const length = 300 * time.Millisecond
	var all sync.WaitGroup
	for i := range 120 {
		all.Go(func() {
			name := atom.Name(fmt.Sprint("p.h.o.", i))
			owner, _, err := s.Enter(ctx, name, aRecord(t, false), time.Minute, true)
			if err != nil {
				t.Error(err)
				return
			}
			next, _, err := s.Enter(ctx, name, aRecord(t, false), length, true)
			if err != nil {
				t.Error(err)
				return
			}
			left := make(chan error, 1)
			time.AfterFunc(length/3+time.Duration(i)*50*time.Microsecond, func() { left <- leave(ctx, owner, nil) })
			for held := true; held && err == nil && ctx.Err() == nil; {
				var seen lease.Snapshot
				if err = next.Await(ctx, func() {}); err == nil {
					seen, err = next.Look(ctx)
					held = seen.Held || err != nil
				}
				if fault.KindOf(err) == fault.Unavailable {
					err = nil // Await gives an answer a third of this short lease; ask again
				}
			}
			if err = errors.Join(err, <-left, ctx.Err()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// waits reports whether the process is listed as a waiter.
func (h *host) waits(t testing.TB, p *helper.Process) bool {
	return strings.Contains(h.verb(t, "status").Out, itoa(p.PID)+" on ")
}

func TestAWaiterThatHasLostItsPlaceTakesAnotherAndWaitsOn(t *testing.T) {
	a, b := onEtcd(t)
	owner := a.brief().start(t, "sleep 60")
	wait := func() *helper.Process {
		p := b.brief().command("echo ran", "--wait=forever").Start(t)
		helper.Eventually(t, "it waits", func() bool { return a.waits(t, p) })
		return p
	}
	stopped, behind := wait(), wait()
	stopped.Signal(t, syscall.SIGSTOP)
	helper.Eventually(t, "its place is lost", func() bool { return !a.waits(t, stopped) })
	stopped.Signal(t, syscall.SIGCONT)
	helper.Eventually(t, "it has another", func() bool { return a.waits(t, stopped) })
	stop(t, owner)
	endsWith(t, behind, 0, "ran\n")
	endsWith(t, stopped, 0, "ran\n")
}
