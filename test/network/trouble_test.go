//go:build soak

package network

import (
	"errors"
	"fmt"
	"os/exec"
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

// succession is an atom with an owner on one host, and a waiter on another.
type succession struct {
	owner, next *helper.Process
	file        string // the owner's beats
}

// successions starts n of them. Once all waiters wait, each owner's job takes at least that many
// tenths of a second.
func successions(t testing.TB, nodes []*node, a, b *host, n, tenths int) (all []succession) {
	t.Helper()
	there := t.TempDir() + "/there"
	for i := range n {
		operand := fmt.Sprint("--operand=x", i)
		s := succession{file: fmt.Sprint(t.TempDir(), "/beats", i)}
		s.owner = a.start(t, fmt.Sprintf(`trap "" INT TERM; n=0
			while [ $n -lt %d ]; do
				read -r now _ </proc/uptime; echo $now >>%s; sleep 0.1; [ ! -e %s ] || n=$((n + 1))
			done`, tenths, s.file, there), operand)
		s.next = b.command(begins, operand, "--wait=85s").Start(t)
		all = append(all, s)
	}
	for i := range all {
		helper.Eventually(t, "the next one waits", func() bool {
			return len(keysOf(t, nodes, fmt.Sprint("/adlock/p.shared.o.x", i, "/line/"))) == 2
		})
	}
	touch(t, there)
	return all
}

// judge waits for the end of all, and returns the least margin; survivors counts the owners
// whose jobs ran to their end.
func judge(t testing.TB, all []succession) (least time.Duration, survivors int) {
	t.Helper()
	least = time.Hour
	for i, s := range all {
		helper.Eventually(t, "the waiter and the owner have ended", func() bool { return s.next.Ended() && s.owner.Ended() })
		if status := s.next.Wait(t); status != 0 {
			t.Errorf("the waiter for %d: status %d: %s", i, status, s.next.Output())
			continue
		}
		least = min(least, margin(t, s.file, s.next.Output()))
		if s.owner.Wait(t) == 0 {
			survivors++
		} else {
			t.Logf("owner %d: %s", i, s.owner.Output())
		}
	}
	return least, survivors
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
	a, b := newHost(t, url(nodes...)).brief(), newHost(t, url(nodes...)).brief()
	for _, h := range []*host{a, b} {
		h.env = append(h.env, "ADLOCK_LEASE=12s") // an election and a renewal take less than two thirds of it
	}
	const owners = 12
	all := successions(t, nodes, a, b, owners, 200)
	leader := leaderOf(t, nodes)
	leader.signal(t, syscall.SIGSTOP)
	lapsed := time.After(13 * time.Second) // more than the lease
	leaderOf(t, slices.DeleteFunc(slices.Clone(nodes), func(m *node) bool { return m == leader }))
	<-lapsed
	leader.signal(t, syscall.SIGCONT)
	least, survivors := judge(t, all)
	t.Logf("leader stopped for a lease: the least margin of %d is %v", owners, least)
	if survivors != owners {
		t.Errorf("%d of %d jobs came to their end", survivors, owners)
	}
}

func TestAMemberThatDoesNotAnswerEndsNoJob(t *testing.T) {
	nodes := startEtcd(t, 3)
	var members []*node
	var cables []*relay
	for _, m := range nodes {
		r := newRelay(t, m.client)
		cables, members = append(cables, r), append(members, &node{client: r.address()})
	}
	a, b := newHost(t, url(members...)).brief(), newHost(t, url(nodes...)).brief()
	const owners = 12
	all := successions(t, nodes, a, b, owners, 120)
	cables[0].cut()
	began := time.Now()
	if r := a.run(t, "echo ran", "--operand=other"); r.Out != "ran\n" || r.Status != 0 {
		t.Errorf("an atom asked for meanwhile: %+v", r)
	}
	t.Logf("with one of three members in a black hole a run takes %v", time.Since(began).Round(time.Millisecond))
	least, survivors := judge(t, all)
	t.Logf("one member in a black hole: the least margin of %d is %v", owners, least)
	if survivors != owners {
		t.Errorf("%d of %d jobs came to their end", survivors, owners)
	}
}

// After its key was removed by hand, a lock excludes newcomers only until the owner has found that
// out and ended its job.
func TestNoNewcomerComesInWhereAKeyIsRemovedFromOutside(t *testing.T) {
	nodes := startEtcd(t, 1)
	const atom = "/adlock/p.shared.o.x0/"
	for what, remove := range map[string]func(t testing.TB){
		"the leases are revoked": func(t testing.TB) {
			for line := range strings.Lines(ctl(t, nodes, "lease", "list")) {
				if id := strings.TrimSpace(line); !strings.Contains(id, " ") && id != "" {
					_ = exec.Command("etcdctl", "--endpoints", endpoints(nodes), "lease", "revoke", id).Run() // it may have gone
				}
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
			a, b := newHost(t, url(nodes...)).brief(), newHost(t, url(nodes...)).brief()
			all := successions(t, nodes, a, b, 1, 100)
			remove(t)
			least, survivors := judge(t, all)
			t.Logf("%s: margin %v, jobs that came to their end: %d", what, least, survivors)
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
	h := newHost(t, url(nodes...)).brief()
	h.env = append(h.env, "ETCDCTL_USER=job", "ETCDCTL_PASSWORD=word")
	owner := h.start(t, "sleep 60")
	ctl(t, nodes, "--user=root:secret", "user", "revoke-role", "job", "writes")
	endsByItsLease(t, h, owner, time.Now(), "permission denied")
	h.run(t, "echo ran", "--operand=y").Refused(t, 77, "permission denied")
}

// endsByItsLease waits until the owner has ended its job, and fails the test unless the message has
// the reason.
func endsByItsLease(t testing.TB, h *host, owner *helper.Process, began time.Time, why string) {
	t.Helper()
	helper.Eventually(t, "the owner ends", owner.Ended)
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
	s := url(startEtcd(t, 1)...)
	a, b := newHost(t, s).brief(), newHost(t, s).brief()
	owner := a.start(t, "sleep 60", "--slots=1")
	b.run(t, "echo ran").Denied(t)
	owner.Kill(t)
	helper.Eventually(t, "the watchdog has ended the job", func() bool { return strings.Contains(a.runlog(), "event=lost") })
	killed := time.Now()
	time.Sleep(6500 * time.Millisecond) // longer than the lease: by the clocks it is silent
	b.run(t, "echo ran").Ran(t)
	b.run(t, "echo ran", "--slots=1", "--operand=y").Ran(t)
	t.Logf("taken over %v after its death by a newcomer that does not wait", time.Since(killed).Round(time.Millisecond))
	if !strings.Contains(b.runlog(), "event=reclaim") {
		t.Errorf("no takeover in\n%s", b.runlog())
	}
}

func TestJobOutlivesAStoreThatIsAwayForAWhile(t *testing.T) {
	nodes := startEtcd(t, 1)
	cable := newRelay(t, nodes[0].client)
	h := newHost(t, "etcd://"+cable.address()+"/adlock").brief()
	h.env = append(h.env, "ADLOCK_LEASE=12s")
	owner := h.start(t, "sleep 10; echo done")
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
	s := open(t, url(startEtcd(t, 1)...))
	ctx := limited(t)
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

func TestAWaiterThatHasLostItsPlaceTakesAnotherAndWaitsOn(t *testing.T) {
	s := url(startEtcd(t, 1)...)
	a, b, c := newHost(t, s).brief(), newHost(t, s).brief(), newHost(t, s).brief()
	owner := a.start(t, "sleep 60")
	waits := func(h *host, p *helper.Process) func() bool {
		return func() bool { return strings.Contains(h.verb(t, "status").Out, itoa(p.PID)+" on ") }
	}
	stopped := b.command("echo ran", "--wait=forever").Start(t)
	helper.Eventually(t, "it waits", waits(a, stopped))
	behind := c.command("echo ran", "--wait=60s").Start(t)
	helper.Eventually(t, "another waits behind it", waits(a, behind))
	stopped.Signal(t, syscall.SIGSTOP)
	helper.Within(t, helper.Patience, "its place is lost", func() bool { return !waits(a, stopped)() })
	stopped.Signal(t, syscall.SIGCONT)
	helper.Within(t, helper.Patience, "it has another", waits(a, stopped))
	stop(t, owner)
	for _, p := range []*helper.Process{behind, stopped} {
		endsWith(t, p, 0, "ran\n")
	}
}
