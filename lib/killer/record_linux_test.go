package killer

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"adlock/lib/process"
	"adlock/test/support/actor"
	"adlock/test/support/check"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

// journal is a Record that keeps the pids of the recorded processes.
type journal struct {
	recorded map[int]bool
	failed   error
}

func (j *journal) record(members []process.Identity) error {
	if j.failed != nil {
		return j.failed
	}
	for _, id := range members {
		j.recorded[id.PID] = true
	}
	return nil
}

func TestEveryMemberIsRecordedBeforeItIsSignalled(t *testing.T) {
	ready := actor.File(t, "ready")
	// On TERM it starts another process, which is found late.
	a := actor.Shell(t, actor.Leads, `trap "" INT; trap 'sleep 100 & trap "" TERM' TERM; sleep 100 & sleep 100 & >"$1"; while :; do sleep 1; done`, ready)
	job := process.Job{Owner: idOf(a), FileUID: os.Getuid()}
	actor.Eventually(t, "four members", func() bool {
		list, _ := Members(job)
		return actor.Exists(ready) && len(list) == 4
	})
	j := journal{recorded: map[int]bool{}}
	k := Killer{Pause: actor.Brief, Record: j.record, Observe: func(s Signalled) {
		if s.PID > 0 && !j.recorded[s.PID] {
			t.Errorf("%s to %d (%s), which was not recorded", s.Signal, s.PID, s.Command)
		}
	}}
	mustEnd(t, k, job)
	if len(j.recorded) < 4 {
		t.Errorf("only %d were recorded", len(j.recorded))
	}
}

func TestNoProcessIsSignalledIfItCannotBeRecorded(t *testing.T) {
	a := actor.Sleeper(t, actor.Leads)
	var r recorder
	k := r.killer(actor.Brief)
	k.Record = (&journal{failed: unix.ENOSPC}).record
	if err := k.End(process.Job{Owner: idOf(a), FileUID: os.Getuid()}); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("got %v", err)
	}
	if len(r.sent) > 0 || gone(a.PID()) {
		t.Errorf("sent %v", r.sent)
	}
}

func TestAJobRemainsUntilItsRecordedSurvivorIsEnded(t *testing.T) {
	owner, survivor := actor.Shell(t, actor.Leads, "exit 0"), actor.Sleeper(t, actor.Leads)
	id := idOf(survivor)
	dead := process.Here()
	dead.PID, dead.Start = owner.PID(), 1
	owner.Await()
	job := process.Job{Owner: dead, Survivors: []process.Identity{id}, FileUID: os.Getuid()}
	if !job.Remains() || !job.Alive() {
		t.Error("the survivor does not count")
	}
	mustEnd(t, Killer{Pause: actor.Patient}, job)
	if job.Remains() || job.Alive() || !gone(id.PID) {
		t.Error("it counts although it is dead")
	}
	job.Uncounted = true
	if !job.Remains() || job.Alive() {
		t.Error("members that were not counted are unknown, and a person may overrule that")
	}
	mustStick(t, Killer{}.End(job), process.ErrUncounted)
}

func TestTheGroupThatACommandMadeIsEndedWithTheJob(t *testing.T) {
	for claim, leave := range map[string]syscall.SysProcAttr{"a group of its own": {Setpgid: true}, "a session of its own": {Setsid: true}} {
		t.Run(claim, func(t *testing.T) {
			child := actor.File(t, "child")
			command := actor.Shell(t, leave, `sleep 100 & echo $! >"$1"; read x`, child)
			id := idOf(command)
			pid := actor.PIDIn(t, child)
			command.Kill()
			dead := process.Here()
			dead.PID, dead.Start = command.PID(), 1
			self := must.Get(process.Of(os.Getpid()))(t)
			id.PGID, id.SID = self.PGID, self.SID // as it was when it was recorded
			job := process.Job{Owner: dead, Command: id, FileUID: os.Getuid()}
			check.Equal(t, "what the command started counts", job.Remains(), true)
			mustEnd(t, Killer{Pause: actor.Brief}, job)
			if !gone(pid) || job.Remains() {
				t.Error("it lives on")
			}
		})
	}
}

// The command is dead, and a stranger that got its pid has left a process in a session of that number.
func TestASessionWithADeadCommandsNumberIsSpared(t *testing.T) {
	child := actor.File(t, "child")
	stranger := actor.Shell(t, syscall.SysProcAttr{Setsid: true}, `sleep 100 & echo $! >"$1"; read x`, child)
	command := idOf(stranger)
	pid := actor.PIDIn(t, child)
	defer unix.Kill(pid, unix.SIGKILL)
	stranger.Kill()
	owner := actor.Sleeper(t, actor.Leads)
	mustEnd(t, Killer{Pause: actor.Brief}, process.Job{Owner: idOf(owner), Command: command, Supervised: true, FileUID: -1})
	if !gone(owner.PID()) || gone(pid) {
		t.Errorf("the supervisor is gone: %v, a stranger: %v", gone(owner.PID()), gone(pid))
	}
}

func TestOnlyTheProcessWithTheRecordedInodeIsEnded(t *testing.T) {
	a := actor.Sleeper(t, actor.Leads)
	id := idOf(a)
	if id.Inode == 0 {
		need.Skip(t, "this kernel has no pidfs")
	}
	stranger := id
	stranger.Inode++ // pid and start are the same
	mustEnd(t, Killer{}, process.Job{Owner: stranger, FileUID: os.Getuid()})
	id.TimeNS, id.Start, id.PGID = id.TimeNS+1, id.Start+12345, 0
	if stranger.Life() != process.Dead || id.Life() != process.Alive {
		t.Errorf("a stranger is %v, the owner %v", stranger.Life(), id.Life())
	}
	mustEnd(t, Killer{Pause: actor.Patient}, process.Job{Owner: id, FileUID: os.Getuid()})
	check.Equal(t, "it is gone", gone(a.PID()), true)
}

func init() {
	// On TERM it leaves its group, starts a process, and exits: that process is an orphan at once.
	actor.Roles["leaves late"] = func(args []string) int {
		signal.Ignore(unix.SIGINT)
		told := make(chan os.Signal, 1)
		signal.Notify(told, unix.SIGTERM)
		os.WriteFile(args[0], nil, 0o600)
		<-told
		signal.Ignore(unix.SIGTERM)
		unix.Setpgid(0, 0)
		orphan := exec.Command("sleep", "1000")
		if orphan.Start() == nil {
			os.WriteFile(args[1], []byte(strconv.Itoa(orphan.Process.Pid)+"\n"), 0o600)
		}
		return 0
	}
}

// Only the group that the command makes late shows that the orphan belongs to the job. Its number
// is the command's pid, so the killer can look for it before it exists.
func TestAChildIsEndedThoughItsParentLeftTheGroupMeanwhile(t *testing.T) {
	ready, born := actor.File(t, "ready"), actor.File(t, "born")
	command := actor.Shell(t, syscall.SysProcAttr{}, actor.Role+`="leaves late" exec "$1" "$2" "$3"`, os.Args[0], ready, born)
	actor.Eventually(t, "it listens", func() bool { return actor.Exists(ready) })
	owner := actor.Sleeper(t, actor.Leads)
	job := process.Job{Owner: idOf(owner), Command: idOf(command), FileUID: os.Getuid()}
	owner.Kill()
	go command.Await() // an unreaped zombie would keep the group alive
	orphan := 0
	mustEnd(t, Killer{Pause: actor.Brief, Observe: func(s Signalled) {
		if s.Signal == "TERM" { // KILL must not come before the orphan is there
			orphan = actor.PIDIn(t, born)
		}
	}}, job)
	if !gone(orphan) {
		unix.Kill(orphan, unix.SIGKILL)
		t.Error("the orphan lives")
	}
}

func TestAnEndingThatCannotBeRecordedLeaksNoDescriptor(t *testing.T) {
	a := actor.Sleeper(t, actor.Leads)
	full := Killer{Record: (&journal{failed: unix.ENOSPC}).record}
	job := process.Job{Owner: idOf(a), FileUID: -1}
	before := actor.OpenFiles(t)
	for range 16 {
		if err := full.End(job); err != unix.ENOSPC {
			t.Fatal(err)
		}
	}
	if after := actor.OpenFiles(t); after >= before+8 {
		t.Errorf("%d files were open, then %d", before, after)
	}
}
