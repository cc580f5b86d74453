//go:build soak

package network

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"adlock/test/support/helper"
	"adlock/test/support/need"
)

// lab is a server and hosts, each in a network namespace of its own. Each host has one cable, to
// the server.
type lab struct {
	server string // namespace
	hosts  []*host
}

// ip runs ip(8), and skips the test if the kernel does not allow it.
func ip(t testing.TB, words string) {
	t.Helper()
	if output, err := exec.Command("ip", strings.Fields(words)...).CombinedOutput(); err != nil {
		t.Skipf("ip %s: %v: %s", words, err, output)
	}
}

func newNamespace(t testing.TB, name string) string {
	t.Helper()
	name = fmt.Sprintf("adlock-%d-%s", os.Getpid(), name)
	ip(t, "netns add "+name)
	t.Cleanup(func() {
		if output, err := exec.Command("ip", "netns", "del", name).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, output)
		}
	})
	ip(t, "-n "+name+" link set lo up")
	return name
}

func inside(namespace string) []string { return []string{"ip", "netns", "exec", namespace} }

// newLab connects n hosts. The addresses are of TEST-NET-1 (RFC 5737): cable i
// is 192.0.2.4i/30, the server its first address.
func newLab(t testing.TB, n int) *lab {
	t.Helper()
	need.Tools(t, "ip", "etcd", "etcdctl")
	need.Root(t)
	l := &lab{server: newNamespace(t, "server")}
	for i := range n {
		name := newNamespace(t, fmt.Sprint("host", i))
		ip(t, fmt.Sprintf("-n %s link add up0 type veth peer name cable%d netns %s", name, i, l.server))
		ip(t, fmt.Sprintf("-n %s addr add 192.0.2.%d/30 dev cable%d", l.server, 4*i+1, i))
		ip(t, fmt.Sprintf("-n %s addr add 192.0.2.%d/30 dev up0", name, 4*i+2))
		ip(t, fmt.Sprintf("-n %s link set cable%d up", l.server, i))
		ip(t, fmt.Sprintf("-n %s link set up0 up", name))
		h := newHost(t, fmt.Sprintf("etcd://192.0.2.%d:2379/adlock", 4*i+1)).brief()
		h.inside = slices.Clip(inside(name))
		l.hosts = append(l.hosts, h)
	}
	l.startEtcd(t)
	return l
}

func (l *lab) startEtcd(t testing.TB) {
	t.Helper()
	args := append(inside(l.server), "etcd", "--data-dir", t.TempDir(), "--log-level", "error",
		"--listen-client-urls", "http://0.0.0.0:2379", "--advertise-client-urls", "http://192.0.2.1:2379",
		"--listen-peer-urls", "http://127.0.0.1:2380", "--initial-advertise-peer-urls", "http://127.0.0.1:2380",
		"--initial-cluster", "default=http://127.0.0.1:2380")
	cmd := exec.Command(args[0], args[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Env = need.Clean()
	if err := helper.StartWithin(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may be gone already
		_ = cmd.Wait()
	})
	health := append(inside(l.server), "etcdctl", "--endpoints", "127.0.0.1:2379", "--command-timeout=2s", "endpoint", "health")
	helper.Eventually(t, "etcd answers", func() bool { return exec.Command(health[0], health[1:]...).Run() == nil })
}

// pull pulls the cable of host i out of the server.
func (l *lab) pull(t testing.TB, i int) {
	t.Helper()
	ip(t, fmt.Sprintf("-n %s link set cable%d down", l.server, i))
}

func TestTwoHundredContendersInNetworksOfTheirOwnNeverOverlap(t *testing.T) {
	l := newLab(t, 3)
	a := newArena(t, l.hosts...)
	a.fight(t, contenders, 12, nil)
	t.Log(a)
	if a.counted("released") < contenders/10 || a.counted("error") > 0 {
		t.Errorf("%v", a)
	}
	a.judge(t)
}

func TestOwnerWhoseCableIsPulledEndsItsJobBeforeAnotherBegins(t *testing.T) {
	l := newLab(t, 2)
	file := t.TempDir() + "/beats"
	owner := l.hosts[0].beats(t, file)
	l.pull(t, 0)
	pulled := time.Now()
	next := l.hosts[1].run(t, begins, "--wait=60s")
	if next.Status != 0 {
		t.Fatalf("%+v\n%s", next, owner.Output())
	}
	t.Logf("cable pulled: the next job began %v after that, %v after the last sign of the job", time.Since(pulled).Round(time.Millisecond), margin(t, file, next.Out))
	if status := owner.Wait(t); status != 137 {
		t.Errorf("the owner's status is %d", status)
	}
}
