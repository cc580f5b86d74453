package network

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"adlock/test/support/helper"
)

// The watchdog of the next waiter starts while that waiter waits, so that a hand-over does not wait
// for it. The waiters behind have no watchdogs. A waiter that gives up leaves no watchdog.
func TestOnlyTheHeadOfTheQueueStartsItsWatchdogAhead(t *testing.T) {
	t.Parallel()
	nodes := startEtcd(t, 1)
	h := newHost(t, url(nodes...))
	dir := t.TempDir()
	until := func(file string) string {
		return "until [ -e '" + filepath.Join(dir, file) + "' ]; do sleep 0.05; done"
	}
	let := func(file string) {
		t.Helper()
		touch(t, filepath.Join(dir, file))
	}
	inLine := 1
	owner := h.start(t, until("first goes"))
	waits := func(script string) *helper.Process {
		t.Helper()
		p := h.command(script, "--wait=60s").Start(t)
		inLine++
		helper.Eventually(t, "it stands in line", func() bool { return len(keysOf(t, nodes, "/adlock/p.shared.o.x/line/")) == inLine })
		return p
	}
	second := waits(until("second goes"))
	helper.Eventually(t, "the next one's watchdog is there", func() bool { return len(helper.WatchdogsOf(second.PID)) == 1 })
	third, fourth := waits("exit 5"), waits("exit 6")
	if n := len(helper.WatchdogsOf(third.PID)) + len(helper.WatchdogsOf(fourth.PID)); n != 0 {
		t.Errorf("those behind have %d watchdogs", n)
	}

	let("first goes")
	if status := owner.Wait(t); status != 0 {
		t.Errorf("the owner ended with %d", status)
	}
	helper.Eventually(t, "the owner's watchdog has gone", func() bool { return len(helper.WatchdogsOf(owner.PID)) == 0 })
	helper.Eventually(t, "it is the third's turn to be next", func() bool { return len(helper.WatchdogsOf(third.PID)) == 1 })
	if n := len(helper.WatchdogsOf(second.PID)); n != 1 {
		t.Errorf("the owner has %d watchdogs", n)
	}

	third.Signal(t, syscall.SIGTERM) // it leaves the line
	third.Wait(t)
	helper.Eventually(t, "its watchdog has gone", func() bool { return len(helper.WatchdogsOf(third.PID)) == 0 })
	helper.Eventually(t, "it is the fourth's turn", func() bool { return len(helper.WatchdogsOf(fourth.PID)) == 1 })
	fourth.Kill(t)
	helper.Eventually(t, "the watchdog of one that was killed has gone", func() bool { return len(helper.WatchdogsOf(fourth.PID)) == 0 })
	let("second goes")
	if status := second.Wait(t); status != 0 {
		t.Errorf("the second ended with %d: %s", status, second.Output())
	}
}

// The watchdog of a lease must begin before the client libraries are initialised: otherwise it, and
// the process that starts it, would take three times as long to start.
func TestTheWatchdogBeginsBeforeTheClientLibrariesDo(t *testing.T) {
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
