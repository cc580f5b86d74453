package process

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adlock/test/need"
)

func TestIdentityOfSelf(t *testing.T) {
	id, err := Of(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if id.PID != os.Getpid() || id.PGID != unix.Getpgrp() || id.UID != os.Geteuid() || id.Start == 0 || id.Boot == "" || id.PIDNS == 0 {
		t.Errorf("%+v", id)
	}
	if got := id.Life(); got != Alive {
		t.Errorf("this process is %v", got)
	}
}

func TestNoSuchProcessIsESRCH(t *testing.T) {
	a := shell(t, leads, "exit 0")
	a.wait()
	if _, err := Of(a.pid()); !errors.Is(err, unix.ESRCH) {
		t.Errorf("got %v", err)
	}
	if PIDLives(a.pid()) {
		t.Error("a reaped pid lives")
	}
}

// remains tells whether something of the job lives that id led.
func remains(id Identity) bool { return Job{Owner: id}.Remains() }

func TestZombieOwnerIsDead(t *testing.T) {
	a := shell(t, leads, "read x") // ends at once: standard input is empty
	id, err := Of(a.pid())
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "zombie", func() bool { return state(a.pid()) == "Z" })
	if id.Life() != Dead || PIDLives(a.pid()) || remains(id) {
		t.Errorf("life %v, pid lives %v, group lives %v", id.Life(), PIDLives(a.pid()), remains(id))
	}
	var r recorder
	mustEnd(t, r.killer(time.Second), Job{Owner: id, FileUID: os.Getuid()})
	if len(r.sent) != 0 {
		t.Errorf("signalled a zombie: %v", r.sent)
	}
}

func init() {
	roles["leaderless"] = func(args []string) int {
		go func() {
			os.WriteFile(args[0], nil, 0o600)
			time.Sleep(patient)
			os.Exit(0)
		}()
		unix.Syscall(unix.SYS_EXIT, 0, 0, 0) // this thread only
		return 1
	}
}

func TestOwnerWhoseLeaderThreadExitedIsAlive(t *testing.T) {
	ready := file(t, "ready")
	a := play(t, leads, "leaderless", ready)
	id := a.id()
	eventually(t, "leader thread gone, others run", func() bool { return exists(ready) && state(a.pid()) == "Z" })
	if id.Life() != Alive || !PIDLives(a.pid()) || !remains(id) {
		t.Errorf("life %v, pid lives %v, group lives %v", id.Life(), PIDLives(a.pid()), remains(id))
	}
	mustEnd(t, Killer{Pause: 100 * time.Millisecond}, Job{Owner: id, FileUID: os.Getuid()})
	if id.Life() != Dead {
		t.Error("not dead after End")
	}
}

func TestAnotherStartTimeIsDead(t *testing.T) {
	a := sleeper(t, leads)
	id := a.id()
	id.Start--
	id.Inode = 0
	if id.Life() != Dead {
		t.Errorf("life %v", id.Life())
	}
	if remains(id) {
		t.Error("the group of the pid's next holder passes for the old one's")
	}
	mustEnd(t, Killer{}, Job{Owner: id, FileUID: -1})
	if gone(a.pid()) {
		t.Error("a stranger was ended")
	}
}

func TestRecycledPidIsDead(t *testing.T) {
	need.Root(t)
	a := sleeper(t, leads)
	id := a.id()
	a.Process.Kill()
	a.wait()
	// Within one tick of the clock the two could not be told apart.
	eventually(t, "the next tick", func() bool { return sleeper(t, leads).id().Start > id.Start })
	for range 500 {
		if os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(strconv.Itoa(id.PID-1)), 0) != nil {
			need.Skip(t, "this kernel does not let the next pid be chosen")
		}
		next := sleeper(t, leads)
		if next.pid() != id.PID {
			continue // somebody else forked in between
		}
		if !PIDLives(id.PID) || id.Life() != Dead || remains(id) {
			t.Errorf("pid lives %v, life %v, group lives %v", PIDLives(id.PID), id.Life(), remains(id))
		}
		mustEnd(t, Killer{}, Job{Owner: id, FileUID: 0})
		if next.id().Life() != Alive {
			t.Error("the pid's next holder was ended")
		}
		return
	}
	t.Error("the pid never came round: the machine is too busy forking")
}

func TestWhereAnIdentityWasReadDecides(t *testing.T) {
	self, err := Of(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
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
		{"no start time", func(id *Identity) { id.Start, id.Inode = 0, 0 }, Unknown},
		{"pid 0", func(id *Identity) { id.PID = 0 }, Unknown},
		{"negative pid", func(id *Identity) { id.PID = -1 }, Unknown},
	} {
		id := self
		c.change(&id)
		if c.want == Dead && id.Machine == "" {
			continue
		}
		if got := id.Life(); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestDeadInAnotherTimeNamespaceIsDead(t *testing.T) {
	a := shell(t, leads, "exit 0")
	a.wait()
	id := Here()
	id.PID, id.Start = a.pid(), 1
	id.TimeNS++
	if id.Life() != Dead {
		t.Errorf("%v", id.Life())
	}
}

func TestGroupOfADeadLeaderLives(t *testing.T) {
	orphan := file(t, "orphan")
	a := shell(t, leads, `sleep 100 & echo $! >"$1"; read x`, orphan)
	id, err := Of(a.pid())
	if err != nil {
		t.Fatal(err)
	}
	pid := pidIn(t, orphan)
	a.Process.Kill()
	a.Process.Wait()
	if id.Life() != Dead || !remains(id) {
		t.Fatalf("life %v, group lives %v", id.Life(), remains(id))
	}
	var r recorder
	mustEnd(t, r.killer(time.Second), Job{Owner: id, FileUID: os.Getuid()})
	if !gone(pid) || remains(id) {
		t.Error("the orphan lives on")
	}
}

func TestALeaderThatIsBeingReapedLeavesNoGroup(t *testing.T) {
	for range 100 {
		a := sleeper(t, leads)
		id := a.id()
		a.Process.Kill()
		go a.wait()
		eventually(t, "the leader is dead", func() bool { return id.Life() == Dead })
		for range 3 {
			if remains(id) {
				t.Fatal("its group lives without it")
			}
		}
	}
}

func TestGroupRules(t *testing.T) {
	id := Identity{PID: 10, PGID: 10, SID: 7, Start: 5}
	for _, c := range []struct {
		name string
		list []entry
		want bool
	}{
		{"a member", []entry{{pid: 11, pgid: 10, sid: 7, start: 5}}, true},
		{"a member whose session is not known", []entry{{pid: 11, pgid: 10, start: 5}}, true},
		{"an older member", []entry{{pid: 11, pgid: 10, sid: 7, start: 4}}, false},
		{"a zombie", []entry{{pid: 11, pgid: 10, sid: 7, start: 6, dead: true}}, false},
		{"the leader's zombie and a member", []entry{{pid: 10, pgid: 10, start: 5, dead: true}, {pid: 12, pgid: 10, start: 6}}, true},
		{"the pid is another's", []entry{{pid: 10, pgid: 10, start: 9}, {pid: 12, pgid: 10, start: 9}}, false},
		{"a daemon whose first process had the pid later", []entry{{pid: 12, pgid: 10, sid: 10, start: 9}}, false},
	} {
		if got := id.bands()[0].lives(c.list); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	old := Identity{PID: 10, PGID: 10, SID: Unrecorded, Start: 5}
	if !old.bands()[0].lives([]entry{{pid: 12, pgid: 10, sid: 10, start: 9}}) {
		t.Error("a member of a group whose session nobody wrote down is left out")
	}
	beyond := Identity{PID: 10, PGID: 10, Start: 5}
	if beyond.bands()[0].lives([]entry{{pid: 12, pgid: 10, sid: 10, start: 9}}) {
		t.Error("a session beyond the pid namespace is taken for one within")
	}
	for _, id := range []Identity{{PID: 1, PGID: 1, SID: 1}, {PID: 11, PGID: 10, SID: 10}, {}} {
		if len(id.bands()) > 0 {
			t.Errorf("%+v leads", id)
		}
	}
}

func TestSessionRules(t *testing.T) {
	id := Identity{PID: 10, PGID: 10, SID: 10, Start: 5}
	for claim, c := range map[string]struct {
		list []entry
		want bool
	}{
		"a member in a group of its own": {[]entry{{pid: 11, pgid: 11, sid: 10, start: 5}}, true},
		"an older one":                   {[]entry{{pid: 11, pgid: 11, sid: 10, start: 4}}, false},
		"a daemon with its own session":  {[]entry{{pid: 11, pgid: 11, sid: 11, start: 6}}, false},
		"a zombie":                       {[]entry{{pid: 11, pgid: 11, sid: 10, start: 6, dead: true}}, false},
	} {
		if got := id.bands()[1].lives(c.list); got != c.want {
			t.Errorf("%s: %v", claim, got)
		}
	}
}

func TestAncestors(t *testing.T) {
	a := sleeper(t, leads)
	for pid, want := range map[int]bool{os.Getpid(): true, os.Getppid(): true, a.pid(): false, 0: false} {
		if IsAncestor(pid) != want {
			t.Errorf("IsAncestor(%d) is %v", pid, !want)
		}
	}
}

func TestStatLines(t *testing.T) {
	tail := " 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 %T 18 99 20\n"
	line := func(pid, command, state, threads string) []byte {
		return []byte(pid + " (" + command + ") " + state + strings.Replace(tail, "%T", threads, 1))
	}
	for _, command := range []string{"sh", "a) Z 1 (b", "", "two words", ")))", "a\nb"} {
		e, err := parseStat(line("42", command, "S", "3"))
		if err != nil || e.pid != 42 || e.ppid != 1 || e.pgid != 2 || e.start != 99 || e.command != command || e.dead || e.stopped {
			t.Errorf("%q: %+v %v", command, e, err)
		}
	}
	// Seen while a process is being reaped.
	if e, err := parseStat([]byte("1 (x) X 0 -1 -1 0 -1 4 0 0 0 0 0 0 0 0 20 0 0 0 99 0")); err != nil || !e.dead {
		t.Errorf("%+v %v", e, err)
	}
	for state, want := range map[string][3]bool{ // threads 1: dead, threads 2: dead, stopped
		"Z": {true, false, false}, "X": {true, true, false}, "T": {false, false, true}, "t": {}, "R": {},
	} {
		one, _ := parseStat(line("1", "x", state, "1"))
		two, _ := parseStat(line("1", "x", state, "2"))
		if got := [3]bool{one.dead, two.dead, one.stopped}; got != want {
			t.Errorf("state %s: %v, want %v", state, got, want)
		}
	}
	for _, bad := range []string{"", "1", "1 (x", "1 (x) S 1 2", ") 1 (", "x (y) S" + tail} {
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
	// Run as root in a mount namespace of its own; becomes nobody.
	roles["hidden"] = func(args []string) int {
		for _, err := range []error{
			unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
			unix.Mount("proc", "/proc", "proc", 0, "hidepid=2"),
		} {
			if err != nil {
				return 2
			}
		}
		cmd := exec.Command("/proc/self/exe", args...)
		cmd.Env = append(os.Environ(), role+"=unseeing")
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if cmd.Run() != nil {
			return 1
		}
		return 0
	}
	roles["unseeing"] = func(args []string) int {
		id := Here()
		id.PID, _ = strconv.Atoi(args[0])
		start, _ := strconv.Atoi(args[1])
		id.Start, id.PGID = uint64(start), id.PID
		_, err := Of(id.PID)
		line, lineErr := ancestors()
		println("of:", errors.Is(err, unix.EPERM), "life:", id.Life().String(), "lives:", PIDLives(id.PID), "group:", remains(id))
		println("climbed:", lineErr == nil, line[1])
		return 0
	}
}

func TestHiddenIsNotDead(t *testing.T) {
	need.Root(t)
	a := sleeper(t, leads)
	id := a.id()
	b := play(t, syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}, "hidden", strconv.Itoa(id.PID), strconv.FormatUint(id.Start, 10))
	b.wait()
	if b.ProcessState.ExitCode() == 2 {
		need.Skip(t, "may not mount")
	}
	if got := b.out.String(); !strings.Contains(got, "of: true life: unknown lives: true group: true\n") {
		t.Errorf("got %s", got)
	}
	if !strings.Contains(b.out.String(), "climbed: true true") {
		t.Log("this kernel does not name hidden parents:", b.out.String())
	}
}

func init() {
	roles["misplaced"] = func([]string) int {
		_, err := Of(os.Getpid())
		println(err.Error(), Identity{PID: 1, Start: 1}.Life().String())
		return 0
	}
}

func TestProcOfAnotherNamespaceIsRefused(t *testing.T) {
	need.Root(t)
	// Nothing mounts /proc anew for the namespace: its pids are other processes.
	a := play(t, syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID}, "misplaced")
	a.wait()
	if got := a.out.String(); !strings.Contains(got, "another pid namespace unknown") {
		t.Errorf("got %q", got)
	}
}

func TestBoottimeAdvances(t *testing.T) {
	text, err := os.ReadFile("/proc/uptime")
	if err != nil {
		t.Fatal(err)
	}
	seconds, err := strconv.ParseFloat(strings.Fields(string(text))[0], 64)
	if err != nil {
		t.Fatal(err)
	}
	if got := Boottime().Seconds(); got < seconds-0.01 || got > seconds+60 {
		t.Errorf("%v, /proc/uptime says %v", got, seconds)
	}
}

func BenchmarkOf(b *testing.B) {
	for b.Loop() {
		if _, err := Of(os.Getppid()); err != nil {
			b.Fatal(err)
		}
	}
}
func BenchmarkTable(b *testing.B) {
	for b.Loop() {
		if _, err := table(); err != nil {
			b.Fatal(err)
		}
	}
}

func init() {
	roles["lookout"] = func(args []string) int {
		if syscall.Mount("proc", "/proc", "proc", 0, "hidepid=2") != nil {
			return 2
		}
		cmd := exec.Command(os.Args[0], args...)
		cmd.Env = append(os.Environ(), role+"=hunter")
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if cmd.Run() != nil {
			return 1
		}
		return 0
	}
	roles["hunter"] = func(args []string) int {
		owner, _ := strconv.Atoi(args[0])
		id, err := Of(owner)
		if err != nil {
			println(err.Error())
			return 1
		}
		var r recorder
		var stuck *StuckError
		err = r.killer(brief).End(Job{Owner: id, FileUID: nobody})
		println(errors.Is(err, unix.EPERM), errors.As(err, &stuck) && strconv.Itoa(stuck.PID) == args[1], len(r.sent))
		return 0
	}
}

// A member that /proc hides (hidepid) and that may not be signalled, as sudo's
// is, makes the job stuck before anybody is signalled.
func TestAHiddenMemberOfAnotherUserMakesTheJobStuck(t *testing.T) {
	need.Root(t)
	if _, err := exec.LookPath("setpriv"); err != nil {
		need.Skip(t, "no setpriv")
	}
	child := file(t, "child")
	a := shell(t, leads, `sleep 100 & echo $! >"$1"; exec setpriv --reuid 65534 --regid 65534 --clear-groups sleep 100`, child)
	pid := pidIn(t, child)
	eventually(t, "the owner is nobody", func() bool { uid, err := user(a.pid()); return err == nil && uid == nobody })
	b := play(t, syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}, "lookout", strconv.Itoa(a.pid()), strconv.Itoa(pid))
	b.wait()
	if b.ProcessState.ExitCode() == 2 {
		need.Skip(t, "may not mount")
	}
	if got := b.out.String(); got != "true true 0\n" || gone(a.pid()) || gone(pid) {
		t.Errorf("got %s", got)
	}
}
