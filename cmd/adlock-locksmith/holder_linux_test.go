package main

import (
	"net"
	"strconv"
	"syscall"
	"testing"
	"time"

	"adlock/lib/fault"
	"adlock/lib/lease"
	"adlock/lib/lease/etcd"
	"adlock/lib/lockdir/lockfile"
	"adlock/lib/locker"
	"adlock/lib/process"
	"adlock/lib/runlog"
	"adlock/test/support/actor"
	"adlock/test/support/helper"
	"adlock/test/support/must"
)

func TestMain(m *testing.M) { actor.Main(m) }

func init() {
	// Serves the process args[0], which a newcomer wants to end. The socket and the runlog are in args[1].
	actor.Roles["holder"] = func(args []string) int {
		h := &holder{leaseArgs: newLease(), token: "feed", end: make(chan time.Duration, 1)}
		store, _ := etcd.Open("etcd://127.0.0.1:1/p")
		h.smith = &lease.Locker{Store: store, Recorder: locker.Recorder{Log: &runlog.Log{Dir: args[1], Host: "h"}}}
		h.dir, _ = lockfile.Create(args[1])
		h.socket, _ = net.Listen("unix", args[1]+"/socket")
		pid, _ := strconv.Atoi(args[0])
		h.Request.Owner, _ = process.Of(pid)
		h.end <- 0
		_ = h.serve() // nothing is held
		return 0
	}
}

// A script that is process 1 of a container would run on after its lease.
func TestAScriptThatIsProcess1GetsNoLockInAStore(t *testing.T) {
	h := &holder{leaseArgs: newLease()}
	h.Owner = 1
	h.start = strconv.FormatUint(must.Get(process.Of(1))(t).Start, 10)
	if err := h.findOwner(); fault.KindOf(err) != fault.Usage {
		t.Errorf("%v", err)
	}
}

// The killer ends no job that its own process belongs to. So the holder, in the script's group, stands for a
// process that may not be signalled.
func TestAFailedEndingHoldsTheAtomUntilTheScriptReleases(t *testing.T) {
	dir, owner := t.TempDir(), actor.Sleeper(t, actor.Leads)
	h := actor.Play(t, syscall.SysProcAttr{Setpgid: true, Pgid: owner.PID()}, "holder", strconv.Itoa(owner.PID()), dir)
	actor.Eventually(t, "the ending has failed", func() bool {
		for e := range (&runlog.Log{Dir: dir, Host: "h"}).Newest(1 << 20) {
			return e.Kind == runlog.Stuck
		}
		return false
	})
	owner.Kill()
	time.Sleep(2 * time.Second) // twice the time in which a holder notices the death of its owner
	if !helper.Alive(h.PID()) {
		t.Fatal("released while a process of the script lives:", h.Said())
	}
	line := must.Get(net.Dial("unix", dir+"/socket"))(t)
	defer line.Close()
	must.Get(line.Write([]byte(`{"Status":3}`)))(t)
	actor.Eventually(t, "the holder has heard the release", func() bool { return !helper.Alive(h.PID()) })
}
