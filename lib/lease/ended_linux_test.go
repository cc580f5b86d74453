package lease

import (
	"context"
	"os/exec"
	"slices"
	"testing"
	"time"

	"adlock/lib/atom"
	"adlock/lib/locker"
	"adlock/lib/policy"
	"adlock/lib/process"
	"adlock/lib/record"
	"adlock/lib/runlog"
)

// askedPlace is a place behind an owner that can be asked to end its job.
type askedPlace struct {
	scriptedPlace
	looks []Snapshot // what its looks find, in turn
}

func (p *askedPlace) Ask(context.Context, string, time.Duration) (bool, error) { return true, nil }
func (p *askedPlace) Pass(context.Context, string, *Last) error                { return nil }

func (p *askedPlace) Look(context.Context) (seen Snapshot, err error) {
	seen, p.looks = p.looks[0], p.looks[1:]
	return seen, nil
}

// A look may find the lock of an owner that releases it and exits before the newcomer asks whether it
// lives.
func TestAnOwnerThatReleasedBeforeItDiedWasEnded(t *testing.T) {
	c := exec.Command("sleep", "600")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Process.Kill(); _ = c.Wait() }()
	id, err := process.Of(c.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	node, err := NodeName()
	if err != nil {
		t.Fatal(err)
	}
	held := Snapshot{Now: time.Now(), Held: true, Age: 2 * time.Hour, Owner: Record{Node: node, Taken: time.Now().Add(-2 * time.Hour)}}
	held.Owner.Atom, held.Owner.Owner, held.Owner.Token = odd, id, record.NewToken()
	released := Snapshot{Now: time.Now(), Last: Last{Token: held.Owner.Token, Node: node}}
	released.Last.Completed = time.Now()
	p := &askedPlace{looks: []Snapshot{held, released}}
	p.lease = time.Minute
	p.await = func() { _ = c.Process.Kill(); _ = c.Wait() }
	log := &runlog.Log{Dir: t.TempDir(), Host: "h"}
	l := &Locker{Lease: time.Minute, Recorder: locker.Recorder{Log: log}, Store: &scripted{
		look:  func(atom.Name) Snapshot { return held },
		enter: func(atom.Name) (Place, Snapshot) { return p, held },
	}}
	r := locker.NewRequest()
	r.Atom, r.Owner = odd, process.Here()
	r.Limits = policy.Limits{IfElapsed: 2 * time.Hour, ExpireAfter: time.Hour, Source: policy.Said}
	if o, err := l.Take(r); err != nil || o.Verdict != locker.Acquired {
		t.Errorf("%+v, %v: its stamp denies the newcomer that had it ended", o, err)
	}
	var kinds []runlog.Kind
	for e := range log.Newest(1 << 20) {
		kinds = append(kinds, e.Kind)
	}
	if slices.Reverse(kinds); !slices.Equal(kinds, []runlog.Kind{runlog.Expire, runlog.Takeover, runlog.Acquire}) {
		t.Errorf("the runlog has %v", kinds)
	}
	if err := l.Release(locker.ReleaseRequest{}); err != nil {
		t.Error(err)
	}
}
