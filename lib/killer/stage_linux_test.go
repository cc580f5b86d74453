package killer

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/process"
	"adlock/test/support/actor"
	"adlock/test/support/check"
	"adlock/test/support/helper"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

func TestScansAreAtLeastTenMillisecondsApart(t *testing.T) {
	const ms = time.Millisecond
	for took, want := range map[time.Duration]time.Duration{0: 10 * ms, 5 * ms: 10 * ms, 8 * ms: 16 * ms, 25 * ms: 50 * ms, time.Minute: 50 * ms} {
		check.Equal(t, "after a scan of "+took.String(), betweenScans(took), want)
	}
	n := scans(t)
	begun := time.Now()
	a := deaf(t, actor.Leads)
	mustEnd(t, Killer{Pause: actor.Brief}, process.Job{Owner: idOf(a), FileUID: -1})
	if most := int(time.Since(begun)/(10*ms)) + 5; *n > most {
		t.Errorf("the table was read %d times, want at most %d", *n, most)
	}
}

func TestTheKILLStageLastsASecondAtLeast(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		given          time.Duration
		stage          int
		pause, longest time.Duration
	}{{0, 1, 0, 2 * s}, {5 * s, 2, 5 * s, 7 * s}, {0, 3, s, 3 * s}, {5 * s, 3, 5 * s, 7 * s}} {
		if pause, longest := (Killer{Pause: c.given}).pauses(c.stage); pause != c.pause || longest != c.longest {
			t.Errorf("a pause of %v is %v and at most %v in stage %d", c.given, pause, longest, c.stage)
		}
	}
}

func TestTheLastStageIsExtendedForTheSupervisor(t *testing.T) {
	now := time.Now()
	soon, late := now.Add(time.Millisecond), now.Add(time.Minute)
	second := now.Add(time.Second)
	for _, c := range []struct {
		claim             string
		deadline, longest time.Time
		turn, graced      bool
		want              time.Time
	}{
		{"nothing extends it", soon, late, false, false, soon},
		{"the supervisor was signalled", soon, soon, true, false, second},
		{"it was signalled late", soon, now, true, false, second},
		{"it may exit by itself", soon, late, false, true, second},
		{"it had time for too long", soon, now, false, true, soon},
		{"there is time enough", late, late, true, true, late},
	} {
		check.Equal(t, c.claim, extended(c.deadline, now, c.longest, c.turn, c.graced), c.want)
	}
}

func TestASupervisorWhoseGraceEndsLateIsStillKilled(t *testing.T) {
	read := readTable
	defer func() { readTable = read }()
	for claim, c := range map[string]struct{ late, scan time.Duration }{
		"it outlasts the second of KILL": {100 * time.Millisecond, 0},
		"a scan outlasts both":           {0, keeperGrace + 100*time.Millisecond},
	} {
		a := deaf(t, actor.Leads)
		h := hunted(t, a)
		h.keeper, h.membership.Roots[entryOf(a).Key()] = entryOf(a).Key(), true
		h.lonely = time.Now().Add(c.late)
		var r recorder
		readTable = func(see func(*process.Entry) bool) ([]process.Entry, error) {
			time.Sleep(c.scan)
			if r.to(a.PID()) == "KILL" { // on a busy machine, it may need more than the last second
				actor.Eventually(t, "it is dead", func() bool { return !helper.Alive(a.PID()) })
			}
			return read(see)
		}
		done, err := r.killer(0).run(h, len(stages))
		if !done || err != nil || r.to(a.PID()) != "KILL" {
			t.Errorf("%s: done %v, %v, sent %v", claim, done, err, r.sent)
		}
	}
}

func TestTheProcessTableIsReadOnceForADeadJob(t *testing.T) {
	a := actor.Sleeper(t, actor.Leads)
	h := hunted(t, a)
	h.membership.Roots[entryOf(a).Key()] = true
	a.Kill()
	n := scans(t)
	if err := (Killer{Pause: actor.Patient}).end(h, nil); err != nil || *n != 1 {
		t.Errorf("looked %d times, %v", *n, err)
	}
}

func TestAProcessThatOutlivesKILLIsReportedAlive(t *testing.T) {
	a := actor.Sleeper(t, actor.Leads)
	actor.Undying(t, a)
	var r recorder
	err := r.killer(0).End(process.Job{Owner: idOf(a), FileUID: -1})
	mustStick(t, err, ErrAlive)
	var stuck *process.StuckError
	if errors.As(err, &stuck); stuck.PID != a.PID() || stuck.Command != "sleep" {
		t.Errorf("%v", err)
	}
	if len(r.sent) != 4 || r.to(a.PID()) != "CONT INT TERM KILL" {
		t.Errorf("sent %v", r.sent)
	}
}

func TestAProcessMayDieALittleAfterKILL(t *testing.T) {
	a := actor.Sleeper(t, actor.Leads)
	letGo := actor.Undying(t, a)
	k := Killer{Observe: func(s Signalled) {
		if s.Signal == "KILL" {
			time.AfterFunc(actor.Brief, letGo)
		}
	}}
	mustEndAtOnce(t, k, process.Job{Owner: idOf(a), FileUID: -1})
}

func TestOnlyAGroupThatGrewIsKilledAgainAfterTheLastStage(t *testing.T) {
	t.Run("a group that grew is killed as one, and waited for", func(t *testing.T) {
		a := actor.Sleeper(t, actor.Leads)
		letGo := actor.Undying(t, a)
		h := hunted(t, a)
		h.growing, h.whole, h.membership.Leader = 1, true, entryOf(a).Key()
		k := Killer{Observe: func(s Signalled) {
			check.Equal(t, "sent", s, Signalled{PID: -a.PID(), Signal: "KILL"})
			time.AfterFunc(actor.Brief, letGo)
		}}
		if err := k.outlived(h); err != nil || !gone(a.PID()) {
			t.Errorf("gone %v, %v", gone(a.PID()), err)
		}
	})
	t.Run("a group that did not grow is not killed", func(t *testing.T) {
		a := actor.Sleeper(t, actor.Leads)
		h := hunted(t, a)
		h.whole, h.membership.Leader = true, entryOf(a).Key()
		var r recorder
		mustStick(t, r.killer(0).outlived(h), ErrAlive)
		if len(r.sent) > 0 || gone(a.PID()) {
			t.Errorf("sent %v", r.sent)
		}
	})
	t.Run("the last member has died meanwhile", func(t *testing.T) {
		a := actor.Sleeper(t, actor.Leads)
		h := hunted(t, a)
		a.Kill()
		must.Do(t, (Killer{}).outlived(h))
	})
	t.Run("the process table cannot be read", func(t *testing.T) {
		h := hunted(t, actor.Sleeper(t, actor.Leads))
		enough := actor.FewFiles(t, 0)
		err := Killer{}.outlived(h)
		enough()
		if !errors.Is(err, unix.EMFILE) {
			t.Errorf("got %v", err)
		}
	})
}

func TestAnEndingStopsIfTheProcessTableCannotBeRead(t *testing.T) {
	a := deaf(t, actor.Leads)
	enough := func() {}
	var sent []string
	k := Killer{Pause: actor.Patient, Observe: func(s Signalled) {
		if sent = append(sent, s.Signal); s.Signal == "INT" {
			enough = actor.FewFiles(t, 0)
		}
	}}
	err := k.End(process.Job{Owner: idOf(a), FileUID: -1})
	enough()
	if !errors.Is(err, unix.EMFILE) || strings.Join(sent, " ") != "CONT INT" {
		t.Errorf("sent %v, %v", sent, err)
	}
}

func TestNoStageFollowsOnceALateMemberCannotBeRecorded(t *testing.T) {
	ready := actor.File(t, "ready")
	a := actor.Shell(t, actor.Leads, `trap "" TERM; trap 'trap "" INT; sleep 100 & >"$1.late"' INT; >"$1"; while :; do sleep 0.01; done`, ready)
	actor.Eventually(t, "ready", func() bool { return actor.Exists(ready) })
	var r recorder
	k := r.killer(actor.Patient)
	var recorded []process.Identity
	k.Record = func(members []process.Identity) error {
		if actor.Exists(ready + ".late") {
			return unix.ENOSPC
		}
		recorded = append(recorded, members...)
		return nil
	}
	if err := k.End(process.Job{Owner: idOf(a), FileUID: -1}); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("got %v", err)
	}
	for _, line := range r.sent {
		if strings.HasSuffix(line, "TERM") || strings.HasSuffix(line, "KILL") {
			t.Errorf("sent %v", r.sent)
		}
	}
}

func TestAProcessForkedAfterASignalGetsTheNextSignal(t *testing.T) {
	a := actor.Shell(t, actor.Leads, `trap '(sleep 100 & sleep 100 &)' INT TERM; while :; do sleep 100; done`)
	actor.Eventually(t, "it waits", func() bool { return len(process.Children(a.PID())) > 0 })
	var r recorder
	mustEnd(t, r.killer(actor.Brief), process.Job{Owner: idOf(a), FileUID: -1})
	if n := strings.Count(strings.Join(r.sent, "."), " INT"); n != 2 || r.to(a.PID()) != "CONT INT TERM KILL" {
		t.Errorf("%d processes were sent INT: %v", n, r.sent)
	}
}

func TestForksBeforeKILLDoNotCauseTheGroupToBeKilled(t *testing.T) {
	a := actor.Sleeper(t, actor.Leads)
	h := hunted(t, a)
	h.growing, h.whole, h.membership.Leader = 9, true, entryOf(a).Key()
	grew := -1
	var r recorder
	k := r.killer(actor.Patient)
	k.Record = func([]process.Identity) error { grew = h.growing; return nil }
	if done, err := k.run(h, len(stages)); !done || err != nil || grew != 0 {
		t.Errorf("%d scans found more; done %v, %v", grew, done, err)
	}
	if r.to(a.PID()) != "KILL" || len(r.sent) != 1 {
		t.Errorf("sent %v", r.sent)
	}
}

func TestAMemberGetsOnlyTheSignalsDueAtItsStage(t *testing.T) {
	for _, c := range []struct {
		claim  string
		change func(h *tree, m *member)
		stage  int
		sent   string
		turn   bool
	}{
		{"in the first stage", func(*tree, *member) {}, 1, "CONT INT", false},
		{"in the last stage", func(*tree, *member) {}, 3, "KILL", false},
		{"a member at this stage", func(_ *tree, m *member) { m.stage = 2 }, 2, "", false},
		{"a member at the stage before", func(_ *tree, m *member) { m.stage = 1 }, 2, "TERM", false},
		{"a member that may not be signalled", func(_ *tree, m *member) { m.err = unix.EPERM }, 2, "", false},
		{"a keeper that is not alone", func(h *tree, m *member) { h.keeper = m.Key }, 3, "", false},
		{"a keeper in its grace", func(h *tree, m *member) { h.keeper, h.lonely = m.Key, time.Now() }, 3, "", false},
		{"a keeper whose grace is over", func(h *tree, m *member) { h.keeper, h.lonely = m.Key, time.Now().Add(-keeperGrace) }, 1, "INT", true},
		{"a stopped keeper", func(h *tree, m *member) {
			h.keeper, h.lonely, m.entry.Stopped = m.Key, time.Now().Add(-keeperGrace), true
		}, 1, "CONT INT", true},
		{"a keeper in the last stage", func(h *tree, m *member) { h.keeper, h.lonely = m.Key, time.Now().Add(-keeperGrace) }, 3, "KILL", true},
		{"a supervisor without a job", func(_ *tree, m *member) { m.entry.Command = "adlock: run" }, 1, "CONT INT", false},
	} {
		a := deaf(t, actor.Leads)
		h := hunted(t, a)
		c.change(h, h.order[0])
		before := h.order[0].stage
		var r recorder
		turn, err := r.killer(0).signal(h, c.stage)
		if turn != c.turn || err != nil || r.to(a.PID()) != c.sent {
			t.Errorf("%s: turn %v, sent %v, %v", c.claim, turn, r.sent, err)
		}
		if m := h.members[entryOf(a).Key()]; c.sent != "" && m.stage != c.stage || c.sent == "" && m.stage != before {
			t.Errorf("%s: is in stage %d", c.claim, m.stage)
		}
	}
}

func TestASupervisorWithAJobGetsNoSignalButKILL(t *testing.T) {
	a, b := deaf(t, actor.Leads), deaf(t, actor.Leads)
	h := hunted(t, a, b)
	super, child := h.order[0], h.order[1]
	super.entry.Command, child.entry.Parent = "adlock: run", a.PID()
	if !h.passesOn(super) || h.passesOn(child) {
		t.Error("the process with a job is not the one that passes signals on")
	}
	if child.gone = true; h.passesOn(super) {
		t.Error("its job is over, and it passes signals on")
	}
	if child.gone, child.entry.Parent = false, os.Getpid(); h.passesOn(super) {
		t.Error("another's child is taken for its own")
	}
	child.entry.Parent = a.PID()
	var r recorder
	k := r.killer(0)
	for stage := 1; stage <= len(stages); stage++ {
		if turn, err := k.signal(h, stage); turn || err != nil {
			t.Fatal(turn, err)
		}
	}
	if r.to(a.PID()) != "KILL" || r.to(b.PID()) != "CONT INT TERM KILL" {
		t.Errorf("sent %v", r.sent)
	}
	actor.Eventually(t, "both are dead", func() bool { return len(h.living()) == 0 })
}

func TestAnUndeliveredSignalIsReported(t *testing.T) {
	a := actor.Sleeper(t, syscall.SysProcAttr{})
	h := hunted(t, a)
	m := h.order[0]
	if m.Inode() == 0 {
		need.Skip(t, "no pidfds here")
	}
	m.Close() // a signal through a closed descriptor fails
	var r recorder
	r.killer(0).send(m, unix.SIGTERM)
	stuck := h.obstacle()
	m.Handle = must.Get(process.Hold(m.Key, 0))(t)
	if m.err != unix.EBADF || len(r.sent) > 0 {
		t.Errorf("%v, sent %v", m.err, r.sent)
	}
	mustStick(t, stuck, unix.EBADF)
}
