package network

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"adlock/test/support/helper"
)

// The watchdog of the next waiter starts while that waiter waits, so that a hand-over does not wait
// for it. The waiters behind have no watchdogs. A waiter that gives up leaves no watchdog.
func TestOnlyTheNextWaiterHasAWatchdog(t *testing.T) {
	t.Parallel()
	nodes := startEtcd(t, 1)
	h := newHost(t, url(nodes...))
	first, second := t.TempDir()+"/first", t.TempDir()+"/second" // the owners go when these are there
	watchdogs := func(p *helper.Process, want int) {
		t.Helper()
		claim := fmt.Sprintf("process %d has %d watchdogs", p.PID, want)
		helper.Eventually(t, claim, func() bool { return len(helper.WatchdogsOf(p.PID)) == want })
	}
	queued := 1
	owner := h.start(t, until(first))
	waits := func(script string) *helper.Process {
		t.Helper()
		p := h.command(script, "--wait=60s").Start(t)
		queued++
		helper.Eventually(t, "it is in the queue", func() bool {
			return len(keysOf(t, nodes, "/adlock/p.shared.o.x/line/")) == queued
		})
		return p
	}
	next := waits(until(second))
	watchdogs(next, 1)
	third, fourth := waits("exit 5"), waits("exit 6")
	if n := len(helper.WatchdogsOf(third.PID)) + len(helper.WatchdogsOf(fourth.PID)); n != 0 {
		t.Errorf("those behind have %d watchdogs", n)
	}
	touch(t, first)
	endsWith(t, owner, 0, "")
	watchdogs(owner, 0)
	watchdogs(third, 1)
	if n := len(helper.WatchdogsOf(next.PID)); n != 1 {
		t.Errorf("the owner has %d watchdogs", n)
	}
	stop(t, third) // it leaves the queue
	watchdogs(third, 0)
	watchdogs(fourth, 1)
	fourth.Kill(t)
	watchdogs(fourth, 0)
	touch(t, second)
	endsWith(t, next, 0, "")
}

// The watchdog of a lease must begin before the client libraries are initialised: otherwise it, and
// the process that starts it, would take three times as long to start.
func TestTheWatchdogBeginsBeforeTheClientLibraries(t *testing.T) {
	t.Parallel()
	smith := filepath.Join(filepath.Dir(binary(t)), "adlock-locksmith")
	r := helper.Command{Args: []string{smith, "--version"}, Env: []string{"GODEBUG=inittrace=1"}}.Run(t)
	early := strings.Index(r.Err, "\ninit adlock/cmd/adlock-locksmith/early ")
	if early < 0 {
		t.Fatalf("%+v", r)
	}
	for _, library := range []string{"google.golang.org/grpc", "google.golang.org/protobuf/reflect/protodesc", "go.etcd.io/etcd/api/v3/etcdserverpb"} {
		if at := strings.Index(r.Err, "\ninit "+library+" "); at < early {
			t.Errorf("%s is initialised at %d, before %d", library, at, early)
		}
	}
}
