package network

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"adlock/lib/limit"
	"adlock/test/support/helper"
	"adlock/test/support/need"
)

// node is one member of an etcd cluster.
type node struct {
	client, peer string // HOST:PORT
	reached      string // the address at which its peers reach it
	name, dir    string
	cluster      string
	tls          []string // options; none: no TLS
	options      []string // other options
	cmd          *exec.Cmd
	ended        chan struct{}
}

// startEtcd starts a cluster of n nodes and waits until it answers.
func startEtcd(t testing.TB, n int) []*node {
	t.Helper()
	return startEtcdWith(t, n)
}

// startEtcdWith is startEtcd with more options for each node.
func startEtcdWith(t testing.TB, n int, options ...string) []*node {
	t.Helper()
	return startCluster(t, n, func(m *node) string { return m.peer }, options...)
}

// startCluster is startEtcdWith for members whose peers reach them at the address reached returns.
func startCluster(t testing.TB, n int, reached func(*node) string, options ...string) []*node {
	t.Helper()
	need.Tools(t, "etcd", "etcdctl")
	var nodes []*node
	var members []string
	for i := range n {
		m := &node{client: freePort(t), peer: freePort(t), name: fmt.Sprint("n", i), dir: t.TempDir(), options: options}
		m.reached = reached(m)
		nodes, members = append(nodes, m), append(members, m.name+"=http://"+m.reached)
	}
	for _, m := range nodes {
		m.cluster = strings.Join(members, ",")
		m.start(t)
	}
	helper.Eventually(t, "etcd answers", func() bool {
		return exec.Command("etcdctl", "--endpoints", nodes[n-1].client, "--command-timeout=2s", "endpoint", "health").Run() == nil
	})
	return nodes
}

// start starts etcd, and returns when it listens: it may not answer yet.
func (m *node) start(t testing.TB) {
	t.Helper()
	scheme := "http://"
	if m.tls != nil {
		scheme = "https://"
	}
	args := append([]string{"--name", m.name, "--data-dir", m.dir,
		"--listen-client-urls", scheme + m.client, "--advertise-client-urls", scheme + m.client,
		"--listen-peer-urls", "http://" + m.peer, "--initial-advertise-peer-urls", "http://" + m.reached,
		"--initial-cluster", m.cluster, "--log-level", "error", "--unsafe-no-fsync"}, append(m.tls, m.options...)...)
	m.cmd = exec.Command("etcd", args...)
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	m.cmd.Env = append(need.Clean(), "ETCD_UNSUPPORTED_ARCH=arm64")
	if err := helper.StartWithin(m.cmd); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	m.ended = ended
	cmd := m.cmd
	go func() { _ = cmd.Wait(); close(ended) }()
	t.Cleanup(m.kill)
	helper.Eventually(t, "etcd listens", func() bool { return answers(m.client) })
}

func (m *node) kill() {
	_ = m.cmd.Process.Kill() // it may be gone already
	<-m.ended
}

func (m *node) signal(t testing.TB, sig syscall.Signal) {
	t.Helper()
	if err := m.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// leads asks the node whether it is the leader.
func (m *node) leads() bool {
	member, leader := m.status()
	return leader != "" && leader == member
}

// status returns the ids of the node and of the leader it knows; "" if it does not answer.
func (m *node) status() (member, leader string) {
	out, _ := exec.Command("etcdctl", "--endpoints", m.client, "--command-timeout=2s", "endpoint", "status", "-w", "fields").Output()
	for line := range strings.Lines(string(out)) {
		if value, found := strings.CutPrefix(line, `"Leader" : `); found {
			leader = strings.TrimSpace(value)
		}
		if value, found := strings.CutPrefix(line, `"MemberID" : `); found {
			member = strings.TrimSpace(value)
		}
	}
	return member, leader
}

func url(nodes ...*node) string {
	var hosts []string
	for _, m := range nodes {
		hosts = append(hosts, m.client)
	}
	return "etcd://" + strings.Join(hosts, ",") + "/adlock"
}

func freePort(t testing.TB) string {
	t.Helper()
	return helper.FreePort(t, "127.0.0.1")
}

// host is one machine, with a lock directory and a runlog of its own, and the address of a store.
type host struct {
	dir, store, bin string
	env             []string
	inside          []string // the command that enters its network namespace; none: the test's own
}

// lasting is a lease that a busy machine renews in time, and after a third of which a test is over.
const lasting = "1m"

// newHost returns a host with a lasting lease.
func newHost(t testing.TB, store string) *host {
	t.Helper()
	h := &host{dir: helper.Dir(t), store: store, bin: binary(t)}
	h.env = []string{
		"ADLOCK_DIR=" + h.dir, "ADLOCK_STORE=" + store, "ADLOCK_LEASE=" + lasting, "ADLOCK_HOST=shared",
		"ADLOCK_PROGRAM=p", "ADLOCK_OPERATOR=o", "ADLOCK_OPERAND=x", "ADLOCK_PAUSE=1s",
	}
	return h
}

// leased gives the host another lease, for tests that wait for its end.
func (h *host) leased(length time.Duration) *host {
	h.env = append(h.env, "ADLOCK_LEASE="+length.String())
	return h
}

// brief gives the host the shortest lease.
func (h *host) brief() *host { return h.leased(limit.ShortestLease) }

// command is `adlock run` with the options, and a shell script as its job.
func (h *host) command(script string, options ...string) helper.Command {
	args := append(append(h.inside, h.bin, "run"), options...)
	return helper.Command{Args: append(args, "--", "sh", "-c", script), Env: h.env, Limit: 90 * time.Second}
}

func (h *host) run(t testing.TB, script string, options ...string) helper.Result {
	t.Helper()
	return h.command(script, options...).Run(t)
}

// ready is the command by which a script reports that it runs. start puts it first if the script
// has none.
const ready = `: >"$ready"; `

// start starts a job and waits until it runs.
func (h *host) start(t testing.TB, script string, options ...string) *helper.Process {
	t.Helper()
	if !strings.Contains(script, ready) {
		script = ready + script
	}
	file := t.TempDir() + "/ready"
	c := h.command(script, options...)
	c.Env = append(slices.Clip(c.Env), "ready="+file)
	p := c.Start(t)
	helper.Eventually(t, "the job runs", func() bool {
		if p.Ended() {
			t.Fatalf("it ended: %s", p.Output())
		}
		return exists(file)
	})
	return p
}

func (h *host) runlog() string {
	text, _ := os.ReadFile(h.dir + "/program.shared.runlog") // "" where there is none
	return string(text)
}

func exists(path string) bool { _, err := os.Stat(path); return err == nil }

// answers reports whether something listens at the address.
func answers(address string) bool {
	conn, err := net.DialTimeout("tcp", address, time.Second)
	if err == nil {
		conn.Close()
	}
	return err == nil
}

// patient lets etcdctl(1) wait for an answer for longer than its five seconds.
var patient = "--command-timeout=" + helper.Patience.String()

// etcdctl is a command of etcdctl(1) with the members.
func etcdctl(nodes []*node, args ...string) *exec.Cmd {
	return exec.Command("etcdctl", append([]string{"--endpoints", endpoints(nodes), patient}, args...)...)
}

// ctl runs a command of etcdctl(1) with the members.
func ctl(t testing.TB, nodes []*node, args ...string) string {
	t.Helper()
	out, err := etcdctl(nodes, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("etcdctl %q: %v: %s", args, err, out)
	}
	return string(out)
}

func keysOf(t testing.TB, nodes []*node, prefix string) []string {
	t.Helper()
	return strings.Fields(ctl(t, nodes, "get", "--prefix", "--keys-only", prefix))
}

func endpoints(nodes []*node) string {
	var all []string
	for _, m := range nodes {
		all = append(all, m.client)
	}
	return strings.Join(all, ",")
}
