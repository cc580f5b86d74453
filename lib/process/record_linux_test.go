package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// journal is a Record that keeps who it was told of.
type journal struct {
	told   map[int]bool
	failed error
}

func (j *journal) record(members []Identity) error {
	if j.failed != nil {
		return j.failed
	}
	for _, id := range members {
		j.told[id.PID] = true
	}
	return nil
}

func TestEveryMemberIsRecordedBeforeItIsSignalled(t *testing.T) {
	ready := file(t, "ready")
	// On TERM it starts another one, which is found late.
	a := shell(t, leads, `trap "" INT; trap 'sleep 100 & trap "" TERM' TERM; sleep 100 & sleep 100 & >"$1"; while :; do sleep 1; done`, ready)
	eventually(t, "ready", func() bool { return exists(ready) })
	j := journal{told: map[int]bool{}}
	k := Killer{Pause: brief, Record: j.record, Observe: func(s Signalled) {
		if s.PID > 0 && !j.told[s.PID] {
			t.Errorf("%s to %d (%s), which was not recorded", s.Signal, s.PID, s.Command)
		}
	}}
	mustEnd(t, k, Job{Owner: a.id(), FileUID: os.Getuid()})
	if len(j.told) < 4 {
		t.Errorf("only %d were recorded", len(j.told))
	}
}

func TestWhereTheRecordFailsNobodyIsSignalled(t *testing.T) {
	a := sleeper(t, leads)
	var r recorder
	k := r.killer(brief)
	k.Record = (&journal{failed: unix.ENOSPC}).record
	if err := k.End(Job{Owner: a.id(), FileUID: os.Getuid()}); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("got %v", err)
	}
	if len(r.sent) > 0 || gone(a.pid()) {
		t.Errorf("sent %v", r.sent)
	}
}

func TestARecordedSurvivorIsEndedAndRemainsUntilThen(t *testing.T) {
	owner, survivor := shell(t, leads, "exit 0"), sleeper(t, leads)
	id := survivor.id()
	dead := Here()
	dead.PID, dead.Start = owner.pid(), 1
	owner.wait()
	job := Job{Owner: dead, Survivors: []Identity{id}, FileUID: os.Getuid()}
	if !job.Remains() || !job.Alive() {
		t.Error("the survivor does not count")
	}
	mustEnd(t, Killer{Pause: patient}, job)
	if job.Remains() || job.Alive() || !gone(id.PID) {
		t.Error("it counts although it is dead")
	}
	job.Uncounted = true
	if !job.Remains() || job.Alive() {
		t.Error("nobody knows of those who were not counted, and a person may overrule that")
	}
	mustStick(t, Killer{}.End(job), ErrUncounted)
}

func TestACommandThatLeftTheGroupRemainsWithItsOwn(t *testing.T) {
	for claim, leave := range map[string]syscall.SysProcAttr{"a group of its own": {Setpgid: true}, "a session of its own": {Setsid: true}} {
		t.Run(claim, func(t *testing.T) {
			child := file(t, "child")
			command := shell(t, leave, `sleep 100 & echo $! >"$1"; read x`, child)
			id := command.id()
			pid := pidIn(t, child)
			command.Process.Kill()
			command.Process.Wait()
			dead := Here()
			dead.PID, dead.Start = command.pid(), 1
			self, err := Of(os.Getpid())
			if err != nil {
				t.Fatal(err)
			}
			id.PGID, id.SID = self.PGID, self.SID // as it was when it was recorded
			job := Job{Owner: dead, Command: id, FileUID: os.Getuid()}
			if !job.Remains() {
				t.Error("what the command started does not count")
			}
			mustEnd(t, Killer{Pause: brief}, job)
			if !gone(pid) || job.Remains() {
				t.Error("it lives on")
			}
		})
	}
}

// The same pid and the same tick: only the inode of the pidfd differs.
func TestAnotherInodeIsAStranger(t *testing.T) {
	a := sleeper(t, leads)
	id := a.id()
	if id.Inode == 0 {
		t.Skip("this kernel has no pidfs")
	}
	id.Inode++
	if id.Life() != Dead {
		t.Errorf("life %v", id.Life())
	}
	mustEnd(t, Killer{}, Job{Owner: id, FileUID: os.Getuid()})
	if _, err := hold(key{id.PID, id.Start}, id.Inode); err != unix.ESRCH {
		t.Errorf("held: %v", err)
	}
	if gone(a.pid()) {
		t.Error("a stranger was ended")
	}
}

func TestTheInodeDecidesInAnotherTimeNamespace(t *testing.T) {
	a := sleeper(t, leads)
	id := a.id()
	if id.Inode == 0 {
		t.Skip("this kernel has no pidfs")
	}
	id.TimeNS++
	id.Start += 12345
	id.PGID = 0
	if id.Life() != Alive {
		t.Errorf("life %v", id.Life())
	}
	mustEnd(t, Killer{Pause: patient}, Job{Owner: id, FileUID: os.Getuid()})
	if !gone(a.pid()) {
		t.Error("it lives")
	}
}

func init() {
	// Is started by an orphan of a job, and ends that job.
	roles["insider"] = func(args []string) int {
		owner := Here()
		owner.PID, _ = strconv.Atoi(args[0])
		owner.Start, _ = strconv.ParseUint(args[1], 10, 64)
		owner.PGID, owner.SID = owner.PID, Unrecorded
		var r recorder
		err := r.killer(brief).End(Job{Owner: owner, FileUID: os.Getuid()})
		_, listed := Job{Owner: owner, FileUID: os.Getuid()}.Members()
		fmt.Println(errors.Is(err, ErrAncestor), errors.Is(listed, ErrAncestor), len(r.sent))
		return 0
	}
}

// To spare it and end the rest would free the lock while it lives.
func TestANewcomerInsideTheJobEndsNobody(t *testing.T) {
	start, out := file(t, "start"), file(t, "out")
	// The subshell's parent exits, so the insider is no descendant of the owner.
	a := shell(t, leads, `
		sh -c '(
			while ! [ -s "$2" ]; do sleep 0.02; done
			read -r start <"$2"
			`+role+`=insider "$3" "$1" "$start" >"$4.tmp"
			mv "$4.tmp" "$4"
		) &' sh "$$" "$@" </dev/null
		exec sleep 100`, start, os.Args[0], out)
	id := a.id()
	if err := os.WriteFile(start, []byte(strconv.FormatUint(id.Start, 10)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the insider has tried", func() bool { return exists(out) })
	text, err := os.ReadFile(out)
	if err != nil || string(text) != "true true 0\n" || gone(a.pid()) {
		t.Errorf("%q, %v", text, err)
	}
}

func init() {
	// Leaves its group when it is told to end, and what it starts there is an
	// orphan at once.
	roles["leaves late"] = func(args []string) int {
		signal.Ignore(unix.SIGINT)
		told := make(chan os.Signal, 1)
		signal.Notify(told, unix.SIGTERM)
		os.WriteFile(args[0], nil, 0o600)
		<-told
		signal.Ignore(unix.SIGTERM)
		unix.Setpgid(0, 0)
		orphan := exec.Command("sleep", "1000")
		if orphan.Start() == nil {
			os.WriteFile(args[1], []byte(strconv.Itoa(orphan.Process.Pid)), 0o600)
		}
		return 0
	}
}

// The group that a command comes to lead is known before there is one: it alone
// tells whose the orphan is.
func TestACommandThatLeavesTheGroupWhileItIsEndedLosesNobody(t *testing.T) {
	ready, born := file(t, "ready"), file(t, "born")
	command := shell(t, syscall.SysProcAttr{}, role+`="leaves late" exec "$1" "$2" "$3"`, os.Args[0], ready, born)
	eventually(t, "it listens", func() bool { return exists(ready) })
	owner := sleeper(t, leads)
	job := Job{Owner: owner.id(), Command: command.id(), FileUID: os.Getuid()}
	unix.Kill(owner.pid(), unix.SIGKILL)
	owner.wait()
	go command.wait() // its zombie would keep the group known
	mustEnd(t, Killer{Pause: time.Second}, job)
	text, err := os.ReadFile(born)
	if err != nil {
		t.Fatal(err)
	}
	orphan, _ := strconv.Atoi(string(text))
	if !gone(orphan) {
		unix.Kill(orphan, unix.SIGKILL)
		t.Error("the orphan lives")
	}
}

func TestWhoIsStoppedStandsStill(t *testing.T) {
	a := sleeper(t, leads)
	if still, age := Still(a.pid()); still || age < -time.Second || age > time.Hour {
		t.Errorf("still %v, %v old", still, age)
	}
	unix.Kill(a.pid(), unix.SIGSTOP)
	eventually(t, "it stands still", func() bool { still, _ := Still(a.pid()); return still })
	unix.Kill(a.pid(), unix.SIGKILL)
	a.wait()
	if still, _ := Still(a.pid()); still {
		t.Error("the dead stand still")
	}
}
