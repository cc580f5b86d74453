package network

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"adlock/lib/limit"
	"adlock/test/support/helper"
	"adlock/test/support/must"
	"adlock/test/support/server"
)

// node is one member of an etcd cluster.
type node struct{ *server.Etcd }

// startEtcd starts a cluster of n nodes, with more options for each, and waits until it answers.
func startEtcd(t testing.TB, n int, options ...string) []*node {
	t.Helper()
	return startCluster(t, n, func(m *server.Etcd) string { return m.Peer }, options...)
}

// startCluster is startEtcd for members whose peers reach them at the address reached returns.
func startCluster(t testing.TB, n int, reached func(*server.Etcd) string, options ...string) (nodes []*node) {
	t.Helper()
	for _, m := range server.Cluster(t, n, reached, options...) {
		nodes = append(nodes, &node{m})
	}
	return nodes
}

// at returns a node with the address of a relay, for url.
func at(address string) *node { return &node{&server.Etcd{Client: address}} }

// leads reports whether the node is the leader.
func (m *node) leads() bool {
	member, leader := m.Status()
	return leader != "" && leader == member
}

func url(nodes ...*node) string { return "etcd://" + endpoints(nodes) + "/adlock" }

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

// lasting is a lease that a busy machine renews in time. Tests are over before a third of it has passed.
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

// with returns a copy of the host with more in its environment.
func (h host) with(env ...string) *host {
	h.env = append(slices.Clip(h.env), env...)
	return &h
}

// onEtcd returns two hosts of an etcd.
func onEtcd(t testing.TB) (a, b *host) {
	t.Helper()
	s := url(startEtcd(t, 1)...)
	return newHost(t, s), newHost(t, s)
}

func (h *host) another(t testing.TB) *host {
	other := h.with()
	other.dir = helper.Dir(t)
	return other.with("ADLOCK_DIR=" + other.dir)
}

// command is `adlock run` with the options, and a shell script as its job.
func (h *host) command(script string, options ...string) helper.Command {
	args := slices.Concat(h.inside, []string{h.bin, "run"}, options, []string{"--", "sh", "-c", script})
	return helper.Command{Args: args, Env: h.env}
}

func (h *host) run(t testing.TB, script string, options ...string) helper.Result {
	t.Helper()
	return h.command(script, options...).Run(t)
}

// ready is the command by which a script reports that it runs. start puts it first if the script has none.
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
		p.Lives(t)
		return exists(file)
	})
	return p
}

func (h *host) verb(t testing.TB, words ...string) helper.Result {
	t.Helper()
	return helper.Command{Args: slices.Concat(h.inside, []string{h.bin}, words), Env: h.env}.Run(t)
}

// script is a shell script that has sourced the library.
func (h *host) script(text string) helper.Command {
	return helper.Command{
		Args: []string{"sh", "-c", `. "$library"; ` + text},
		Env:  append(slices.Clip(h.env), "ADLOCK_BIN="+h.bin, "library="+filepath.Join(helper.Root(), "sh/adlock.sh")),
	}
}

// wants runs a verb, and fails the test unless it succeeds without a message and prints the pattern.
func (h *host) wants(t testing.TB, pattern string, words ...string) string {
	t.Helper()
	r := h.verb(t, words...)
	if r.Status != 0 || r.Err != "" || !regexp.MustCompile(pattern).MatchString(r.Out) {
		t.Errorf("%q: %+v, want %q", words, r, pattern)
	}
	return r.Out
}

// explains fails the test unless a dry run with these options prints the pattern.
func (h *host) explains(t testing.TB, pattern string, options ...string) {
	t.Helper()
	if r := h.run(t, "", append(options, "--dry-run")...); !regexp.MustCompile(pattern).MatchString(r.Out) {
		t.Errorf("%+v, want %q", r, pattern)
	}
}

// awaitExpired waits until a newcomer with this limit would end the owner.
func (h *host) awaitExpired(t testing.TB, limit string) {
	t.Helper()
	helper.Eventually(t, "it has expired", func() bool {
		return strings.HasPrefix(h.run(t, "", "--expire-after="+limit, "--dry-run").Out, "expired: ")
	})
}

// endsWith waits for the end of the process, and fails the test unless it has the status and has printed the output.
func endsWith(t testing.TB, p *helper.Process, status int, output string) {
	t.Helper()
	if got := p.Wait(t); got != status || p.Output() != output {
		t.Errorf("status %d, output %q; want %d, %q", got, p.Output(), status, output)
	}
}

func stop(t testing.TB, runs ...*helper.Process) {
	t.Helper()
	for _, p := range runs {
		p.Signal(t, syscall.SIGTERM)
		p.Wait(t)
	}
}

func touch(t testing.TB, path string) {
	t.Helper()
	must.Do(t, os.WriteFile(path, nil, 0o600))
}

// until returns a script that waits for the file.
func until(file string) string { return "until [ -e '" + file + "' ]; do sleep 0.05; done; " }

// limited returns a context that lasts as long as a test may wait.
func limited(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), helper.Patience)
	t.Cleanup(cancel)
	return ctx
}

func (h *host) runlog() string {
	text, _ := os.ReadFile(h.dir + "/program.shared.runlog") // "" where there is none
	return string(text)
}

func exists(path string) bool { _, err := os.Stat(path); return err == nil }

// patient lets etcdctl(1) wait for an answer for longer than its five seconds.
var patient = "--command-timeout=" + helper.Patience.String()

// etcdctl is a command of etcdctl(1) with the members.
func etcdctl(nodes []*node, args ...string) *exec.Cmd {
	return exec.Command("etcdctl", append([]string{"--endpoints", endpoints(nodes), patient}, args...)...)
}

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

func leasesOf(t testing.TB, nodes []*node) []string {
	t.Helper()
	return regexp.MustCompile(`(?m)^[0-9a-f]{8,}$`).FindAllString(ctl(t, nodes, "lease", "list"), -1)
}

func endpoints(nodes []*node) string {
	var all []string
	for _, m := range nodes {
		all = append(all, m.Client)
	}
	return strings.Join(all, ",")
}
