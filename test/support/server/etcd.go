// Package server starts the real servers that tests need: members of etcd, and vsftpd. They end with
// the test.
package server

import (
	"fmt"
	"net"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"adlock/test/support/helper"
	"adlock/test/support/need"
)

// Etcd is one member of an etcd cluster.
type Etcd struct {
	Client, Peer string   // HOST:PORT
	Name         string   // in the cluster
	TLS          []string // options; none: no TLS
	options      []string // other options
	reached      string   // the address at which its peers reach it
	dir, cluster string
	cmd          *exec.Cmd
	ended        chan struct{}
}

// Cluster starts n members, with more options for each, and waits until they answer. Their peers reach
// them at the address that reached returns.
func Cluster(t testing.TB, n int, reached func(*Etcd) string, options ...string) []*Etcd {
	t.Helper()
	need.Tools(t, "etcd", "etcdctl")
	var all []*Etcd
	var names []string
	for i := range n {
		m := &Etcd{
			Client: helper.FreePort(t, "127.0.0.1"), Peer: helper.FreePort(t, "127.0.0.1"),
			Name: fmt.Sprint("n", i), dir: t.TempDir(), options: options,
		}
		m.reached = reached(m)
		all, names = append(all, m), append(names, m.Name+"=http://"+m.reached)
	}
	for _, m := range all {
		m.cluster = strings.Join(names, ",")
		m.Start(t)
	}
	helper.Eventually(t, "etcd answers", func() bool {
		return exec.Command("etcdctl", "--endpoints", all[n-1].Client, "--command-timeout=2s", "endpoint", "health").Run() == nil
	})
	return all
}

// Start starts etcd, and returns when it listens: it may not answer yet.
func (m *Etcd) Start(t testing.TB) {
	t.Helper()
	scheme := "http://"
	if m.TLS != nil {
		scheme = "https://"
	}
	args := append([]string{"--name", m.Name, "--data-dir", m.dir,
		"--listen-client-urls", scheme + m.Client, "--advertise-client-urls", scheme + m.Client,
		"--listen-peer-urls", "http://" + m.Peer, "--initial-advertise-peer-urls", "http://" + m.reached,
		"--initial-cluster", m.cluster, "--log-level", "error", "--unsafe-no-fsync"}, append(m.TLS, m.options...)...)
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
	t.Cleanup(m.Kill)
	helper.Eventually(t, "etcd listens", func() bool {
		select {
		case <-ended:
			t.Fatal("etcd has ended: another process may have its port")
		default:
		}
		return answers(m.Client)
	})
}

// Kill ends the member at once; its data stay.
func (m *Etcd) Kill() {
	_ = m.cmd.Process.Kill() // it may be gone already
	<-m.ended
}

// Signal sends the member a signal.
func (m *Etcd) Signal(t testing.TB, sig syscall.Signal) {
	t.Helper()
	if err := m.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// Status returns the ids of the member and of the leader it knows; "" if it does not answer.
func (m *Etcd) Status() (member, leader string) {
	out, _ := exec.Command("etcdctl", "--endpoints", m.Client, "--command-timeout=2s", "endpoint", "status", "-w", "fields").Output()
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

// answers reports whether something listens at the address.
func answers(address string) bool {
	conn, err := net.DialTimeout("tcp", address, time.Second)
	if err == nil {
		conn.Close()
	}
	return err == nil
}
