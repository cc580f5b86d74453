package process

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"adlock/test/support/actor"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

// seenAs makes this process read that boot and machine id as the system's.
func seenAs(t *testing.T, boot, machine string) {
	t.Helper()
	where := must.Get(here())(t)
	where.Boot, where.Machine = boot, machine
	actor.Set(t, &here, func() (Identity, error) { return where, nil })
}

// recorded is an identity as read back from a file.
func recorded(id Identity) Identity {
	id.Boot = id.BootID()
	return id
}

func TestNoRecordedProcessIsAliveWithoutABootID(t *testing.T) {
	for claim, c := range map[string]struct {
		boot, machine  string
		change         func(*Identity)
		running, ended Life
	}{
		"read by this process":          {thisBoot, "", func(*Identity) {}, Alive, Dead},
		"from a file":                   {thisBoot, "m", func(id *Identity) { *id = recorded(*id) }, Unknown, Dead},
		"from another machine":          {thisBoot, "m", func(id *Identity) { *id = recorded(*id); id.Machine = "n" }, Unknown, Unknown},
		"from a nameless machine":       {thisBoot, "", func(id *Identity) { *id = recorded(*id) }, Unknown, Unknown},
		"from another pid namespace":    {thisBoot, "m", func(id *Identity) { *id = recorded(*id); id.PIDNS++ }, Unknown, Unknown},
		"only the record has a boot id": {thisBoot, "m", func(id *Identity) { id.Boot = "b" }, Unknown, Dead},
		"only this process has one":     {"b", "m", func(id *Identity) { id.Boot = "" }, Unknown, Dead},
		"both have one":                 {"b", "", func(*Identity) {}, Alive, Dead},
	} {
		t.Run(claim, func(t *testing.T) {
			seenAs(t, c.boot, c.machine)
			a := actor.Sleeper(t, actor.Leads)
			id := idOf(a)
			c.change(&id)
			if got := id.Life(); got != c.running {
				t.Errorf("while it lives: %v, want %v", got, c.running)
			}
			a.Kill()
			if got := id.Life(); got != c.ended {
				t.Errorf("when it is dead: %v, want %v", got, c.ended)
			}
			remains := c.ended != Dead
			if job := (Job{Owner: id}); job.Remains() != remains || job.Alive() {
				t.Errorf("remains %v, want %v; alive %v", job.Remains(), remains, job.Alive())
			}
		})
	}
}

func TestAGroupCannotBeCheckedWithoutABootID(t *testing.T) {
	seenAs(t, thisBoot, "m")
	id, pid := led(t)
	id = recorded(id)
	var k Membership
	var stuck *StuckError
	if err := k.AddBands(Job{Owner: id}); !errors.As(err, &stuck) || !k.Empty() {
		t.Errorf("%v, %+v", err, k)
	}
	unix.Kill(pid, unix.SIGKILL)
	actor.Eventually(t, "the group is gone", func() bool { return k.AddBands(Job{Owner: id}) == nil && k.Empty() })
}

func TestADeadCommandIsKnownDeadIfItsLockIsOfThisBoot(t *testing.T) {
	seenAs(t, thisBoot, "")
	a := actor.Sleeper(t, actor.Leads)
	command := idOf(a)
	self := must.Get(Of(os.Getpid()))(t)
	job := Job{Owner: recorded(self), Command: recorded(command), Survivors: []Identity{recorded(command)}}
	a.Kill()
	if job.Survived() == nil {
		t.Error("of a lock of no known boot a dead command is known")
	}
	must.Do(t, job.OfThisBoot().Survived())
	if job.Survivors[0].Boot != "" {
		t.Error("the job itself was changed")
	}
}

func TestKeptCachesAValueButNoError(t *testing.T) {
	calls := 0
	get := kept(func() (int, error) {
		if calls++; calls == 1 {
			return 0, unix.EMFILE
		}
		return calls, nil
	})
	if _, err := get(); err != unix.EMFILE {
		t.Errorf("first %v", err)
	}
	for range 2 {
		if n, err := get(); n != 2 || err != nil {
			t.Errorf("then %d, %v", n, err)
		}
	}
}

func TestAnotherInodeProvesNoDeathWithoutADescriptor(t *testing.T) {
	a := actor.Sleeper(t, actor.Leads)
	id := idOf(a)
	if id.Inode == 0 {
		need.Skip(t, "this kernel has no pidfs")
	}
	id.Inode++
	enough := actor.FewFiles(t, 0)
	life := id.Life()
	enough()
	if _, err := Hold(id.Key(), id.Inode); err != unix.ESRCH {
		t.Errorf("another inode is held: %v", err)
	}
	if life != Unknown || id.Life() != Dead {
		t.Errorf("%v, and with a descriptor %v", life, id.Life())
	}
}
