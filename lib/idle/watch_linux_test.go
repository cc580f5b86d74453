package idle

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"adlock/lib/killer"
	"adlock/lib/process"
	"adlock/test/support/actor"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

func TestMain(m *testing.M) { actor.Main(m) }

// of is the job of a process, watched for that long.
func of(t *testing.T, a *actor.Actor, length time.Duration) Job {
	t.Helper()
	id := must.Get(process.Of(a.PID()))(t)
	return Job{Length: length, Members: func() ([]process.Entry, error) { return killer.Members(process.Job{Owner: id, FileUID: -1}) }}
}

func watch(t *testing.T, j Job) Verdict {
	t.Helper()
	return must.Get(j.Watch())(t)
}

// asleep waits until a shell has become, or started, its sleep.
func asleep(t *testing.T, a *actor.Actor) {
	t.Helper()
	actor.Eventually(t, "it sleeps", func() bool {
		id, err := process.Of(a.PID())
		if err != nil {
			return false
		}
		members, _ := killer.Members(process.Job{Owner: id, FileUID: -1}) // none: not yet
		for _, e := range members {
			if e.Command == "sleep" && actor.State(e.PID) == "S" && actor.State(a.PID()) == "S" {
				return true
			}
		}
		return false
	})
}

func TestASleepingJobIsIdle(t *testing.T) {
	a := actor.Shell(t, actor.Leads, "sleep 100; :")
	asleep(t, a)
	if v := watch(t, of(t, a, 2*time.Second)); v.Idle < 2*time.Second || v.Work != "" {
		t.Errorf("%+v", v)
	}
}

// If a parent ignores SIGCHLD, the kernel reaps its children; these live and die between two looks.
func TestAForkingProcessThatIgnoresSIGCHLDCountsAsWorking(t *testing.T) {
	need.Tools(t, "perl")
	for script, works := range map[string]bool{`while (1) { sleep 1; fork or exit }`: true, `exec "sleep", "100"`: false} {
		a := actor.Shell(t, actor.Leads, `exec perl -e '$SIG{CHLD} = "IGNORE"; `+script+`'`)
		actor.Eventually(t, "it ignores SIGCHLD, and sleeps", func() bool {
			var f Figures
			err := f.readThreads("/proc/" + strconv.Itoa(a.PID()) + "/")
			return err == nil && f.Ignores && f.State == ""
		})
		if !works {
			asleep(t, a)
		}
		if v := watch(t, of(t, a, 4*time.Second)); (v.Work != "") != works {
			t.Errorf("%s: %+v", script, v)
		}
	}
	a := actor.Shell(t, actor.Leads, "exec sleep 100")
	asleep(t, a)
	var f Figures
	if err := f.readThreads("/proc/" + strconv.Itoa(a.PID()) + "/"); err != nil || f.Ignores {
		t.Errorf("%v, %+v", err, f)
	}
}

// With SA_NOCLDWAIT the kernel reaps the children, and no count of their parent shows them.
func TestAForkingProcessWithSA_NOCLDWAITCountsAsWorking(t *testing.T) {
	need.Tools(t, "perl")
	ready := actor.File(t, "ready")
	a := actor.Shell(t, actor.Leads, `exec perl -MPOSIX -e '
		sigaction(SIGCHLD, POSIX::SigAction->new("DEFAULT", POSIX::SigSet->new, POSIX::SA_NOCLDWAIT));
		open my $ready, ">", shift;
		while (1) { select undef, undef, undef, 0.3; fork or POSIX::_exit(0) }' `+ready)
	actor.Eventually(t, "it sleeps", func() bool { return actor.Exists(ready) && actor.State(a.PID()) == "S" })
	if v := watch(t, of(t, a, 2*time.Second)); v.Work == "" {
		t.Errorf("%+v", v)
	}
}

func TestComputingForkingAndWritingCountAsWork(t *testing.T) {
	for _, script := range []string{"while :; do :; done", "while sleep 0.3; do :; done", "sleep 100 & while :; do echo; done"} {
		a := actor.Shell(t, actor.Leads, script)
		if v := watch(t, of(t, a, time.Minute)); v.Work == "" || v.Idle != 0 {
			t.Errorf("%s: %+v", script, v)
		}
	}
}

func TestAStoppedJobIsNotIdle(t *testing.T) {
	a := actor.Sleeper(t, actor.Leads)
	a.Stop()
	if v := watch(t, of(t, a, time.Minute)); !strings.HasSuffix(v.Work, "is stopped") {
		t.Errorf("%+v", v)
	}
}

func TestAWatchEndsWithoutAVerdictOnceJobOrLockIsGone(t *testing.T) {
	a := actor.Shell(t, actor.Leads, "sleep 100; :")
	asleep(t, a)
	job := of(t, a, time.Hour)
	if v := watch(t, Job{Members: func() ([]process.Entry, error) { return nil, nil }, Length: time.Hour}); v != (Verdict{}) {
		t.Errorf("a job that is gone: %+v", v)
	}
	job.Over = func() bool { return true }
	if v := watch(t, job); v != (Verdict{}) {
		t.Errorf("a lock that is gone: %+v", v)
	}
}

func TestALongListOfGroupsHidesNoFiguresOfAProcess(t *testing.T) {
	dir, f := t.TempDir()+"/", Figures{}
	must.Do(t, os.MkdirAll(dir+"task/7", 0o700))
	text := "\nState:\tS\nGroups:\t" + strings.Repeat("4000000000 ", 1<<16) + "\nSigIgn:\t10000\nvoluntary_ctxt_switches:\t3\nnonvoluntary_ctxt_switches:\t4\n"
	must.Do(t, os.WriteFile(dir+"task/7/status", []byte(text), 0o600))
	if err := f.readThreads(dir); err != nil || f.Switches != 7 || !f.Ignores || f.State != "" {
		t.Errorf("%+v, %v", f, err)
	}
}

func TestAProcessThatCannotBeReadCountsAsWorking(t *testing.T) {
	need.Root(t)
	a := actor.Sleeper(t, actor.Leads)
	b := actor.Play(t, syscall.SysProcAttr{Setpgid: true, Credential: &syscall.Credential{Uid: actor.Nobody, Gid: actor.Nobody}}, "watcher", strconv.Itoa(a.PID()))
	if got := b.Said(); !strings.Contains(got, "cannot be read: permission denied") {
		t.Errorf("got %q", got)
	}
}

func TestAWorkingThreadIsFoundBesideASleepingOne(t *testing.T) {
	ready := actor.File(t, "ready")
	a := actor.Play(t, actor.Leads, "spinner", ready)
	actor.Eventually(t, "it spins", func() bool { return actor.Exists(ready) && actor.State(a.PID()) == "S" })
	if v := watch(t, of(t, a, time.Minute)); v.Work == "" {
		t.Errorf("%+v", v)
	}
}

func TestAWatchersTurnLastsUntilItEndsDiesOrIsStopped(t *testing.T) {
	dir := must.Get(os.Open(t.TempDir()))(t)
	defer dir.Close()
	fd := int(dir.Fd())
	goesOn, standsStill := func() bool { return false }, func() bool { return true }
	done, cut, err := Turn(fd, "look.x", goesOn)
	if err != nil || done == nil || cut {
		t.Fatal(err, cut)
	}
	if other, _, err := Turn(fd, "look.x", goesOn); other != nil || err != nil {
		t.Errorf("a second one has a turn (%v)", err)
	}
	look := filepath.Join(dir.Name(), "look.x")
	second, cut, err := Turn(fd, "look.x", standsStill)
	if err != nil || second == nil || !cut {
		t.Fatalf("the turn of a newcomer that stands still is not passed: %v, %t", err, cut)
	}
	done() // it goes on
	if other, _, err := Turn(fd, "look.x", goesOn); other != nil || err != nil {
		t.Errorf("the end of a passed turn ends another (%v)", err)
	}
	second()
	if actor.Exists(look) {
		t.Error("the file is left")
	}
	for age, left := range map[time.Duration]bool{time.Minute: true, -time.Minute: false} { // a killed newcomer's; of a newcomer that is about to lock it
		must.Do(t, os.WriteFile(look, nil, 0o600))
		must.Do(t, os.Chtimes(look, time.Time{}, time.Now().Add(-age)))
		for _, left := range []bool{left, false} {
			if done, cut, err = Turn(fd, "look.x", goesOn); err != nil || done == nil || cut != left {
				t.Fatalf("no turn after that: %v, %t", err, cut)
			}
			done()
		}
	}
	if _, _, err := Turn(-2, "look.x", goesOn); err == nil {
		t.Error("no error in no directory")
	}
}

func TestASlowSampleIsFollowedByALongPause(t *testing.T) {
	slow := func() ([]process.Entry, error) {
		for end := processorTime() + 20*time.Millisecond; processorTime() < end; {
		}
		e, err := process.Find(os.Getppid())
		return []process.Entry{e}, err
	}
	n := 0
	began := time.Now()
	job := Job{Length: 4 * time.Second, Members: func() ([]process.Entry, error) {
		n++
		if n > 1 && time.Since(began) < time.Second {
			t.Error("a second look follows at once")
		}
		return slow()
	}}
	must.Get(job.Watch())(t)
	if n > 4 {
		t.Errorf("%d looks of 20 ms in %s", n, time.Since(began))
	}
}

func init() {
	actor.Roles["watcher"] = func(args []string) int {
		pid, _ := strconv.Atoi(args[0])
		e, err := process.Find(pid)
		if err != nil {
			println(err.Error())
			return 1
		}
		v, err := Job{Length: time.Minute, Members: func() ([]process.Entry, error) { return []process.Entry{e}, nil }}.Watch()
		println(v.Work, err == nil)
		return 0
	}
	actor.Roles["spinner"] = func(args []string) int {
		go func() {
			os.WriteFile(args[0], nil, 0o600)
			for n := 0; ; n++ {
				runtime.KeepAlive(n)
			}
		}()
		exec.Command("sleep", "100").Run() // the first thread waits
		return 0
	}
}
