//go:build soak

package network

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"adlock/lib/process"
	"adlock/test/network/judge"
	"adlock/test/support/check"
	"adlock/test/support/must"
	"adlock/test/support/relay"
)

// The chaos: 60 contenders on three hosts compete for atoms, in three real etcd members or a real
// vsftpd, while each scenario attacks the servers, the connections to and between them, clocks,
// locksmiths or jobs. The jobs report their own beginning and end (./job), and judge.Runs checks
// that never two run at once and that none is ended without a reason. The test prints the margins.
//
// Without ADLOCK_SOAK the short scenarios are played for a minute, which tries the test itself.
//
//	ADLOCK_SOAK=10m go test -tags soak -count=1 -v -timeout 0 -run TestChaos ./test/network
//
// plays all, over and over, with leases of 6 and of 15 s. ADLOCK_CHAOS_SEED=N draws the same plan
// again (but the timing differs), ADLOCK_CHAOS_LEASE=6s uses one lease only, and
// -run TestChaos/etcd/stopped_leader plays one scenario.

// scenario is one kind of attack.
type scenario struct {
	name    string
	attack  func(*chaos)
	prepare func(*chaos) // before any contender begins; nil: nothing
	short   bool         // it is played in the default minute
}

// stages has, for each kind of store, what starts it, and its scenarios.
var stages = map[string]struct {
	start     func(*chaos)
	scenarios []scenario
}{
	"etcd": {(*chaos).onEtcd, []scenario{
		{name: "a host is cut off", attack: cutHosts(), short: true},
		{name: "requests are lost", attack: cutHosts(relay.ToServer)},
		{name: "answers are lost", attack: cutHosts(relay.ToClient)},
		{name: "late", attack: slowCables},
		{name: "connections are lost", attack: dropConnections},
		{name: "black hole", attack: cutMember},
		{name: "leader without peers", attack: isolateLeader},
		{name: "stopped leader", attack: stopLeader, short: true},
		{name: "killed member", attack: killMembers},
		{name: "revoked leases", attack: revokeLeases},
		{name: "removed keys", attack: removeKeys, short: true},
		{name: "clocks step", prepare: stepClocks, attack: rest},
		{name: "stopped locksmiths", attack: stopLocksmiths},
		{name: "killed locksmiths", attack: killLocksmiths, short: true},
		{name: "stopped jobs", attack: stopJobs},
	}},
	"ftp": {(*chaos).onFTP, []scenario{
		{name: "a host is cut off", attack: cutHosts()},
		{name: "requests are lost", attack: cutHosts(relay.ToServer)},
		{name: "answers are lost", attack: cutHosts(relay.ToClient), short: true},
		{name: "late", attack: slowCables},
		{name: "connections are lost", attack: dropConnections},
		{name: "stalled connections", attack: stallConnections},
		{name: "server clock steps forward", attack: stepServer(time.Hour), short: true},
		{name: "server clock steps back", attack: stepServer(-time.Hour)},
		{name: "server restarts", attack: restartServer},
		{name: "stopped server", attack: stopServer},
		{name: "clocks step", prepare: stepClocks, attack: rest},
		{name: "stopped locksmiths", attack: stopLocksmiths},
		{name: "killed locksmiths", attack: killLocksmiths},
		{name: "stopped jobs", attack: stopJobs},
	}},
}

const (
	shortLength = 2.8 // leases that a scenario lasts
	longLength  = 6.0
	lanes       = 2 // scenarios at a time
)

func TestChaosBreaksNoPromise(t *testing.T) {
	binary(t)
	must.Get(buildJob())(t)
	text := os.Getenv("ADLOCK_SOAK")
	f := &festival{seed: uint64(time.Now().UnixNano()) % 1_000_000, long: text != "", found: map[string]judge.Margins{}}
	f.leases = []time.Duration{6 * time.Second}
	var soak time.Duration // as many rounds as fit are played, but at least one
	var err error
	if f.long {
		f.leases = append(f.leases, 15*time.Second)
		soak, err = time.ParseDuration(text)
	}
	if text := os.Getenv("ADLOCK_CHAOS_SEED"); text != "" && err == nil {
		f.seed, err = strconv.ParseUint(text, 10, 64)
	}
	if text := os.Getenv("ADLOCK_CHAOS_LEASE"); text != "" && err == nil {
		f.leases = make([]time.Duration, 1)
		f.leases[0], err = time.ParseDuration(text)
	}
	must.Do(t, err)
	t.Logf("ADLOCK_CHAOS_SEED=%d", f.seed)
	for began := time.Now(); ; {
		f.round(t)
		if t.Failed() || time.Since(began) >= soak {
			break
		}
	}
	t.Log("\n" + f.table())
}

// festival plays scenarios, and collects their results.
type festival struct {
	seed   uint64
	leases []time.Duration
	long   bool

	mu    sync.Mutex
	found map[string]judge.Margins // by scenario and lease
}

// round plays each scenario once, a few at a time.
func (f *festival) round(t *testing.T) {
	plays := make(chan func())
	var all sync.WaitGroup
	for range lanes {
		all.Go(func() {
			for play := range plays {
				play()
			}
		})
	}
	for _, lease := range f.leases {
		for store := range stores {
			stage := stages[store]
			if len(stage.scenarios) == 0 {
				t.Errorf("%s has no scenario", store)
			}
			for _, s := range stage.scenarios {
				if f.long || s.short {
					name := fmt.Sprintf("%s/%s/%v", store, s.name, lease)
					plays <- func() { t.Run(name, func(t *testing.T) { f.play(t, name, stage.start, s, lease) }) }
				}
			}
		}
	}
	close(plays)
	all.Wait()
}

func (f *festival) play(t *testing.T, name string, start func(*chaos), s scenario, lease time.Duration) {
	length := shortLength
	if f.long {
		length = longLength
	}
	c := newChaos(t, f.seed, lease, length)
	start(c)
	if s.prepare != nil {
		s.prepare(c)
	}
	m := c.play(s.attack)
	t.Logf("%v; statuses %v", m, c.statuses)
	f.mu.Lock()
	f.found[name] = f.found[name].With(m)
	f.mu.Unlock()
	for _, overlap := range m.Overlaps[:min(len(m.Overlaps), 10)] {
		t.Log(overlap)
	}
	if len(m.Overlaps) > 0 {
		t.Errorf("two at once: %d times", len(m.Overlaps))
	}
	complain := t.Logf // in the short form the machine may be busy with other tests
	if f.long {
		complain = t.Errorf
	}
	if len(m.ForNothing) > 0 {
		complain("ended for nothing: %v", m.ForNothing)
	}
	if m.Runs < atoms/4 { // a bound for a busy machine
		t.Errorf("too little came of it: %d runs", m.Runs)
	}
}

// table returns the table of margins, as test/network/README.md has it.
func (f *festival) table() string {
	rows := []string{
		"| scenario, lease | runs | two at once | ended for nothing | least gap | least gap after a loss | longest from loss to end | longest idle |",
		"| --- | --- | --- | --- | --- | --- | --- | --- |",
	}
	for _, name := range slices.Sorted(maps.Keys(f.found)) {
		m := f.found[name]
		rows = append(rows, fmt.Sprintf("| %s | %d | %d | %d | %s | %s | %s | %s |", strings.ReplaceAll(name, "/", ", "),
			m.Runs, len(m.Overlaps), len(m.ForNothing), judge.Shown(m.Gap), judge.Shown(m.GapLost), judge.Shown(m.Loss), judge.Shown(m.Idle)))
	}
	return strings.Join(rows, "\n")
}

// strikes calls blow, which takes length, until another would not fit into the scenario. Before
// each call it waits for half a lease to a lease.
func (c *chaos) strikes(length time.Duration, blow func()) {
	for {
		c.pass(c.lease/2 + c.part(c.lease/2))
		if c.began+c.length-process.Boottime() < length {
			return
		}
		blow()
	}
}

// part returns a random part of that time.
func (c *chaos) part(d time.Duration) time.Duration { return time.Duration(c.Int64N(int64(d))) }

// pass waits for that time, or until the scenario is over.
func (c *chaos) pass(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.over:
	}
}

// hard returns the length of an attack that outlasts every lease.
func (c *chaos) hard() time.Duration { return c.lease * 7 / 5 }

func rest(c *chaos) {}

// blows strikes again and again: what blow does lasts for hard(), and is then undone.
func (c *chaos) blows(blow func() (undo func())) {
	c.strikes(c.hard(), func() {
		undo := blow()
		c.pass(c.hard())
		undo()
	})
}

func cutHosts(ways ...int) func(*chaos) {
	return func(c *chaos) {
		c.blows(func() (undo func()) {
			n := c.IntN(len(c.hosts))
			h := c.hosts[n]
			c.say("host %d is cut off", n)
			undo = c.away([]*mast{h}, func() { h.each((*relay.Cable).Mend) })
			h.each(func(cable *relay.Cable) { cable.Cut(ways...) })
			return undo
		})
	}
}

func (h *mast) each(do func(*relay.Cable)) {
	for _, cable := range h.cables {
		do(cable)
	}
}

// away returns a function that calls undo and notes that the hosts have reached none of their servers.
func (c *chaos) away(hosts []*mast, undo func()) func() {
	lost := span{from: process.Boottime(), to: judge.Never / 2}
	return func() {
		lost.to = process.Boottime()
		undo()
		for _, h := range hosts {
			h.lost = append(h.lost, lost)
		}
	}
}

// slowCables delays each connection by a time of its own. One heartbeat takes some ten commands to an FTP server.
func slowCables(c *chaos) {
	most := c.lease / 20
	if c.ftpd != nil {
		most = c.lease / 60
	}
	for _, h := range c.hosts {
		h.each(func(cable *relay.Cable) {
			cable.Slow(func() time.Duration { return rand.N(most) })
			cable.Drop()
		})
	}
}

func dropConnections(c *chaos) {
	for !isClosed(c.over) {
		c.pass(c.lease/12 + c.part(c.lease/4)) // time for a new connection to log in and to ask
		h := c.hosts[c.IntN(len(c.hosts))]
		h.cables[c.IntN(len(h.cables))].Drop()
	}
}

// cutMember cuts one member off from all hosts, which get no answer from it.
func cutMember(c *chaos) {
	c.blows(func() (undo func()) {
		n := c.IntN(len(c.cluster))
		c.say("member %d is in a black hole", n)
		for _, h := range c.hosts {
			h.cables[n].Cut()
		}
		return func() {
			for _, h := range c.hosts {
				h.cables[n].Mend()
			}
		}
	})
}

// isolateLeader cuts the leader off from its peers, but not from the hosts.
func isolateLeader(c *chaos) {
	c.blows(func() (undo func()) {
		m := c.leader()
		id, _ := m.Status()
		number, err := strconv.ParseUint(id, 10, 64)
		if err != nil {
			c.Error(err)
		}
		id = strconv.FormatUint(number, 16)
		c.say("leader %s is without its peers", m.Name)
		var links []*link
		named := 0
		c.mu.Lock()
		for _, l := range c.between {
			if l.from != id && l.to != m.Etcd {
				continue
			}
			links = append(links, l)
			if l.from != "" { // "": a peer that only asks for the version
				named++
			}
			l.Cut()
		}
		c.mu.Unlock()
		check.Equal(c, "links of "+m.Name, named, 4)
		return func() {
			for _, l := range links {
				l.Mend()
			}
		}
	})
}

func (c *chaos) leader() *node { return leaderOf(c, c.cluster) }

// stopLeader stops the leader for longer than the lease. When it resumes, there is a newer leader.
func stopLeader(c *chaos) {
	c.blows(func() (undo func()) {
		m := c.leader()
		c.say("leader %s is stopped", m.Name)
		m.Signal(c, syscall.SIGSTOP)
		return func() { m.Signal(c, syscall.SIGCONT) }
	})
}

func killMembers(c *chaos) {
	c.strikes(c.lease/2, func() {
		m := c.cluster[c.IntN(len(c.cluster))]
		if c.IntN(2) == 0 {
			m = c.leader()
		}
		c.say("member %s is killed", m.Name)
		m.Kill()
		c.pass(c.part(c.lease / 2))
		m.Start(c)
	})
}

// revokeLeases revokes leases of the cluster to which processes attach their keys.
func revokeLeases(c *chaos) {
	c.meddle(func() {
		if all := leasesOf(c, c.cluster); len(all) > 0 {
			id := all[c.IntN(len(all))]
			c.say("lease %s is revoked", id)
			_ = etcdctl(c.cluster, "lease", "revoke", id).Run() // it may be gone
		}
	})
}

// removeKeys removes heartbeats, at most one of each acquisition. (A removed place unlocks.)
func removeKeys(c *chaos) {
	struck := map[string]bool{}
	c.meddle(func() {
		keys := keysOf(c, c.cluster, "/adlock")
		if len(keys) == 0 {
			return
		}
		key := keys[c.IntN(len(keys))]
		token := path.Base(key)
		if struck[token] || !strings.Contains(key, "/beat/") {
			return
		}
		struck[token] = true
		c.say("%s is removed", key)
		ctl(c, c.cluster, "del", key)
	})
}

// meddle changes the content of the cluster, again and again.
func (c *chaos) meddle(do func()) {
	for c.pass(c.lease / 2); !isClosed(c.over); c.pass(c.part(c.lease / 6)) {
		do()
	}
}

// stepClocks steps the wall clock of one host forward by an hour, and of another back.
func stepClocks(c *chaos) {
	for n, by := range []time.Duration{time.Hour, -time.Hour} {
		c.hosts[n].step(c, time.Now().Add(c.lease+c.part(c.lease/2)), by)
	}
}

// drawAttempt draws one of the attempts under way that with accepts; nil: there is none.
func (c *chaos) drawAttempt(with func(*attempt) bool) *attempt {
	var found []*attempt
	for _, id := range slices.Sorted(maps.Keys(c.attempts)) {
		if a := c.attempts[id]; a.done == 0 && !a.Attacked && with(a) {
			found = append(found, a)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return found[c.IntN(len(found))]
}

func (a *attempt) runs() bool { return a.wire != nil }

// strikeSmith sends a signal to a locksmith, most often to one with a job.
func (c *chaos) strikeSmith(sig syscall.Signal) *attempt {
	c.mu.Lock()
	defer c.mu.Unlock()
	with := func(*attempt) bool { return true }
	if c.IntN(3) > 0 {
		with = (*attempt).runs
	}
	a := c.drawAttempt(with)
	if a == nil {
		return nil
	}
	a.Attacked = true
	if a.runs() {
		a.Lost = process.Boottime()
	}
	c.say("%v for the locksmith of %s at %s", sig, a.ID, a.Atom)
	_ = a.cmd.Process.Signal(sig) // it may have ended
	return a
}

func stopLocksmiths(c *chaos) {
	c.blows(func() (undo func()) {
		var stopped []*attempt
		for range 6 {
			if a := c.strikeSmith(syscall.SIGSTOP); a != nil {
				stopped = append(stopped, a)
			}
		}
		return func() {
			for _, a := range stopped {
				_ = a.cmd.Process.Signal(syscall.SIGCONT) // it may be gone
			}
		}
	})
}

func killLocksmiths(c *chaos) {
	for c.pass(c.lease / 2); !isClosed(c.over); c.pass(c.part(c.lease / 3)) {
		c.strikeSmith(syscall.SIGKILL)
	}
}

// stopJobs stops jobs for longer than the lease. No process may end them for that.
func stopJobs(c *chaos) {
	c.blows(func() (undo func()) {
		var stopped []int
		c.mu.Lock()
		defer c.mu.Unlock()
		for range 6 {
			if a := c.drawAttempt((*attempt).runs); a != nil {
				stopped = append(stopped, a.job)
				_ = syscall.Kill(a.job, syscall.SIGSTOP) // it may have ended
			}
		}
		c.say("stopped: %v", stopped)
		return func() {
			for _, pid := range stopped {
				_ = syscall.Kill(pid, syscall.SIGCONT)
			}
		}
	})
}

// stallConnections makes connections fall silent, and data connections stall.
func stallConnections(c *chaos) {
	for c.pass(c.lease / 2); !isClosed(c.over); c.pass(c.part(c.lease / 3)) {
		p := c.hosts[c.IntN(len(c.hosts))].ftp
		command, data := c.IntN(60), c.IntN(20)
		p.Set(func() { p.Silent, p.Stalled = command, data })
	}
}

func stepServer(by time.Duration) func(*chaos) {
	return func(c *chaos) {
		c.pass(c.lease + c.part(c.lease/2))
		c.say("the server's clock steps by %v", by)
		for _, h := range c.hosts {
			h.ftp.SetClock(by)
		}
	}
}

func restartServer(c *chaos) {
	c.strikes(0, func() {
		c.say("the server is started again")
		c.ftpd.Stop(c)
		c.ftpd.Start(c)
	})
}

// stopServer stops the server, and the processes that serve its clients.
func stopServer(c *chaos) {
	c.blows(func() (undo func()) {
		c.say("the server is stopped")
		undo = c.away(c.hosts, func() { c.ftpd.Signal(c, syscall.SIGCONT) })
		c.ftpd.Signal(c, syscall.SIGSTOP)
		return undo
	})
}
