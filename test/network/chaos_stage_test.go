//go:build soak

package network

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	ftpclient "github.com/jlaffaye/ftp"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"adlock/lib/process"
	"adlock/test/network/judge"
	"adlock/test/support/helper"
	"adlock/test/support/must"
	"adlock/test/support/need"
	"adlock/test/support/relay"
	"adlock/test/support/server"
)

const (
	crowd = 60 // contenders
	atoms = 16 // the first of them has a third of the contenders, and short jobs
)

// chaos is one scenario: servers, hosts with cables to them, contenders.
type chaos struct {
	*testing.T
	*rand.Rand // the plan: what is done to which process
	seed       uint64
	lease      time.Duration
	length     time.Duration
	began      time.Duration // boottime

	dir     string
	servers string // the IP address of the servers
	relays  string // the IP address of the relays
	hosts   []*mast
	cluster []*node
	between []*link
	ftpd    *ftpd

	patient int           // how many contenders of three wait
	rest    time.Duration // at most, between two attempts of one contender

	over     chan struct{} // closed when the time is up: jobs end, no contender comes
	mu       sync.Mutex
	attempts map[string]*attempt
	statuses map[string]int
	answered []time.Duration // when a server answered a client that is not attacked
	noted    int             // lines that note has logged
	attended sync.WaitGroup  // connections of jobs, while they are read
}

// link carries the questions of one member of a cluster to another.
type link struct {
	from string // its id, in hex
	to   *server.Etcd
	*relay.Cable
}

// mast is a host with cables of its own.
type mast struct {
	*host
	cables []*relay.Cable // to each server
	ftp    *relay.Teller  // the same, to an FTP server

	lost []span // when none of its servers could be reached
}

type span struct{ from, to time.Duration }

// attempt is one start of `adlock run`, and its result.
type attempt struct {
	judge.Ran
	host   *mast
	waits  bool
	called time.Duration
	done   time.Duration // 0: not yet
	cmd    *exec.Cmd
	said   bytes.Buffer
	status int

	job  int      // pid; 0: none began
	wire net.Conn // to the job, while it lives
}

var plays atomic.Int64

func newChaos(t *testing.T, seed uint64, lease time.Duration, leases float64) *chaos {
	// Hundreds of ports are taken and released. A server on an address of its own does not lose its
	// port to another process when it is started again.
	net := fmt.Sprintf("127.%d.%d.", 20+os.Getpid()%200, plays.Add(1)%250)
	return &chaos{
		servers: net + "1", relays: net + "2",
		T: t, Rand: source(seed, t.Name()), seed: seed, lease: lease, length: time.Duration(leases * float64(lease)),
		dir: helper.Dir(t), over: make(chan struct{}), attempts: map[string]*attempt{}, statuses: map[string]int{},
	}
}

// source returns a source of random numbers for the user with this name.
func source(seed uint64, name string) *rand.Rand {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(name)) // cannot fail
	return rand.New(rand.NewPCG(seed, sum.Sum64()))
}

// onEtcd starts three members. The peers reach each other, and the hosts reach the members, through
// relays only. Two thirds of the contenders wait: a queue costs little.
func (c *chaos) onEtcd() {
	c.patient, c.rest = 2, 2*time.Second
	c.cluster = startCluster(c, 3, func(m *server.Etcd) string {
		m.Client, m.Peer = helper.FreePort(c, c.servers), helper.FreePort(c, c.servers)
		r := relay.NewAt(c, c.relays, m.Peer)
		r.Sort = func(first []byte) *relay.Cable { return c.linkOf(first, m) }
		return r.Address()
	})
	for range 3 {
		var members []*node
		h := &mast{}
		for _, m := range c.cluster {
			r := relay.NewAt(c, c.relays, m.Client)
			members, h.cables = append(members, at(r.Address())), append(h.cables, r.Cable)
		}
		h.host = newHost(c, url(members...))
		c.add(h)
	}
}

// linkOf returns the link of a connection between peers, by the header with the asking member's id.
func (c *chaos) linkOf(first []byte, to *server.Etcd) *relay.Cable {
	_, from, _ := strings.Cut(string(first), "X-Server-From: ")
	from, _, _ = strings.Cut(from, "\r\n")
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.between {
		if l.from == from && l.to == to {
			return l.Cable
		}
	}
	l := &link{from, to, relay.NewCable()}
	c.between = append(c.between, l)
	return l.Cable
}

// onFTP starts a vsftpd. Waiters poll, so only a third of the contenders wait.
func (c *chaos) onFTP() {
	c.patient, c.rest = 1, 2*c.lease
	c.ftpd = &ftpd{server.StartFTP(c, helper.FreePort(c, c.servers), "")}
	for range 3 {
		r := relay.NewTeller(c, c.relays, c.ftpd.Address)
		c.add(&mast{host: c.ftpd.hostBy(c, r.Address()), ftp: r, cables: []*relay.Cable{r.Cable}})
	}
}

func (c *chaos) add(h *mast) {
	h.env = append(h.env, "ADLOCK_LEASE="+c.lease.String(), "CHAOS_SOCKET="+c.socket())
	c.hosts = append(c.hosts, h)
}

func (c *chaos) socket() string { return c.dir + "/judge" }

// play lets the crowd contend during the trouble, waits until every process has ended, and judges.
func (c *chaos) play(trouble func(*chaos)) judge.Margins {
	listener := must.Get(net.Listen("unix", c.socket()))(c)
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			c.attended.Go(func() { c.attend(conn) })
		}
	}()
	c.began = process.Boottime()
	up := time.AfterFunc(c.length, c.end)
	defer up.Stop()
	var all sync.WaitGroup
	for n := range crowd {
		all.Go(func() { c.contend(n) })
	}
	c.probe(&all)
	trouble(c)
	<-c.over
	c.settle(&all)
	return c.judged()
}

// probe asks all servers, each through a relay of its own that is not attacked, during the whole scenario.
func (c *chaos) probe(all *sync.WaitGroup) {
	ask := func(do func(context.Context) error) {
		all.Go(func() {
			for ; !isClosed(c.over); c.pass(c.lease / 30) {
				ctx, cancel := context.WithTimeout(context.Background(), c.lease/6)
				err := do(ctx)
				cancel()
				if err == nil {
					c.mu.Lock()
					c.answered = append(c.answered, process.Boottime())
					c.mu.Unlock()
				}
			}
		})
	}
	for _, m := range c.cluster {
		address := relay.NewAt(c, c.relays, m.Client).Address()
		client := must.Get(clientv3.New(clientv3.Config{Endpoints: []string{address}, Logger: zap.NewNop()}))(c)
		c.Cleanup(func() { client.Close() })
		ask(func(ctx context.Context) error { _, err := client.Put(ctx, "probe", ""); return err })
	}
	if c.ftpd != nil {
		address := relay.NewTeller(c, c.relays, c.ftpd.Address).Address()
		ask(func(ctx context.Context) error { return stored(ctx, address) })
	}
}

// stored stores a file, and lists it, like a heartbeat.
func stored(ctx context.Context, address string) error {
	until, _ := ctx.Deadline()
	conn, err := ftpclient.Dial(address, ftpclient.DialWithDialFunc(func(network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if err == nil {
			err = conn.SetDeadline(until)
		}
		return conn, err
	}))
	if err != nil {
		return err
	}
	defer conn.Quit()
	err = errors.Join(conn.Login("anonymous", "secret"), conn.Stor("locks/probe", strings.NewReader("")))
	_, listed := conn.NameList("locks")
	return errors.Join(err, listed, ctx.Err())
}

// silent returns the longest time without an answer from any server in the lease that ends at before.
func (c *chaos) silent(before time.Duration) time.Duration {
	longest, last := time.Duration(0), before-c.lease
	slices.Sort(c.answered)
	for _, at := range append(slices.Clone(c.answered), before) {
		if at > last && at <= before {
			longest, last = max(longest, at-last), at
		}
	}
	return longest
}

// end makes all jobs and contenders end.
func (c *chaos) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.over)
	for _, a := range c.attempts {
		if a.wire != nil {
			_, _ = a.wire.Write([]byte{0}) // it may have ended
		}
	}
}

// contend plays one contender, which starts attempts until the time is up.
func (c *chaos) contend(n int) {
	draw := source(c.seed, fmt.Sprint(c.Name(), " contender ", n))
	c.pass(c.lease * time.Duration(n) / crowd) // otherwise all would start at once
	for round := 0; !isClosed(c.over); round++ {
		a := c.newAttempt(draw, fmt.Sprintf("c%d.%d", n, round), n)
		c.attempt(a)
		c.pass(time.Duration(draw.Int64N(int64(c.rest))))
	}
}

func (c *chaos) newAttempt(draw *rand.Rand, id string, n int) *attempt {
	atom, work := 0, time.Duration(draw.Int64N(int64(200*time.Millisecond)))
	if n >= crowd/3 {
		atom, work = 1+n%(atoms-1), c.lease/2+time.Duration(draw.Int64N(int64(2*c.lease)))
	}
	a := &attempt{Ran: judge.Ran{ID: id, Atom: fmt.Sprint("atom", atom)}, host: c.hosts[draw.IntN(len(c.hosts))], waits: draw.IntN(3) < c.patient}
	args := []string{"run", "--verbose", "--expire-after=never", "--operand=" + a.Atom}
	if a.waits {
		args = append(args, "--wait="+(4*c.lease).String())
	}
	a.cmd = exec.Command(a.host.bin, append(args, "--", filepath.Join(beside, "job"))...)
	a.cmd.Env = append(append(need.Clean(), a.host.env...), "CHAOS_ID="+id, "CHAOS_WORK="+work.String(), "CHAOS_FILE="+filepath.Join(c.dir, a.Atom))
	if draw.IntN(2) == 0 {
		a.cmd.Env = append(a.cmd.Env, "CHAOS_DEAF=1")
	}
	a.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	a.cmd.Stderr = &a.said
	return a
}

// attempt starts the attempt, and records its end.
func (c *chaos) attempt(a *attempt) {
	c.mu.Lock()
	a.called = process.Boottime()
	err := helper.StartWithin(a.cmd)
	if err == nil {
		c.attempts[a.ID] = a
	}
	c.mu.Unlock()
	if err != nil {
		c.Error(err)
		return
	}
	err = a.cmd.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	a.done, a.status = process.Boottime(), a.cmd.ProcessState.ExitCode()
	if said := a.said.String(); strings.Contains(said, "\ngoroutine ") {
		c.Errorf("%s on %s broke down: %s", a.ID, a.Atom, said)
	}
	c.statuses[fmt.Sprint(a.status)]++
	if a.status != 0 && a.status != 75 && !a.Attacked {
		c.note("%s on %s: %v: %s", a.ID, a.Atom, err, a.said.String())
	}
}

// attend reads from a job's connection until the job is gone.
func (c *chaos) attend(conn net.Conn) {
	defer conn.Close()
	reader := bufio.NewReader(conn)
	var id string
	var pid int
	var begin, end int64
	var r judge.Ran
	first, err := reader.ReadString('\n')
	if err == nil {
		_, err = fmt.Sscanf(first, "begin %s %d %d %t %d", &id, &pid, &begin, &r.Alone, &r.Fence)
	}
	if err != nil {
		return // killed before it began
	}
	c.mu.Lock()
	a := c.attempts[id]
	a.job, a.wire = pid, conn
	a.Begin, a.Alone, a.Fence = time.Duration(begin), r.Alone, r.Fence
	enough := isClosed(c.over)
	c.mu.Unlock()
	if enough {
		_, _ = conn.Write([]byte{0}) // it may have ended
	}
	last, err := reader.ReadString('\n')
	if err == nil {
		_, err = fmt.Sscanf(last, "end %d", &end)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	a.End, a.wire = time.Duration(end), nil
	if a.Killed = err != nil; a.Killed {
		a.End = process.Boottime()
		c.note("the job of %s at %s died, %v after it began", a.ID, a.Atom, (a.End - a.Begin).Round(time.Millisecond))
	}
}

// settle waits until every contender has ended by itself.
func (c *chaos) settle(all *sync.WaitGroup) {
	c.Helper()
	quiet := make(chan struct{})
	go func() { all.Wait(); close(quiet) }()
	limit := time.NewTimer(helper.Patience + 4*c.lease)
	defer limit.Stop()
	select {
	case <-quiet:
	case <-limit.C:
	}
	c.mu.Lock()
	var hung []*attempt
	for _, a := range c.attempts {
		if a.done == 0 {
			hung = append(hung, a)
			c.Errorf("%s at %s hangs since %v", a.ID, a.Atom, c.since(a.called))
			_ = a.cmd.Process.Signal(syscall.SIGABRT) // the trace shows where it hangs
		}
	}
	c.mu.Unlock()
	for _, a := range hung {
		time.Sleep(time.Second) // for the trace
		helper.KillSession(a.cmd.Process.Pid)
	}
	<-quiet
	if len(hung) > 0 {
		c.Logf("where %s hangs:\n%s", hung[0].ID, hung[0].said.String())
	}
	c.awaitReports()
}

// awaitReports returns when all reports of the jobs were read.
func (c *chaos) awaitReports() {
	last := must.Get(net.Dial("unix", c.socket()))(c) // served after all earlier connections
	defer last.Close()
	_, _ = last.Write([]byte("\n"))
	_, _ = last.Read(make([]byte, 1)) // until it is closed
	gone := make(chan struct{})
	go func() { c.attended.Wait(); close(gone) }()
	helper.Within(c, helper.Patience, "all jobs are gone", func() bool { return isClosed(gone) })
}

var isClosed = helper.IsClosed

// since returns a boottime counted from the beginning, for messages.
func (c *chaos) since(at time.Duration) time.Duration { return (at - c.began).Round(time.Microsecond) }

// judged passes all runs to the judge.
func (c *chaos) judged() judge.Margins {
	var runs []judge.Ran
	var waits []judge.Waited
	for _, a := range c.attempts {
		if a.waits {
			to := a.done
			if a.job != 0 {
				to = a.Begin
			}
			waits = append(waits, judge.Waited{Atom: a.Atom, From: a.called, To: to})
		}
		if a.job == 0 {
			continue
		}
		for _, away := range a.host.lost {
			if a.Begin < away.to+c.lease/3 && a.End > away.from {
				a.Attacked = true
				if a.Begin < away.from && a.End < away.to {
					a.Lost = away.from
				}
			}
		}
		a.Excused = a.Killed && c.silent(a.End) > c.lease/3
		runs = append(runs, a.Ran)
	}
	return judge.Runs(runs, waits)
}

// note logs an event that may explain a failure, up to a limit.
func (c *chaos) note(format string, words ...any) {
	if c.noted++; c.noted <= 400 {
		c.say(format, words...)
	}
}

// say logs an event and its time.
func (c *chaos) say(format string, words ...any) {
	c.Logf("%v: "+format, append([]any{c.since(process.Boottime()).Round(time.Millisecond)}, words...)...)
}

var buildJob = sync.OnceValues(func() (string, error) {
	path := filepath.Join(beside, "job")
	return path, helper.Compile(path, "./test/network/job")
})
