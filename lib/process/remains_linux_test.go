package process

import (
	"errors"
	"os"
	"testing"

	"adlock/test/support/actor"
	"adlock/test/support/must"
)

// led returns the identity of a dead process, and the pid of a living member of the group that it led.
func led(t *testing.T) (Identity, int) {
	t.Helper()
	orphan := actor.File(t, "orphan")
	a := actor.Shell(t, actor.Leads, `sleep 100 & echo $! >"$1"; read x`, orphan)
	id := must.Get(Of(a.PID()))(t)
	pid := actor.PIDIn(t, orphan)
	a.Process.Kill()
	a.Process.Wait()
	return id, pid
}

func TestAJobRemainsUnlessItsOwnersIdentityProvesItGone(t *testing.T) {
	saved := here
	actor.Set(t, &here, func() (Identity, error) { // not every machine has an id
		where, err := saved()
		where.Machine = "this"
		return where, err
	})
	id, pid := led(t)
	for claim, c := range map[string]struct {
		change         func(*Identity)
		remains, alive bool
	}{
		"here":                       {func(*Identity) {}, true, true},
		"in another pid namespace":   {func(id *Identity) { id.PIDNS++ }, true, false},
		"on an unknown boot":         {func(id *Identity) { id.Boot = "" }, true, false},
		"on an earlier boot":         {func(id *Identity) { id.Boot = "earlier" }, false, false},
		"without a group of its own": {func(id *Identity) { id.PGID++ }, false, false},
		"before its members started": {func(id *Identity) { id.Start -= 100 }, true, true},
		"after its members started":  {func(id *Identity) { id.Start += 1 << 40 }, false, false},
		"in another time namespace":  {func(id *Identity) { id.Start += 1 << 40; id.TimeNS++ }, true, true},
	} {
		changed := id
		c.change(&changed)
		job := Job{Owner: changed}
		if job.Remains() != c.remains || job.Alive() != c.alive {
			t.Errorf("seen %s: remains %v, alive %v; want %v, %v", claim, job.Remains(), job.Alive(), c.remains, c.alive)
		}
	}
	if gone(pid) {
		t.Error("it was ended")
	}
}

func TestSurvivorsThatWereNotRecordedAreSearchedFor(t *testing.T) {
	file := actor.File(t, "child")
	alone, parent, ended := actor.Sleeper(t, actor.Leads), actor.Shell(t, actor.Leads, `sleep 100 & echo $! >"$1"; wait`, file), actor.Sleeper(t, actor.Leads)
	orphaned, orphan := led(t)
	dead := idOf(ended)
	ended.Kill()
	bandless := dead
	bandless.PGID, bandless.SID = 1, 1
	for claim, c := range map[string]struct {
		owner Identity
		pid   int
		err   error
	}{
		"an owner that has no child":     {idOf(alone), 0, nil},
		"an owner that has a child":      {idOf(parent), actor.PIDIn(t, file), errSurvivor},
		"a dead owner with a group":      {orphaned, orphan, errSurvivor},
		"a dead owner without a group":   {dead, 0, nil},
		"a dead owner that led no group": {bandless, bandless.PID, ErrUncounted},
	} {
		var stuck *StuckError
		if err := (Job{Owner: c.owner, Uncounted: true}).Survived(); !errors.Is(err, c.err) || errors.As(err, &stuck) && stuck.PID != c.pid {
			t.Errorf("%s: %v", claim, err)
		}
	}
	if !(Job{Owner: dead, Command: orphaned}).Remains() || (Job{Owner: dead, Command: dead}).Remains() {
		t.Error("a command's group remains if it has no member, or not if it has one")
	}
	job := Job{Owner: bandless, Survivors: []Identity{idOf(alone)}}
	if !job.Alive() || !job.EndingBegan() || !(Job{Uncounted: true}).EndingBegan() || (Job{Owner: bandless}).EndingBegan() {
		t.Error("an ending with a survivor has not begun, or one without has")
	}
	if alone.Kill(); job.Alive() {
		t.Error("the survivor is dead, and its job alive")
	}
}

func TestAJobWithALivingLeaderInAnotherTimeNamespaceRemains(t *testing.T) {
	a := actor.Sleeper(t, actor.Leads)
	id := idOf(a)
	id.Start, id.TimeNS, id.Inode = id.Start+1000, id.TimeNS+1, 0
	if !(Job{Owner: id}).Remains() {
		t.Error("starts that cannot be compared prove it dead")
	}
	if a.Kill(); id.Life() != Dead {
		t.Errorf("a pid without a process is %v", id.Life())
	}
}

func TestNoProcessTableIsReadForAGroupThatIsGone(t *testing.T) {
	a := actor.Sleeper(t, actor.Leads)
	id := idOf(a)
	a.Kill()
	n := scans(t)
	if (Job{Owner: id}).Remains() || *n != 0 {
		t.Errorf("the table was read %d times", *n)
	}
}

func init() {
	actor.Roles["supervises"] = func([]string) int {
		err := CallSupervisor()
		self, lookErr := look(os.Getpid())
		println(err == nil, lookErr == nil, self.Supervises())
		return 0
	}
}

func TestASupervisorIsRecognisedByItsProcessName(t *testing.T) {
	a := actor.Play(t, actor.Leads, "supervises")
	if got := a.Said(); got != "true true true\n" {
		t.Errorf("got %q", got)
	}
	if (Entry{Command: "sh"}).Supervises() {
		t.Error("a shell is one")
	}
}
