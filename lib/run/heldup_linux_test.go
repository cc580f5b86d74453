package run

import (
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/atom"
	"adlock/lib/config"
	"adlock/lib/fault"
	"adlock/lib/locker"
	"adlock/lib/process"
	"adlock/lib/supervise"
	"adlock/test/support/helper"
)

// unrecorded is a locker in whose lock no members can be recorded.
type unrecorded struct {
	locker.Locker
	locker.JobRecorder
	err error
}

func (k unrecorded) RecordMembers(atom.Name, string, []process.Identity) error { return k.err }

func (k unrecorded) OwnStuck(r *locker.Request, token string, age time.Duration, why error) {
	locker.Recorder{}.OwnStuck(r, token, age, why)
}

// A supervisor that must end its job tries again and again while another process holds the guard
// of the lock or of a slot. If that process is stopped, a person must learn of it, once.
func TestASupervisorReportsAStoppedNewcomerOnce(t *testing.T) {
	for kind, want := range map[fault.Kind]string{fault.Denied: "", fault.NotPermitted: "adlock: run a: stuck: slot: another process is changing the lock; adlock stays with the job, and keeps its lock, until nothing of it is left\n"} {
		r := &runArgs{Settings: config.Defaults()}
		r.Request.Atom = atom.Atom{Operator: "run", Operand: "a"}
		plan := supervise.Job{Command: "sleep"}
		r.recordJob(unrecorded{err: &fault.Error{Kind: kind, Object: "slot", Err: locker.ErrGuarded}}, &plan, new(acquisition))
		said := helper.Stderr(t, func() {
			for range 3 {
				if err := plan.Record(nil); !errors.Is(err, supervise.ErrBeingEnded) {
					t.Errorf("kind %v: %v; it is to be tried again", kind, err)
				}
			}
		})
		if said != want {
			t.Errorf("kind %v: said %q, want %q", kind, said, want)
		}
	}
	var plan supervise.Job
	(&runArgs{Settings: config.Defaults()}).recordJob(unrecorded{err: unix.ENOSPC}, &plan, new(acquisition))
	if err := plan.Record(nil); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("got %v", err)
	}
}
