package process

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adlock/test/support/actor"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

// remains tells whether a process of the job that id led may live.
func remains(id Identity) bool { return Job{Owner: id}.Remains() }

func TestAZombieOwnerIsDead(t *testing.T) {
	a := actor.Shell(t, actor.Leads, "read x") // ends at once: standard input is empty
	id := must.Get(Of(a.PID()))(t)
	actor.Eventually(t, "zombie", func() bool { return actor.State(a.PID()) == "Z" })
	if id.Life() != Dead || PIDLives(a.PID()) || remains(id) {
		t.Errorf("life %v, pid lives %v, group lives %v", id.Life(), PIDLives(a.PID()), remains(id))
	}
}

func TestAnIdentityFromElsewhereIsNeverTakenForAlive(t *testing.T) {
	self := must.Get(Of(os.Getpid()))(t)
	if self.Machine == "" {
		t.Log("no machine id here")
	}
	for _, c := range []struct {
		name   string
		change func(*Identity)
		want   Life
	}{
		{"another boot of this machine", func(id *Identity) { id.Boot = "earlier"; id.Machine = Here().Machine }, Dead},
		{"another boot, machine unknown", func(id *Identity) { id.Boot = "earlier"; id.Machine = "" }, Unknown},
		{"another boot of another machine", func(id *Identity) { id.Boot = "earlier"; id.Machine = "other" }, Unknown},
		{"this boot, machine unknown", func(id *Identity) { id.Machine = "" }, Alive},
		{"boot unknown", func(id *Identity) { id.Boot = "" }, Unknown},
		{"another pid namespace", func(id *Identity) { id.PIDNS++ }, Unknown},
		{"pid namespace unknown", func(id *Identity) { id.PIDNS = 0 }, Unknown},
		{"another time namespace", func(id *Identity) { id.TimeNS++; id.Start += 100; id.Inode = 0 }, Unknown},
		{"another start", func(id *Identity) { id.Start--; id.Inode = 0 }, Dead},
		{"no start time", func(id *Identity) { id.Start, id.Inode = 0, 0 }, Unknown},
		{"pid 0", func(id *Identity) { id.PID = 0 }, Unknown},
		{"negative pid", func(id *Identity) { id.PID = -1 }, Unknown},
	} {
		id := self
		c.change(&id)
		if c.want == Dead && id.Machine == "" && id.Boot != self.Boot {
			continue
		}
		if got := id.Life(); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestALeaderThatIsBeingReapedLeavesNoGroup(t *testing.T) {
	for range 100 {
		a := actor.Sleeper(t, actor.Leads)
		id := idOf(a)
		a.Process.Kill()
		go a.Await()
		actor.Eventually(t, "the leader is dead", func() bool { return id.Life() == Dead })
		for range 3 {
			if remains(id) {
				t.Fatal("its group lives without it")
			}
		}
	}
}

func TestAGroupOrSessionHasNoMembersOlderThanItsLeader(t *testing.T) {
	group, session := Identity{PID: 10, PGID: 10, SID: 7, Start: 5}, Identity{PID: 10, PGID: 10, SID: 10, Start: 5}
	old, beyond := group, group // of a session that was not recorded, or is beyond the pid namespace
	old.SID, beyond.SID = Unrecorded, 0
	for _, c := range []struct {
		name string
		id   Identity
		band int
		list []Entry
		want bool
	}{
		{"a member", group, 0, []Entry{{PID: 11, PGID: 10, SID: 7, Start: 5}}, true},
		{"a member whose session is not known", group, 0, []Entry{{PID: 11, PGID: 10, Start: 5}}, true},
		{"an older member", group, 0, []Entry{{PID: 11, PGID: 10, SID: 7, Start: 4}}, false},
		{"a zombie", group, 0, []Entry{{PID: 11, PGID: 10, SID: 7, Start: 6, Exited: true}}, false},
		{"the leader's zombie and a member", group, 0,
			[]Entry{{PID: 10, PGID: 10, Start: 5, Exited: true}, {PID: 12, PGID: 10, Start: 6}}, true},
		{"the pid is another's", group, 0, []Entry{{PID: 10, PGID: 10, Start: 9}, {PID: 12, PGID: 10, Start: 9}}, false},
		{"a daemon whose first process had the pid later", group, 0, []Entry{{PID: 12, PGID: 10, SID: 10, Start: 9}}, false},
		{"a member where no session was recorded", old, 0, []Entry{{PID: 12, PGID: 10, SID: 10, Start: 9}}, true},
		{"a session within, where the leader's is beyond", beyond, 0, []Entry{{PID: 12, PGID: 10, SID: 10, Start: 9}}, false},
		{"of a session, in a group of its own", session, 1, []Entry{{PID: 11, PGID: 11, SID: 10, Start: 5}}, true},
		{"of a session, an older one", session, 1, []Entry{{PID: 11, PGID: 11, SID: 10, Start: 4}}, false},
		{"a daemon with its own session", session, 1, []Entry{{PID: 11, PGID: 11, SID: 11, Start: 6}}, false},
		{"of a session, a zombie", session, 1, []Entry{{PID: 11, PGID: 11, SID: 10, Start: 6, Exited: true}}, false},
	} {
		if got := c.id.bands(false)[c.band].lives(c.list); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestAStatLineIsReadWholeOrRefused(t *testing.T) {
	tail := " 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 %T 18 99 20\n"
	line := func(pid, command, state, threads string) []byte {
		return []byte(pid + " (" + command + ") " + state + strings.Replace(tail, "%T", threads, 1))
	}
	for _, command := range []string{"sh", "a) Z 1 (b", "", "two words", ")))", "a\nb"} {
		e, err := parseStat(line("42", command, "S", "3"))
		if err != nil || e.PID != 42 || e.Parent != 1 || e.PGID != 2 || e.SID != 3 || e.Start != 99 || e.Command != command || e.Exited || e.Stopped {
			t.Errorf("%q: %+v %v", command, e, err)
		}
	}
	// The kernel shows such a line while a process is being reaped. A 32-bit program reads these flags and this start too.
	if e, err := parseStat([]byte("1 (x) X 0 -1 -1 0 -1 2147483652 0 0 0 0 0 0 0 0 20 0 0 0 2147483648 0")); err != nil || !e.Exited || !e.Exiting || e.Start != 1<<31 {
		t.Errorf("%+v %v", e, err)
	}
	nineteen := "1 (x) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18"
	for more := range 40 { // the image needs 48 fields behind the name
		if e, err := parseStat([]byte(nineteen + " 99" + strings.Repeat(" 7", more))); err != nil || e.Start != 99 || (e.image != 0) != (more >= 28) {
			t.Errorf("%d fields more: %+v %v", more, e, err)
		}
	}
	if statOf(os.Getpid()) == "stat" {
		t.Error("this process is read as others are, though qemu makes that up")
	}
	for state, want := range map[string][3]bool{ // dead with 1 thread, dead with 2 threads, stopped
		"Z": {true, false, false}, "X": {true, true, false}, "T": {false, false, true}, "t": {}, "R": {},
	} {
		one, _ := parseStat(line("1", "x", state, "1"))
		two, _ := parseStat(line("1", "x", state, "2"))
		if got := [3]bool{one.Exited, two.Exited, one.Stopped}; got != want || one.Traced != (state == "t") {
			t.Errorf("state %s: %v, want %v", state, got, want)
		}
	}
	for _, bad := range []string{"", "1", "1 (x", "1 (x) S 1 2", "1 (x)", ") 1 (", "x (y) S" + tail, "1 S" + tail, "1 (x S" + tail, nineteen} {
		if _, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("%q was taken for a stat line", bad)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("1 (a) b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20"))
	f.Fuzz(func(t *testing.T, text []byte) { parseStat(text) })
}

func init() {
	actor.Roles["misplaced"] = func([]string) int {
		_, err := Of(os.Getpid())
		one := Identity{PID: 1, Start: 1}
		println(err.Error(), one.Life() == Unknown)
		job := Job{Owner: one, FileUID: -1}
		println(job.Remains(), job.Alive(), err.Error() == Readable().Error(), Here() == Identity{})
		return 0
	}
}

func TestProcOfAnotherPidNamespaceIsRefused(t *testing.T) {
	need.Root(t)
	// /proc is not mounted again in the new pid namespace: its pids mean other processes there.
	a := actor.Play(t, syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID}, "misplaced")
	if got := a.Said(); !strings.Contains(got, "another pid namespace true\ntrue false true true\n") {
		t.Errorf("got %q", got)
	}
}

func TestStillIsTrueOnlyForAStoppedOrTracedProcess(t *testing.T) {
	begun := time.Now()
	a := actor.Sleeper(t, actor.Leads)
	if still, age := Still(a.PID()); still || age < -2*clockTick || age > time.Since(begun)+2*clockTick {
		t.Errorf("still %v, %v old", still, age)
	}
	unix.Kill(a.PID(), unix.SIGSTOP)
	actor.Eventually(t, "it stands still", func() bool { still, _ := Still(a.PID()); return still })
	a.Kill()
	if still, age := Still(a.PID()); still || age != 0 {
		t.Errorf("the dead stand still: %v, since %v", still, age)
	}
	b := actor.Sleeper(t, actor.Leads)
	actor.Undying(t, b)
	unix.Kill(b.PID(), unix.SIGKILL)
	actor.Eventually(t, "its tracer holds it", func() bool { still, _ := Still(b.PID()); return still })
}
