//go:build soak

package network

import (
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"adlock/test/support/check"
	"adlock/test/support/helper"
	"adlock/test/support/relay"
)

// succession starts an owner on a and a waiter on b. Once the waiter waits, the owner's job takes at least that many
// tenths of a second, and the trouble begins. When both have ended, it returns whether the owner's job ran to its end.
func succession(t testing.TB, nodes []*node, a, b *host, tenths int, trouble func()) (survived bool) {
	t.Helper()
	beats, there := t.TempDir()+"/beats", t.TempDir()+"/there"
	owner := a.start(t, fmt.Sprintf(`trap "" INT TERM; n=0
		while [ $n -lt %d ]; do
			read -r now _ </proc/uptime; echo $now >>%s; sleep 0.1; [ ! -e %s ] || n=$((n + 1))
		done`, tenths, beats, there))
	next := b.command(begins, "--wait=85s").Start(t)
	helper.Eventually(t, "the next one waits", func() bool { return len(keysOf(t, nodes, "/adlock/p.shared.o.x/line/")) == 2 })
	touch(t, there)
	trouble()
	if status := next.Wait(t); status != 0 {
		t.Fatalf("the waiter: status %d: %s", status, next.Output())
	}
	survived = owner.Wait(t) == 0
	t.Logf("margin %v; the owner survived: %v: %s", margin(t, beats, next.Output()), survived, owner.Output())
	return survived
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

// A leader that was stopped takes leases for expired, when it resumes, that were renewed at another member.
func TestAStoppedLeaderEndsNoJobAndLetsNoNewcomerIn(t *testing.T) {
	nodes := startEtcd(t, 3)
	h := newHost(t, url(nodes...)).leased(12 * time.Second) // an election and a renewal take less than two thirds of it
	survived := succession(t, nodes, h, h.another(t), 200, func() {
		leader := leaderOf(t, nodes)
		leader.Signal(t, syscall.SIGSTOP)
		lapsed := time.After(13 * time.Second) // more than the lease
		leaderOf(t, slices.DeleteFunc(slices.Clone(nodes), func(m *node) bool { return m == leader }))
		<-lapsed
		leader.Signal(t, syscall.SIGCONT)
	})
	check.Equal(t, "the job survived", survived, true)
}

func TestASilentMemberOfEtcdEndsNoJob(t *testing.T) {
	nodes := startEtcd(t, 3)
	for i := range nodes {
		members := slices.Clone(nodes)
		cable := relay.New(t, nodes[i].Client)
		members[i] = at(cable.Address())
		a, b := newHost(t, url(members...)).brief(), newHost(t, url(nodes...)).brief()
		survived := succession(t, nodes, a, b, 120, func() {
			cable.Cut()
			a.run(t, "echo ran", "--operand=other").Ran(t)
		})
		check.Equal(t, fmt.Sprintf("member %d does not answer: the job survived", i), survived, true)
	}
}

// Neither a lease that is revoked nor a heartbeat that is removed proves that the owner is dead.
func TestARemovedHeartbeatOrLeaseLetsNoNewcomerIn(t *testing.T) {
	nodes := startEtcd(t, 1)
	for what, remove := range map[string]func(){
		"the leases are revoked": func() {
			for _, id := range leasesOf(t, nodes) {
				_ = etcdctl(nodes, "lease", "revoke", id).Run() // it may have gone
			}
		},
		"heartbeats are removed": func() { ctl(t, nodes, "del", "--prefix", "/adlock/p.shared.o.x/beat/") },
	} {
		t.Run(what, func(t *testing.T) {
			h := newHost(t, url(nodes...)).brief()
			succession(t, nodes, h, h.another(t), 100, remove)
		})
	}
}

func TestAJobEndsWithItsLeaseIfTheStoreIsFull(t *testing.T) {
	m := startEtcd(t, 1, "--quota-backend-bytes=200000")[0]
	h := newHost(t, url(m)).brief()
	owner := h.start(t, "sleep 60")
	began := time.Now()
	filler := strings.Repeat("x", 50000)
	for n := range 20 {
		if exec.Command("etcdctl", "--endpoints", m.Client, "put", fmt.Sprint("filler", n), filler).Run() != nil {
			break
		}
	}
	endsByItsLease(t, h, owner, began, "no space")
	h.run(t, "echo ran", "--operand=y").Refused(t, 74, "no space")
}

func TestAJobEndsWithItsLeaseIfItsUserMayNoLongerWrite(t *testing.T) {
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

// endsByItsLease waits until the owner has ended its job, and fails the test unless the message has the reason.
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
	helper.Contains(t, owner.Output(), why)
	helper.Contains(t, h.runlog(), "event=lost")
}

// A newcomer without --wait still watches a silent owner for a lease, to find out whether it is dead.
func TestANewcomerWithoutWaitTakesADeadOwnersAtom(t *testing.T) {
	a, b := onEtcd(t)
	owner := a.brief().start(t, "sleep 60", "--slots=1")
	b.brief().run(t, "echo ran").Denied(t)
	owner.Kill(t)
	helper.Eventually(t, "the watchdog has ended the job", func() bool { return strings.Contains(a.runlog(), "event=lost") })
	time.Sleep(6500 * time.Millisecond) // longer than the lease: by the clocks it is silent
	b.run(t, "echo ran").Ran(t)
	b.run(t, "echo ran", "--slots=1", "--operand=y").Ran(t)
	helper.Contains(t, b.runlog(), "event=reclaim")
}

func TestAJobOutlivesAShortOutageOfItsStore(t *testing.T) {
	cable, h, _ := onCable(t)
	owner := h.leased(12*time.Second).start(t, "sleep 10; echo done")
	cable.Cut()
	time.Sleep(5 * time.Second) // the lease is renewed after 1/3, and the job would be ended after 2/3
	cable.Drop()
	cable.Mend()
	endsWith(t, owner, 0, "done\n")
	h.run(t, "echo ran", "--if-elapsed=1h").Denied(t)
}

// The release of a script succeeds once the store is back, if the lease lasts.
func TestAReleaseOutlastsAnOutageOfItsStore(t *testing.T) {
	cable, h, _ := onCable(t)
	dir := t.TempDir()
	script := h.leased(70 * time.Second).script("adlock_get o x 0 || exit; : >" + dir + "/has; " + until(dir+"/cut") + "adlock_release; echo $? $ADLOCK_VERDICT").Start(t)
	helper.Eventually(t, "it has the atom", func() bool { return exists(dir + "/has") })
	cable.Cut()
	touch(t, dir+"/cut")
	time.Sleep(25 * time.Second) // longer than a silent holder is waited for
	cable.Drop()
	cable.Mend()
	endsWith(t, script, 0, "0 acquired\n")
}

// waits reports whether the process is listed as a waiter.
func (h *host) waits(t testing.TB, p *helper.Process) bool {
	return strings.Contains(h.verb(t, "status").Out, itoa(p.PID)+" on ")
}

func TestAWaiterThatLostItsPlaceQueuesAgain(t *testing.T) {
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

// If a store is silent, run gives up after --wait, one more question (five seconds) and the attempt
// to leave its place (one).
func TestAWaitForASilentStoreEndsInTime(t *testing.T) {
	waits := func(t *testing.T, h *host, send func(testing.TB, syscall.Signal), queued bool) {
		t.Parallel()
		h.start(t, "sleep 60")
		if !queued {
			send(t, syscall.SIGSTOP)
		}
		began := time.Now()
		waiter := h.command("echo ran", "--wait=8s").Start(t)
		if queued {
			helper.Eventually(t, "it waits", func() bool { return strings.Contains(h.runlog(), "event=wait") })
			send(t, syscall.SIGSTOP)
		}
		status := waiter.Wait(t)
		took := time.Since(began).Round(100 * time.Millisecond)
		send(t, syscall.SIGCONT)
		if status != 69 || took > 24*time.Second || !regexp.MustCompile(`^.* no answer in time\n$`).MatchString(waiter.Output()) {
			t.Errorf("status %d after %v: %s", status, took, waiter.Output())
		}
	}
	for _, queued := range []bool{false, true} {
		t.Run(fmt.Sprint("etcd, in the queue already: ", queued), func(t *testing.T) {
			m := startEtcd(t, 1)[0]
			waits(t, newHost(t, url(m)).leased(15*time.Second), m.Signal, queued)
		})
		t.Run(fmt.Sprint("FTP, in the queue already: ", queued), func(t *testing.T) {
			f := startFTP(t, "")
			waits(t, f.host(t).leased(15*time.Second), f.Signal, queued)
		})
	}
}
