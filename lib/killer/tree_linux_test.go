package killer

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/process"
	"adlock/test/support/actor"
	"adlock/test/support/check"
	"adlock/test/support/must"
)

func tracked(t *testing.T, job process.Job) *tree {
	t.Helper()
	h := must.Get(track(job))(t)
	t.Cleanup(h.close)
	return h
}

func TestTheOwnerAndNotItsCommandLeadsTheJobsGroup(t *testing.T) {
	owner, command := actor.Sleeper(t, actor.Leads), actor.Sleeper(t, actor.Leads)
	id := idOf(owner)
	h := tracked(t, process.Job{Owner: id, Command: idOf(command), FileUID: -1})
	check.Equal(t, "the leader", h.membership.Leader, entryOf(owner).Key())
	if !h.membership.Roots[entryOf(owner).Key()] || !h.membership.Roots[entryOf(command).Key()] {
		t.Errorf("%+v", h.membership)
	}
	if h.inodes[entryOf(owner).Key()] != id.Inode || len(h.users) != 1 || !h.users[os.Geteuid()] || h.owner != entryOf(owner).Key() || h.orphans {
		t.Errorf("inodes %v, users %v, owner %+v, orphans %v", h.inodes, h.users, h.owner, h.orphans)
	}
	member := actor.Sleeper(t, syscall.SysProcAttr{Setpgid: true, Pgid: owner.PID()})
	check.Equal(t, "led by one that leads nothing", tracked(t, process.Job{Owner: idOf(member), FileUID: -1}).membership.Leader, process.Key{})
}

// Another process gets the owner's pid while root reads the owner. That process, and what it
// starts, does not belong to the job.
func TestAProcessThatReusesTheOwnersPidIsNoMember(t *testing.T) {
	a := actor.Sleeper(t, syscall.SysProcAttr{})
	job := process.Job{Owner: idOf(a), FileUID: -1}
	actor.Set(t, &find, func(pid int) (process.Entry, error) {
		e, err := process.Find(pid)
		must.Do(t, a.Process.Kill())
		a.Await()
		e.Start++
		return e, err
	})
	if h := tracked(t, job); !h.membership.Empty() || h.owner != (process.Key{}) {
		t.Errorf("%+v", h.membership)
	}
}

func TestAJobWithAnUncheckedOwnerOrSurvivorIsStuck(t *testing.T) {
	a, survivor := actor.Sleeper(t, actor.Leads), actor.Sleeper(t, actor.Leads)
	elsewhere := idOf(survivor)
	elsewhere.PIDNS++
	mustStick(t, Killer{}.End(process.Job{Owner: idOf(a), Survivors: []process.Identity{elsewhere}, FileUID: -1}), process.ErrUnchecked)
	mustStick(t, Killer{}.End(process.Job{Owner: elsewhere, FileUID: -1}), process.ErrUnchecked)
	if gone(a.PID()) || gone(survivor.PID()) {
		t.Error("a process was ended")
	}
}

func TestAThreadIsRefusedAsOwner(t *testing.T) {
	ready := actor.File(t, "ready")
	a := actor.Play(t, actor.Apart, "leaderless", ready)
	actor.Eventually(t, "it has threads", func() bool { return actor.Exists(ready) })
	tasks := must.Get(os.ReadDir(fmt.Sprintf("/proc/%d/task", a.PID())))(t)
	id := idOf(a)
	for _, task := range tasks {
		tid := actor.Atoi(t, task.Name())
		if tid == a.PID() {
			continue
		}
		var thread *process.ThreadError
		if _, err := process.Of(tid); !errors.As(err, &thread) || thread.Process != a.PID() {
			t.Errorf("of a thread: %v", err)
		}
		id.PID, id.Inode = tid, 0
		if e, err := process.Find(tid); err == nil {
			id.Start = e.Start
		}
		if err := (Killer{}).End(process.Job{Owner: id, FileUID: -1}); !errors.As(err, &thread) || thread.Process != a.PID() {
			t.Errorf("ended: %v", err)
		}
	}
}

func TestEachScanNotesNewMembersAndItsDuration(t *testing.T) {
	a := actor.Sleeper(t, actor.Leads)
	h := tracked(t, process.Job{Owner: idOf(a), FileUID: -1})
	for i, want := range []int{1, 0, 0} {
		begun := time.Now()
		if done, err := h.scan(); done || err != nil || h.growing != want {
			t.Errorf("scan %d: done %v, %v; %d in a row found more, want %d", i, done, err, h.growing, want)
		}
		if h.took <= 0 || h.took > time.Since(begun) {
			t.Errorf("scan %d took %v of %v", i, h.took, time.Since(begun))
		}
	}
	if !h.whole || h.latest.Key() != entryOf(a).Key() {
		t.Errorf("whole %v, the last is %+v", h.whole, h.latest)
	}
	h.membership = process.Membership{Roots: h.membership.Roots, Leader: h.membership.Leader}
	if _, err := h.scan(); err != nil || h.whole {
		t.Errorf("a group of strangers is whole: %v", err)
	}
}

func TestTheProcessTableHasEachLivingRootExactlyOnce(t *testing.T) {
	a := actor.Sleeper(t, actor.Leads)
	known := entryOf(a).Key()
	stranger := known
	stranger.Start++
	gone := actor.Sleeper(t, actor.Leads)
	was := entryOf(gone).Key()
	gone.Kill()
	h := newTree(-1)
	for _, k := range []process.Key{known, stranger, was} {
		h.membership.Roots[k] = true
	}
	self := must.Get(process.Find(os.Getpid()))(t)
	h.membership.Roots[self.Key()] = true
	for _, table := range [][]process.Entry{{entryOf(a), self}, {self}, {entryOf(a)}, nil} {
		actor.Set(t, &readTable, func(func(*process.Entry) bool) ([]process.Entry, error) { return slices.Clone(table), nil })
		for range 10 { // the roots are looked up in any order
			found := map[process.Key]bool{}
			list := must.Get(h.table())(t)
			for _, e := range list {
				found[e.Key()] = true
			}
			if len(list) != 2 || !found[self.Key()] || !found[known] {
				t.Fatalf("%+v", list)
			}
		}
	}
}

func TestTheKeepersGraceBeginsOnceItIsAlone(t *testing.T) {
	h := newTree(-1)
	if h.alone() || h.graced() {
		t.Error("a keeper that is not alone has its grace, or had it")
	}
	h.noteLonely(true)
	since := h.lonely
	if since.IsZero() || h.alone() || !h.graced() {
		t.Error("it has no grace")
	}
	if h.noteLonely(true); h.lonely != since {
		t.Error("its grace begins again")
	}
	m := &member{}
	h.members[h.keeper] = m
	due := h.keeperIsDue()
	h.lonely = since.Add(-keeperGrace)
	if !h.alone() || h.graced() || due || !h.keeperIsDue() {
		t.Error("its grace has no end")
	}
	if m.stage = len(stages); h.keeperIsDue() {
		t.Error("it is killed twice")
	}
	if m.stage, m.err = 0, unix.EPERM; h.keeperIsDue() {
		t.Error("it may not be killed")
	}
	if h.noteLonely(false); !h.lonely.IsZero() {
		t.Error("it is alone with others")
	}
}

func TestAMemberIsAddedOnceAndItsEntryRefreshed(t *testing.T) {
	a := actor.Sleeper(t, actor.Leads)
	h := newTree(-1)
	defer h.close()
	e := entryOf(a)
	if h.lives(e.Key()) || !h.adopt(e) || !h.lives(e.Key()) {
		t.Error("it did not become a member")
	}
	e.Parent, e.Command = 1, "renamed"
	if h.adopt(e) || len(h.order) != 1 || h.order[0].entry != e {
		t.Errorf("%d members, %+v", len(h.order), h.order[0].entry)
	}
	a.Kill()
	if len(h.living()) != 0 || len(h.order) != 0 || h.lives(e.Key()) {
		t.Errorf("%d members of one that is dead", len(h.order))
	}
}

func TestAHiddenMemberIsRecordedWithoutItsStartTime(t *testing.T) {
	a := actor.Sleeper(t, syscall.SysProcAttr{Setsid: true})
	h := hunted(t, a)
	want := idOf(a)
	want.UID, want.Image = 0, 0
	check.Equal(t, "the member", h.order[0].identity(), want)
	h.order[0].entry.Hidden = true
	want.Start = 0 // the start time of a hidden process is made up, and means nothing to other processes
	check.Equal(t, "if it is hidden", h.order[0].identity(), want)
}

func TestAWaitEndsWhenAllMembersAreDeadOrItsTimeIsUp(t *testing.T) {
	a, b := actor.Sleeper(t, actor.Leads), actor.Sleeper(t, actor.Leads)
	h := hunted(t, a, b)
	b.Kill()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, after unix.Rusage
	begun := time.Now()
	unix.Getrusage(unix.RUSAGE_THREAD, &before)
	h.await(actor.Brief)
	unix.Getrusage(unix.RUSAGE_THREAD, &after)
	if took := time.Since(begun); took < actor.Brief {
		t.Errorf("waited %v for one that lives", took)
	}
	if woken := after.Nvcsw - before.Nvcsw; woken > 10 {
		t.Errorf("woken %d times", woken)
	}
	unix.Kill(a.PID(), unix.SIGKILL)
	if h.await(2 * actor.Patient); time.Since(begun) > actor.Patient || len(h.living()) > 0 {
		t.Errorf("waited %v", time.Since(begun))
	}
	h.await(2 * actor.Patient)
	if took := time.Since(begun); took > actor.Patient {
		t.Errorf("waited %v, and no process was left", took)
	}
}

func TestAStuckErrorNamesTheProcessThatIsLeft(t *testing.T) {
	a, b := actor.Sleeper(t, actor.Leads), actor.Sleeper(t, actor.Leads)
	h := hunted(t, a, b)
	h.latest = process.Entry{PID: 4711, Command: "latest"}
	names := func(claim string, pid int, why error) {
		t.Helper()
		var stuck *process.StuckError
		if err := h.stuck(); !errors.As(err, &stuck) || !errors.Is(err, why) || stuck.PID != pid {
			t.Errorf("%s: got %v, want %d, %v", claim, err, pid, why)
		}
	}
	names("the first that lives", a.PID(), ErrAlive)
	h.keeper = entryOf(a).Key()
	names("one beside its supervisor", b.PID(), ErrAlive)
	h.keeper = entryOf(b).Key()
	names("one before its supervisor", a.PID(), ErrAlive)
	h.order[1].err = unix.EPERM
	names("one that may not be signalled", b.PID(), unix.EPERM)
	if h.close(); len(h.order) != 0 {
		t.Error("a released process is still held")
	}
	names("the last that was seen", 4711, ErrAlive)
	h.unseen = 4712
	names("the group of a hidden member", -4712, process.ErrUnchecked)
}

func TestAnEndingSparesItsOwnProcessAndProcess1(t *testing.T) {
	h := must.Get(trackOwn(false))(t)
	self := must.Get(process.Of(os.Getpid()))(t)
	own := self.Key()
	if !h.spared[os.Getpid()] || !h.spared[1] || h.keeper != own || !h.membership.Roots[own] {
		t.Errorf("%+v", h)
	}
	if h := newTree(-1); h.spare() != nil || h.spared != nil {
		t.Error("ancestors are looked for where no process is ended")
	}
}

func TestALackOfDescriptorsIsReportedAndNoProcessEnded(t *testing.T) {
	a := actor.Sleeper(t, actor.Leads)
	id := idOf(a)
	h := tracked(t, process.Job{Owner: id, FileUID: -1})
	enough := actor.FewFiles(t, 0)
	_, listed := list(h, nil)
	_, scanned := h.scan()
	_, own := Descendants(false)
	ended := Killer{}.EndDescendants(false)
	_, rooted := newTree(-1).root(id)
	enough()
	for claim, err := range map[string]error{"list": listed, "scan": scanned, "descendants": own, "their end": ended, "root": rooted} {
		if !errors.Is(err, unix.EMFILE) {
			t.Errorf("%s: %v", claim, err)
		}
	}
	check.Equal(t, "it was ended", gone(a.PID()), false)
}

func TestDescendantsOmitsTheCallingProcess(t *testing.T) {
	a := actor.Sleeper(t, actor.Leads)
	list := must.Get(Descendants(false))(t)
	if !slices.ContainsFunc(list, func(m process.Entry) bool {
		return m.PID == a.PID() && m.Parent == os.Getpid() && m.PGID == a.PID() && m.Command == "sleep"
	}) {
		t.Errorf("%+v", list)
	}
	if slices.ContainsFunc(list, func(m process.Entry) bool { return m.PID == os.Getpid() }) {
		t.Error("one's own descendant")
	}
}

func TestAnOwnerAndADeadOwnersGroupMustRunAsKnownUsers(t *testing.T) {
	a := actor.Sleeper(t, actor.Leads)
	k, uid := entryOf(a).Key(), os.Geteuid()
	for claim, c := range map[string]struct {
		fileUID               int
		owner, orphan, byBand bool
		users                 map[int]bool
		want                  error
	}{
		"the owner, where there is no file":        {-1, true, false, false, nil, nil},
		"the owner, as the file's user":            {uid, true, false, false, nil, nil},
		"the owner, as another user":               {uid + 1, true, false, false, nil, errForeignOwner},
		"the owner, as the command's user":         {uid + 1, true, false, false, map[int]bool{uid: true}, errForeignOwner},
		"a process that the owner started":         {uid + 1, false, false, false, nil, nil},
		"a process in a living owner's group":      {uid + 1, false, false, true, nil, nil},
		"a recorded process of a dead owner":       {uid + 1, false, true, false, nil, nil},
		"a dead owner's group, another user":       {uid + 1, false, true, true, nil, errForeignOwner},
		"a dead owner's group, the file's user":    {uid, false, true, true, nil, nil},
		"a dead owner's group, the command's user": {uid + 1, false, true, true, map[int]bool{uid: true}, nil},
		"a dead owner's group, no file":            {-1, false, true, true, nil, nil},
		"a dead owner's group, no recorded user":   {uid + 1, false, true, true, map[int]bool{uid + 2: true}, errForeignOwner},
	} {
		h := hunted(t, a)
		m := h.order[0]
		h.fileUID, h.orphans, h.users, m.entry.ByBand = c.fileUID, c.orphan, c.users, c.byBand
		if c.owner {
			h.owner = k
		}
		check.Equal(t, claim, h.foreign(m), c.want)
		check.Equal(t, claim+": the objection", h.objection(m), c.want)
	}
	h := hunted(t, a)
	h.owner, h.fileUID = k, uid
	enough := actor.FewFiles(t, 0)
	err := h.foreign(h.order[0])
	enough()
	check.Equal(t, "its user cannot be read", err, error(unix.EMFILE))
}

func TestAGroupIsForgottenOnceItHidesNoMember(t *testing.T) {
	h := newTree(-1)
	h.unseen = 4711
	if done, _ := h.scan(); !done || h.unseen != 0 {
		t.Errorf("done %v, and group %d is taken to hide a member", done, h.unseen)
	}
}

func TestListAndScanRefuseAJobWithAnAncestor(t *testing.T) {
	h := tracked(t, process.Job{Owner: idOf(actor.Sleeper(t, actor.Leads)), FileUID: -1})
	h.spared = map[int]bool{h.owner.PID: true} // as this newcomer's ancestor
	_, listed := list(h, nil)
	if _, err := h.scan(); err != ErrAncestor || listed != ErrAncestor {
		t.Errorf("scan %v, list %v", err, listed)
	}
}
