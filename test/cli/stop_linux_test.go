package cli

import (
	"path"
	"regexp"
	"strings"
	"testing"
	"time"

	"adlock/test/support/helper"
)

// stopped runs adlock stop and expects a line about the end of the process.
func (s *stage) stopped(pid int, words ...string) {
	s.Helper()
	r := s.adlock(append([]string{"stop", patient}, words...)...)
	want := regexp.MustCompile(`^adlock: run [a-z]+: ended process ` + itoa(pid) + ` by force, as asked: it had run for [0-9]+s\n$`)
	if r.Status != 0 || r.Out != "" || !want.MatchString(r.Err) {
		s.Fatalf("adlock stop %q: %+v", words, r)
	}
}

func TestStopEndsTheJobAndStampsItsLastLock(t *testing.T) {
	s := newStage(t)
	victim := s.hold("a", s.notes("told"))
	child := childOf(t, victim.PID, "sleep")
	s.aged(s.lastOf("a"), time.Hour)
	s.stopped(victim.PID, "job run a", s.notes("told"))
	if helper.Alive(child) || helper.Alive(victim.PID) || s.held("a") {
		t.Errorf("job %v, supervisor %v, held %v", helper.Alive(child), helper.Alive(victim.PID), s.held("a"))
	}
	if age := time.Since(s.modified(s.lastOf("a"))); age > time.Minute {
		t.Errorf("stamped %v ago", age)
	}
	victim.Wait(t)
	said := regexp.MustCompile(`^adlock: run a: ended by force by process [0-9]+, as a person asked: it had run for [0-9]+s\n$`)
	if !said.MatchString(victim.Output()) {
		t.Errorf("the victim: %q", victim.Output())
	}
	if kinds := s.kinds("a"); !regexp.MustCompile(`^acquire stop( signal)+ lost( signal)* clear$`).MatchString(kinds) {
		t.Errorf("events: %s", kinds)
	}
	wantWords(t, s.want(0, "report", "a").Out, "1 stopped")
	if told := s.told("told", 1); len(told) != 1 || !strings.HasPrefix(told[0], "ended job.dax.run.a ") {
		t.Errorf("the hook: %q", told)
	}
	s.want(0, job("true")...)
	s.want(75, "run", "--program", "job", "--name", "a", "--if-elapsed", "1h", "true")
}

func TestStopReportsThatNothingRuns(t *testing.T) {
	s := newStage(t)
	s.want(0, job("true")...)
	const says = "is not locked by any running job: nothing to stop"
	for _, name := range []string{"a", "job.dax.run.a", "job run a", s.lockOf("a")} {
		s.refused(0, "adlock: "+name+": "+says, "stop", name)
	}
	dead := s.hold("dead")
	helper.KillSession(dead.PID)
	dead.Wait(t)
	helper.Eventually(t, "nothing of it lives", func() bool { return len(helper.Session(dead.PID)) == 0 })
	stamped := s.modified(s.lastOf("dead"))
	s.refused(0, "adlock: dead: "+says, "stop", "dead")
	if !s.held("dead") || !s.modified(s.lastOf("dead")).Equal(stamped) {
		t.Error("a dead owner's lock was changed")
	}
}

func TestStopTakesSeveralNamesAndEndsAllOrNone(t *testing.T) {
	s := newStage(t)
	s.want(0, jobNamed("idle", "true")...)
	a, b := s.hold("a"), s.hold("b")
	s.refused(64, `stop: no atom matches "none"`+"\n", "stop", "a", "b", "none")
	s.refused(64, "is in another lock directory than "+s.lockOf("a"), "stop", s.lockOf("a"), "/nosuch/lock.p.h.o.x")
	if r := s.want(0, "stop", "--dry-run", s.lockOf("a"), path.Dir(s.lockOf("b"))+"/./"+path.Base(s.lockOf("b"))); strings.Count(r.Out, "\tsleep\n") != 2 || r.Err != "" {
		t.Errorf("two files: %+v", r)
	}
	if a.Ended() || b.Ended() {
		t.Fatal("a job was ended")
	}
	r := s.adlock("stop", "a", "job run idle", "b")
	for _, want := range []string{"run a: ended process " + itoa(a.PID), "run b: ended process " + itoa(b.PID), "job run idle: is not locked by any running job"} {
		if r.Status != 0 || !strings.Contains(r.Err, "adlock: "+want) || strings.Count(r.Err, "\n") != 3 {
			t.Errorf("no %q: %+v", want, r)
		}
	}
	a.Wait(t)
	b.Wait(t)
}

func TestADryStopListsTheJobAndEndsNothing(t *testing.T) {
	s := newStage(t)
	s.want(0, jobNamed("idle", "true")...)
	s.refused(0, "nothing to stop", "stop", "--dry-run", "idle")
	p := s.hold("a")
	want := "\n" + itoa(childOf(t, p.PID, "sleep")) + "\tsleep\n"
	if r := s.want(0, "stop", "--dry-run", "a"); !strings.HasPrefix(r.Out, itoa(p.PID)+"\t") || !strings.HasSuffix(r.Out, want) || r.Err != "" {
		t.Errorf("%+v", r)
	}
	if kinds := s.kinds("a"); p.Ended() || kinds != "acquire" {
		t.Errorf("ended %t, events %s", p.Ended(), kinds)
	}
}

func TestStopReleasesTheSlotOfTheJob(t *testing.T) {
	s := newStage(t)
	holder := s.hold("a", "--slots", "1")
	s.refused(64, "is a slot: stop the atom that holds it", "stop", "job.dax.slot-1")
	s.refused(77, "to end it: adlock stop '"+s.lockOf("a")+"'", "clear", "job.dax.slot-1")
	s.stopped(holder.PID, s.lockOf("a"))
	helper.Absent(t, s.locks+"/lock.job.dax.slot-1")
}

func TestStopEndsTheNamedReader(t *testing.T) {
	s := newStage(t)
	lock := func(p *helper.Process) string { return "read.job.dax.run.book." + itoa(p.PID) }
	var readers []*helper.Process
	for range 2 {
		p := s.command(jobNamed("book", "--shared", "sleep", "600")...).Start(t)
		helper.Eventually(t, "it reads", func() bool { return helper.Settled(s.locks + "/" + lock(p)) })
		readers = append(readers, p)
	}
	s.refused(64, "may be any of ", "stop", "book")
	s.stopped(readers[0].PID, lock(readers[0]))
	readers[1].Lives(t)
	s.stopped(readers[1].PID, "book")
}

func TestAReadersLockCanBeNamedToEndItsOwner(t *testing.T) {
	s := newStage(t)
	owner := s.command(jobNamed("book", "--shared", "sleep", "600")...).Start(t)
	lock := s.locks + "/read.job.dax.run.book." + itoa(owner.PID)
	helper.Eventually(t, "it reads", func() bool { return helper.Settled(lock) })
	s.want(0, "kill-carefully", patient, "--lock", lock)
	owner.Wait(t)
	if said := regexp.MustCompile(` by force by process [1-9][0-9]*, as a person asked`); !said.MatchString(owner.Output()) {
		t.Errorf("%q", owner.Output())
	}
}

func TestStopRefusesToEndItsOwnJob(t *testing.T) {
	s := newStage(t)
	r := s.adlock("run", "--program", "job", "--name", "a", "--", "sh", "-c", `"$0" stop a; echo $?`, helper.Binary(t))
	r.Is(t, 0, "77\n", "…is this process or one of its ancestors…")
}

func TestStopRefusesToEndAnOwnerThatItCannotCheck(t *testing.T) {
	s := newStage(t)
	holder := s.hold("a")
	elsewhere := regexp.MustCompile(`(?m)^(machine|boot)=.*$`).ReplaceAllString(s.read(s.lockOf("a")), "${1}="+strings.Repeat("1", 32))
	s.plant("b", strings.Replace(elsewhere, `operand="a"`, `operand="b"`, 1))
	s.refused(77, "if you know that it is dead: adlock clear '"+s.lockOf("b")+"'", "stop", "job.dax.run.b")
	s.plant("c", itoa(holder.PID)+"\n")
	s.refused(77, "does not name its owner", "stop", "job.dax.run.c")
	if holder.Ended() || !s.held("b") || !s.held("c") {
		t.Error("a lock or its owner is gone")
	}
}
