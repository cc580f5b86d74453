package process

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"adlock/test/support/actor"
)

func TestAGroupIsWholeOnlyIfAllItsProcessesAreMembers(t *testing.T) {
	k := Membership{Leader: Key{10, 5}, bands: []band{{Key: Key{10, 5}}}}
	for claim, c := range map[string]struct {
		list []Entry
		want bool
	}{
		"no process":                  {nil, true},
		"a member":                    {[]Entry{{PID: 11, PGID: 10, Start: 6}}, true},
		"one that is older":           {[]Entry{{PID: 11, PGID: 10, Start: 6}, {PID: 12, PGID: 10, Start: 4}}, false},
		"a stranger in another group": {[]Entry{{PID: 11, PGID: 10, Start: 6}, {PID: 12, PGID: 12, Start: 4}}, true},
	} {
		if got := k.Whole(c.list); got != c.want {
			t.Errorf("%s: %v", claim, got)
		}
	}
	for pid, want := range map[int]bool{0: false, 1: false, 2: true} {
		if got := (Membership{Leader: Key{PID: pid}}).Whole(nil); got != want {
			t.Errorf("the group of %d is whole: %v", pid, got)
		}
	}
}

func TestAGroupWhoseMembersAreAllHiddenIsReported(t *testing.T) {
	a := actor.Sleeper(t, actor.Leads)
	led := band{Key: entryOf(a).Key()}
	empty := band{Key: Key{1 << 22, 1}} // no process has that pid
	if group, is := (Membership{bands: []band{empty, led}}).Unseen(nil); group != a.PID() || !is {
		t.Errorf("%d, %v", group, is)
	}
	if group, is := (Membership{bands: []band{empty, led}}).Unseen([]Entry{entryOf(a)}); group != 0 || is {
		t.Errorf("%d, %v", group, is)
	}
	if group, is := (Membership{bands: []band{{Key: led.Key, session: true}}}).Unseen(nil); group != 0 || is {
		t.Errorf("a session: %d, %v", group, is)
	}
}

func TestAGroupIsOverOnceItsMembersAndItsLeaderAreGone(t *testing.T) {
	a := actor.Sleeper(t, actor.Leads)
	e := entryOf(a)
	b := band{Key: e.Key()}
	if b.over([]Entry{e}) || b.over(nil) {
		t.Error("it is over while it lives")
	}
	a.Kill()
	if !b.over(nil) || !b.over([]Entry{{PID: a.PID() + 1}}) {
		t.Error("it is not over")
	}
	if b.over([]Entry{e}) {
		t.Error("it is over, although its process may make it anew")
	}
}

func TestAGroupHasEndedOnceItsNumberIsReusedAsAPid(t *testing.T) {
	for _, c := range []struct {
		claim string
		b     band
		e     Entry
		want  bool
	}{
		{"the same process", band{Key: Key{10, 5}}, Entry{PID: 10, Start: 5}, false},
		{"another", band{Key: Key{10, 5}}, Entry{PID: 10, Start: 6}, true},
		{"another pid", band{Key: Key{10, 5}}, Entry{PID: 11, Start: 6}, false},
		{"starts cannot be compared", band{Key: Key{10, 0}}, Entry{PID: 10, Start: 6}, false},
		{"no start is known of it", band{Key: Key{10, 5}}, Entry{PID: 10, Start: hiddenStart, Hidden: true}, false},
	} {
		if got := c.b.ended([]Entry{c.e}); got != c.want {
			t.Errorf("%s: %v", c.claim, got)
		}
	}
}

func TestTheSearchForAncestorsIsRepeatedIfOneExits(t *testing.T) {
	for failures, want := range map[int]int{0: 1, 1: 2, 3: 4, 9: 4} {
		calls := 0
		line, err := climbAgain(func() ([]int, error) {
			if calls++; calls <= failures {
				return []int{calls}, named(7, unix.ESRCH)
			}
			return []int{calls}, nil
		})
		if calls != want || (err != nil) != (failures >= want) || !slices.Equal(line, []int{calls}) {
			t.Errorf("%d failures: %d calls, %v, %v", failures, calls, line, err)
		}
	}
	calls := 0
	_, err := climbAgain(func() ([]int, error) { calls++; return nil, unix.EPERM })
	if err != unix.EPERM || calls != 1 {
		t.Errorf("%d calls, %v", calls, err)
	}
}

func TestTheListOfAncestorsEndsAtProcess1(t *testing.T) {
	above := map[int]int{9: 8, 8: 1, 6: 0, 4: 3}
	parent := func(pid int) (int, error) {
		if pid == 1 {
			t.Error("asked for the parent of 1")
		}
		if next, known := above[pid]; known {
			return next, nil
		}
		return 0, unix.ESRCH
	}
	for _, c := range []struct {
		first int
		want  []int
		err   error
	}{{9, []int{10, 9, 8, 1}, nil}, {1, []int{10, 1}, nil}, {6, []int{10, 6}, nil}, {0, []int{10}, nil}, {4, []int{10, 4, 3}, unix.ESRCH}} {
		line, err := climb(10, c.first, parent)
		if (err == nil) != (c.err == nil) || !slices.Equal(line, c.want) {
			t.Errorf("from %d: %v, %v", c.first, line, err)
		}
	}
}

func TestTheAncestorsAreReadUntilTwoReadsAgree(t *testing.T) {
	for want, looks := range map[int][][]int{2: {{3, 1}, {3, 1}, {3, 2}}, 3: {{3, 2}, {3, 1}, {3, 1}, {4}}, 5: {{3, 2}, {3, 1}, {3, 2}, {3, 1}, {3, 1}}} {
		n := 0
		line := steady(func() []int { n++; return looks[n-1] })
		if n != want || !slices.Equal(line, []int{3, 1}) {
			t.Errorf("%d looks, want %d: %v", n, want, line)
		}
	}
}

func TestAncestorIsTrueOnlyForThisProcessAndThoseAboveIt(t *testing.T) {
	a := actor.Sleeper(t, actor.Leads)
	for pid, want := range map[int]bool{os.Getpid(): true, os.Getppid(): true, 1: true, a.PID(): false} {
		id, is, err := Ancestor(pid)
		if is != want || IsAncestor(pid) != want || err != nil && pid != 0 || id.PID != pid {
			t.Errorf("%d: %+v, %v, %v", pid, id, is, err)
		}
	}
	a.Kill()
	if id, is, err := Ancestor(a.PID()); is || !errors.Is(err, unix.ESRCH) {
		t.Errorf("one that is gone: %+v, %v, %v", id, is, err)
	}
}

func TestAProcessThatChangesItsGroupIsStillTheSame(t *testing.T) {
	a := actor.Sleeper(t, syscall.SysProcAttr{})
	id, again := idOf(a), idOf(a)
	again.PGID, again.SID, again.UID = 1, 2, 3
	if !id.Same(again) || !again.Same(id) {
		t.Error("it is another")
	}
	again.Machine = "another" // a container's, or removed as it may be a clone's
	unbooted, elsewhere := id, again
	unbooted.Boot, elsewhere.Boot = "", thisBoot
	if !id.Same(again) || unbooted.Same(elsewhere) {
		t.Error("the machine id counts in one boot, or does not count without a boot id")
	}
	session := id
	session.PGID, session.UID = 1, 3
	for other, want := range map[Identity]bool{session: true, {SID: id.SID}: false, again: false} {
		if id.SharesSession(other) != want {
			t.Errorf("it shares its session with %+v: %v", other, !want)
		}
	}
	if id.SID = Unrecorded; id.SharesSession(id) {
		t.Error("what was not recorded is shared")
	}
	for claim, change := range map[string]func(*Identity){
		"pid": func(id *Identity) { id.PID++ }, "start": func(id *Identity) { id.Start++ }, "boot": func(id *Identity) { id.Boot = "" },
	} {
		other := id
		if change(&other); id.Same(other) {
			t.Errorf("another %s is the same", claim)
		}
	}
}

func TestStuckErrorsNameTheProcessOrGroup(t *testing.T) {
	for _, c := range []struct {
		err  StuckError
		want string
	}{
		{StuckError{7, "sh", "", errSurvivor}, "process 7 (sh): " + errSurvivor.Error()},
		{StuckError{7, "", "", errSurvivor}, "process 7: " + errSurvivor.Error()},
		{StuckError{7, "sh", "0", unix.EPERM}, "process 7 (sh) of user 0: operation not permitted"},
		{StuckError{0, "", "", ErrUncounted}, "process 0: " + ErrUncounted.Error()},
		{StuckError{-7, "", "", errSurvivor}, "process group 7: " + errSurvivor.Error()},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	if self, none := Refused(Entry{PID: os.Getpid()}, unix.EPERM), Refused(Entry{PID: 1 << 22}, unix.EPERM); self.User != strconv.Itoa(os.Geteuid()) || none.User != "" {
		t.Errorf("%v, %v", self, none)
	}
}

func TestMembersAreDescendantsOrInTheGroup(t *testing.T) {
	k := Membership{
		Roots:  map[Key]bool{{10, 50}: true},
		Leader: Key{10, 50},
		bands:  []band{{Key: Key{10, 50}}},
	}
	list := []Entry{
		{PID: 1, Start: 0},
		{PID: 10, Parent: 1, PGID: 10, Start: 50},
		{PID: 11, Parent: 10, PGID: 10, Start: 51},
		{PID: 12, Parent: 11, PGID: 12, Start: 52},               // a grandchild in its own group
		{PID: 13, Parent: 12, PGID: 13, Start: 51},               // older than its parent: pid 12 was another process then
		{PID: 14, Parent: 1, PGID: 10, Start: 60},                // an orphan in the group
		{PID: 15, Parent: 14, PGID: 15, Start: 60},               // and its child
		{PID: 16, Parent: 1, PGID: 10, Start: 49},                // in the group, but older than the owner
		{PID: 17, Parent: 10, PGID: 10, Start: 55, Exited: true}, // a zombie
		{PID: 90, Parent: 11, PGID: 10, Start: 60},               // a newcomer inside the job; Find does not know that it is one
		{PID: 20, Parent: 1, PGID: 20, Start: 70},                // a member once, reparented since
		{PID: 21, Parent: 20, PGID: 20, Start: 71},
		{PID: 30, Parent: 1, PGID: 30, Start: 70},
	}
	k.seen.doubts = []*Entry{&list[3], &list[len(list)-1]} // 12, which its parent shows, and 30
	var got, byBand []int
	for _, e := range k.Find(list, func(k Key) bool { return k == Key{20, 70} }) {
		got = append(got, e.PID)
		if e.ByBand {
			byBand = append(byBand, e.PID)
		}
	}
	if want := []int{10, 11, 12, 90, 14, 20, 15, 21}; !slices.Equal(got, want) || !slices.Equal(byBand, []int{14}) || !slices.Equal(k.Doubts(), []*Entry{&list[len(list)-1]}) {
		t.Errorf("got %v, want %v; by the group alone %v, in doubt %v", got, want, byBand, k.Doubts())
	}
	if k.Drop([]Entry{{PID: 10, Start: 99}}); len(k.bands) != 0 {
		t.Error("another start is not taken for another leader")
	}
}

func TestOnlyALeadersGroupIsAddedToTheJob(t *testing.T) {
	for pgid, want := range map[int][]band{10: {{Key: Key{10, 5}, within: 7}}, 9: nil} {
		var k Membership
		k.AddGroup(Identity{PID: 10, PGID: pgid, SID: 7, Start: 5})
		if !slices.Equal(k.bands, want) || (k.Leader == Key{10, 5}) != (want != nil) || k.Empty() != (want == nil) {
			t.Errorf("group %d: %+v", pgid, k)
		}
	}
	if k := (Membership{Roots: map[Key]bool{{10, 5}: true}}); k.Empty() {
		t.Error("a job of one process counts as empty")
	}
}

func TestAJobHasTheGroupsOfItsOwnerAndItsCommand(t *testing.T) {
	owner, command := actor.Sleeper(t, actor.Leads), actor.Sleeper(t, actor.Leads)
	id := idOf(owner)
	elsewhere, unknown, shifted := id, id, id
	elsewhere.PIDNS++
	unknown.Start = 0
	shifted.TimeNS++
	for claim, c := range map[string]struct {
		owner Identity
		bands int
		err   error
	}{
		"an owner and a command here":        {id, 3, nil},
		"an owner elsewhere":                 {elsewhere, 0, nil},
		"an owner without a start":           {unknown, 0, ErrUnchecked},
		"an owner in another time namespace": {shifted, 0, ErrUnchecked},
	} {
		var k Membership
		err := k.AddBands(Job{Owner: c.owner, Command: idOf(command)})
		if !errors.Is(err, c.err) || len(k.bands) != c.bands || (k.Leader == id.Key()) != (c.bands > 0) {
			t.Errorf("%s: %+v, %v", claim, k, err)
		}
	}
}
