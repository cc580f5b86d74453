package main

import (
	"net"
	"os"
	"strconv"
	"testing"
	"time"

	"adlock/lib/fault"
	"adlock/lib/lease"
	"adlock/lib/lease/etcd"
	"adlock/lib/lockdir/lockfile"
	"adlock/lib/process"
	"adlock/test/support/actor"
	"adlock/test/support/must"
)

func TestAScriptThatIsProcess1GetsNoLockInAStore(t *testing.T) {
	h := &holder{leaseArgs: newLease()}
	h.Owner, h.start = 1, strconv.FormatUint(must.Get(process.Of(1))(t).Start, 10)
	if err := h.findOwner(); fault.KindOf(err) != fault.Usage {
		t.Error(err) // it would run on after its lease
	}
}

// A script in another pid namespace cannot be ended from here.
func TestAScriptThatCannotBeEndedCanStillRelease(t *testing.T) {
	h := &holder{leaseArgs: newLease(), token: "feed", end: make(chan time.Duration, 1), smith: &lease.Locker{}}
	h.dir, h.smith.Store = must.Get(lockfile.Create(t.TempDir()))(t), must.Get(etcd.Open("etcd://127.0.0.1:1/p"))(t)
	h.socket = must.Get(net.Listen("unix", t.TempDir()+"/socket"))(t)
	h.Request.Owner = must.Get(process.Of(os.Getpid()))(t)
	h.Request.Owner.PIDNS++
	h.end <- 0
	served := make(chan error, 1)
	go func() { served <- h.serve() }()
	actor.Eventually(t, "it is being ended", func() bool { return len(h.end) == 0 })
	line := must.Get(net.Dial("unix", h.socket.Addr().String()))(t)
	defer line.Close()
	must.Get(line.Write([]byte(`{"Status":3}`)))(t)
	actor.Eventually(t, "its release is heard", func() bool { return len(served) > 0 })
}
