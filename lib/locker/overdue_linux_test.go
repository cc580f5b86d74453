package locker

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/limit"
	"adlock/lib/policy"
	"adlock/lib/process"
	"adlock/lib/record"
	"adlock/lib/runlog"
	"adlock/lib/sysfile"
	"adlock/test/support/helper"
	"adlock/test/support/must"
	"adlock/test/support/need"

	"golang.org/x/sys/unix"
)

var backup = atom.Atom{Program: "adlock", Host: "dax", Operator: "run", Operand: "backup"}

// recording returns a Recorder with an empty runlog.
func recording(t *testing.T) Recorder {
	return Recorder{Log: &runlog.Log{Dir: t.TempDir(), Host: "dax"}}
}

// ran logs n successful runs of an atom.
func ran(t *testing.T, rec Recorder, a atom.Atom, n int, took time.Duration) {
	t.Helper()
	for range n {
		e := event(runlog.Release, a, 7)
		e.Duration, e.Status = runlog.Some(took), runlog.Some(0)
		must.Do(t, rec.Log.Append(e))
	}
}

// owned is a lock without a limit whose owner has run for that long.
func owned(age time.Duration) View {
	return View{
		Record: record.Record{Atom: backup, Owner: process.Identity{PID: 4711}, Token: "t1", ExpireAfter: limit.Never},
		Active: policy.Active{Held: true, Age: age, Owner: policy.Lives},
	}
}

// prints is what a newcomer prints if the lock in v denies it the atom.
func prints(t *testing.T, rec Recorder, r *Request, v View) string {
	t.Helper()
	r.Atom, r.Owner.PID, r.calm = backup, 8, nil
	o := r.Denied(policy.Decide(r.Terms(), policy.Situation{Active: v.Active}), &v)
	return helper.Stderr(t, func() {
		rec.SeeOverdue(r, &o)
		rec.LogIfDenied(r, o, nil, 0)
	})
}

func TestAnOwnerIsReportedAtItsNoticeAndAtMostOnceADay(t *testing.T) {
	rec, r := recording(t), NewRequest()
	ran(t, rec, backup, 10, 30*time.Minute) // so the learned notice is 1h40m
	for _, c := range []struct {
		age  time.Duration
		told bool
	}{
		{time.Hour, false}, {100 * time.Minute, true}, {101 * time.Minute, false}, {4 * time.Hour, false}, {25 * time.Hour, false},
		{26 * time.Hour, true}, {27 * time.Hour, false}, {51 * time.Hour, false}, {52 * time.Hour, true},
	} {
		if said := prints(t, rec, &r, owned(c.age)); (said != "") != c.told {
			t.Errorf("after %v: %q", c.age, said)
		}
	}
	other := owned(100 * time.Minute)
	other.Record.Token = "t2"
	if prints(t, rec, &r, other) == "" {
		t.Error("the next owner is not reported")
	}
}

func TestAWaiterReportsEachOverdueOwnerInTurn(t *testing.T) {
	rec, r := recording(t), NewRequest()
	ran(t, rec, backup, 10, 30*time.Minute)
	r.Atom, r.Owner.PID = backup, 8
	sees := func(v View) string {
		o := r.Denied(policy.Decide(r.Terms(), policy.Situation{Active: v.Active}), &v)
		return helper.Stderr(t, func() { rec.SeeOverdue(&r, &o) })
	}
	if sees(owned(3*time.Hour)) == "" {
		t.Error("the first owner is not reported")
	}
	next := owned(100 * time.Minute)
	next.Record.Token = "t2"
	if sees(next) == "" {
		t.Error("the next owner is not reported")
	}
}

// If a job that starts every minute hangs, the runlog fills with denials.
func TestManyDenialsReportAnOverdueOwnerOnce(t *testing.T) {
	rec, r := recording(t), NewRequest()
	rec.Log.Max = 1 << 30
	if prints(t, rec, &r, owned(3*time.Hour)) == "" {
		t.Fatal("the owner is not reported")
	}
	noise := event(runlog.Acquire, backup, 9)
	noise.Operand, noise.Reason = "other", strings.Repeat("x", noticeBytes/40)
	for i := range 80 {
		if said := prints(t, rec, &r, owned(3*time.Hour+time.Duration(i)*time.Minute)); said != "" {
			t.Fatalf("at denial %d: %q", i, said)
		}
		must.Do(t, rec.Log.Append(noise))
	}
}

func TestAForgottenPauseIsReportedWhenItsAgeHasDoubled(t *testing.T) {
	age, name := 30*time.Hour, string(backup.Name())
	told := func(name string, at, from time.Duration) string {
		return fmt.Sprintf("%s %d %s\n", name, time.Now().Add(from-age).Unix(), at)
	}
	for claim, c := range map[string]struct {
		host bool
		told string
		want bool
	}{
		"the first denial":             {true, "", true},
		"its age has doubled":          {false, told(name, 14*time.Hour, 0), true},
		"its age has not doubled":      {false, told("other", 14*time.Hour, 0) + told(name, 26*time.Hour, 0), false},
		"of the host, by another atom": {true, told("*dax", 26*time.Hour, time.Minute), false},
		"not of the host":              {true, told(name, 26*time.Hour, 0), true},
		"another atom is paused":       {false, told("other", 26*time.Hour, 0), true},
		"a line was cut short":         {false, told("other", 26*time.Hour, 0)[:9], true},
		"of an earlier pause":          {true, told("*dax", 26*time.Hour, -9*time.Hour), true},
	} {
		rec, r := recording(t), NewRequest()
		r.Atom = backup
		must.Do(t, os.WriteFile(rec.Log.Dir+"/told.pause", []byte(c.told), 0o600))
		o := Outcome{Verdict: Paused, inWay: View{Pause: policy.Pause{On: true, Age: age, Left: limit.Never, Host: c.host}}}
		for i, want := range []bool{c.want, false} {
			if said := helper.Stderr(t, func() { rec.LogIfDenied(&r, o, nil, 0) }); (said != "") != want {
				t.Errorf("%s, denial %d: %q", claim, i+1, said)
			}
		}
	}
	rec, right := recording(t), make(chan bool)
	must.Do(t, unix.Mkfifo(rec.Log.Dir+"/told.pause", 0o600))
	if !rec.isNews(backup.Name(), policy.Pause{Age: age}) {
		t.Error("a FIFO has told of the pause")
	}
	must.Do(t, os.Remove(rec.Log.Dir+"/told.pause"))
	for _, news := range []bool{true, false} { // the pauses of many atoms at once
		for n := range 20 {
			go func() { right <- rec.isNews(atom.Name(strconv.Itoa(n)), policy.Pause{Age: age}) == news }()
		}
		for range 20 {
			if !<-right {
				t.Errorf("news: %v", !news)
			}
		}
	}
}

// stop is the remedy for a lock that the reader of the message has in its own lock directory.
func stop(name string) string {
	text := "to end it: adlock stop " + name
	if uid := os.Getuid(); uid != 0 {
		text += " (as the user " + sysfile.UserName(uid) + ")"
	}
	return text
}

func TestTheRemedyNamesTheLockThatIsInTheWay(t *testing.T) {
	rec, v := Recorder{Log: &runlog.Log{Locks: "/srv/o'neil"}}, owned(3*time.Hour)
	unchecked := v
	unchecked.Active.Owner = policy.Unknown
	reader := v
	reader.Record.Shared = true
	for want, v := range map[string]View{
		`adlock stop '/srv/o'\''neil/lock.adlock.dax.run.backup'`:      v,
		`adlock clear '/srv/o'\''neil/lock.adlock.dax.run.backup'`:     unchecked,
		`adlock stop '/srv/o'\''neil/read.adlock.dax.run.backup.4711'`: reader,
	} {
		if told := rec.Remedy(&Overdue{View: v}, true); !strings.Contains(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
	}
	if told := (Recorder{}).Remedy(&Overdue{View: reader}, true); !strings.Contains(told, "adlock stop read.adlock.dax.run.backup.4711") {
		t.Errorf("for a reader: %q", told)
	}
}

func TestAReportOfAnOverdueOwnerNamesARemedy(t *testing.T) {
	stops := stop("adlock.dax.run.backup")
	limits := "; a limit would: --expire-after (ADLOCK_EXPIRE_AFTER)"
	ends := "; if it is healthy: --notice 7h (ADLOCK_NOTICE); " + stops + limits
	with := func(change func(*View)) View { v := owned(3 * time.Hour); change(&v); return v }
	for _, c := range []struct {
		claim string
		known int
		v     View
		want  string
	}{
		{"runs are known", 9, owned(3 * time.Hour), "overdue: process 4711 has run for 3h, its runs take 4m (9 known)" + ends},
		{"no runs are known", 0, owned(3 * time.Hour), "overdue: process 4711 has run for 3h, and how long its runs take is not known" + ends},
		{"its own notice", 9, with(func(v *View) { v.Record.Notice = time.Hour }), "overdue: process 4711 has run for 3h, its notice is 1h; " + stops + limits},
		{"a survivor", 9, with(func(v *View) { v.Active.Owner = policy.Orphaned }), "overdue: the job of process 4711, which is dead, has run for 3h, its runs take 4m (9 known)" + ends},
		{"an owner that cannot be checked", 9, with(func(v *View) { v.Active.Owner = policy.Unknown }),
			"overdue: process 4711 has run for 3h, its runs take 4m (9 known); if you know that it is dead: adlock clear adlock.dax.run.backup"},
		{"another machine's", 9, with(func(v *View) { v.Node = "web1" }),
			"overdue: process 4711 on web1 has run for 3h, its runs take 4m (9 known); a limit ends it: --expire-after (ADLOCK_EXPIRE_AFTER)"},
		{"one that a limit ends", 9, with(func(v *View) {
			v.Node, v.Record.Notice, v.Active.Asked, v.Active.Source = "web1", time.Hour, 9*time.Hour, policy.Said
		}),
			"overdue: process 4711 on web1 has run for 3h, its notice is 1h; to end it: adlock run --replace --host 'dax' --program 'adlock' --operator 'run' --name 'backup' -- true"},
	} {
		rec, r := recording(t), NewRequest()
		ran(t, rec, backup, c.known, 4*time.Minute)
		if said := prints(t, rec, &r, c.v); said != "adlock: run backup: "+c.want+"\n" {
			t.Errorf("%s: said\n%s want\n%s", c.claim, said, c.want)
		}
	}
}

func TestAnOwnerIsReportedOnlyAfterItsNoticeHasPassed(t *testing.T) {
	limited := NewRequest()
	limited.Limits = policy.Limits{ExpireAfter: 5 * time.Hour, Source: policy.Said}
	silent, early := NewRequest(), NewRequest()
	silent.Notice, early.Notice = limit.Never, time.Minute
	asked := owned(3 * time.Hour)
	asked.Active.Asked, asked.Active.Source = 5*time.Hour, policy.Said
	plain := NewRequest()
	for _, c := range []struct {
		claim string
		r     Request
		v     View
		told  bool
	}{
		{"the newcomer's limit", limited, owned(3 * time.Hour), false},
		{"the owner's limit", plain, asked, false},
		{"a notice of never", silent, owned(3 * time.Hour), false},
		{"a notice that has passed", early, owned(2 * time.Minute), true},
		{"a notice that has not", early, owned(time.Second), false},
		{"a young owner", plain, owned(14 * time.Minute), false},
		{"two hours are not over, and nothing is known", plain, owned(119 * time.Minute), false},
		{"two hours are", plain, owned(2 * time.Hour), true},
	} {
		if said := prints(t, recording(t), &c.r, c.v); (said != "") != c.told {
			t.Errorf("%s: %q", c.claim, said)
		}
	}
}

func TestASlotsHolderIsOverdueByTheNoticeOfItsOwnAtom(t *testing.T) {
	rec, r := recording(t), NewRequest()
	r.Slots, r.Atom, r.Owner.PID = 1, backup, 8
	holder, young := owned(20*time.Minute), owned(-time.Minute) // by the clock of a pass
	holder.Record.Atom.Operand = "other"
	ran(t, rec, holder.Record.Atom, 9, time.Minute)
	ran(t, rec, backup, 9, 10*time.Hour)
	o := r.Full()
	r.TakenBy(&o, &young)
	known := o.inWay.Record.Owner.PID != 0
	r.TakenBy(&o, &holder)
	r.TakenBy(&o, &young)
	o.inWay.Active.Asked, o.inWay.Active.Source = 15*time.Minute, policy.Said
	o.inWay.Active.Patience = 10 * time.Minute
	if soon := rec.FindOverdue(&r, &o); soon != nil {
		t.Errorf("reported before its own limit has passed: %s", soon.Text())
	}
	o.inWay.Active.Patience, r.calm = 0, nil // this limit has not ended it
	said := helper.Stderr(t, func() { rec.SeeOverdue(&r, &o) })
	want := "adlock: run backup: run other is overdue: process 4711 has run for 20m, its runs take 1m (9 known); " + stop("adlock.dax.run.other") + "\n"
	if said != want || !known {
		t.Errorf("said %q, want %q; the young holder is known: %v", said, want, known)
	}
	holder.Node = "web1" // in a store
	if told := rec.Remedy(&Overdue{View: holder}, false); !strings.HasPrefix(told, "to end it: adlock run --replace") {
		t.Errorf("told %q", told)
	}
}

func TestForeseeReturnsBusyIfANonOwnerChangesTheLock(t *testing.T) {
	for changer, want := range map[int]policy.Step{4711: policy.Reclaim, 8: policy.Busy} {
		v := View{Changer: changer, Record: owned(time.Hour).Record}
		if d := v.Foresee(policy.Decision{Step: policy.Reclaim}); d.Step != want {
			t.Errorf("process %d changes the lock: %+v", changer, d)
		}
	}
}

func TestASupervisorLogsItsOverdueRunAndChecksAgainLater(t *testing.T) {
	rec, r := recording(t), NewRequest()
	r.Atom, r.Owner.PID = backup, 4711
	for age, next := range map[time.Duration]time.Duration{
		15 * time.Minute: 30 * time.Minute, 119 * time.Minute: 134 * time.Minute, 2 * time.Hour: 26 * time.Hour, 48 * time.Hour: 96 * time.Hour,
	} {
		if got := rec.OwnOverdue(&r, "t1", age); got != next {
			t.Errorf("after %v it asks again at %v, want %v", age, got, next)
		}
	}
	n := 0
	for e := range rec.Log.Newest(1 << 20) {
		if e.Kind == runlog.Overdue && e.PID == e.Owner && e.OwnerToken == "t1" {
			n++
		}
	}
	if n != 2 {
		t.Errorf("%d reports are logged, want 2", n)
	}
	newcomer := NewRequest()
	if said := prints(t, rec, &newcomer, owned(49*time.Hour)); said == "" {
		t.Error("a newcomer that is denied says nothing")
	}
}

func TestNoLimitIsAdvisedForAnOwnerPastItsLearnedLimit(t *testing.T) {
	rec, r := recording(t), NewRequest()
	ran(t, rec, backup, 9, 15*time.Second)
	v := owned(29 * time.Minute)
	found := rec.Overdue(policy.Limits{ExpireAfter: 15 * time.Minute, Source: policy.Learned}, v, r.Notice)
	if found == nil {
		t.Fatal("it is not overdue")
	}
	want := "overdue: process 4711 has run for 29m, its runs take 15s (9 known), its learned limit is 15m; " +
		"if it is healthy: --notice 1h (ADLOCK_NOTICE); " + stop("adlock.dax.run.backup")
	if said := found.Text() + "; " + rec.Remedy(found, true); said != want {
		t.Errorf("said\n%s want\n%s", said, want)
	}
}

// An unreachable store is reported at doubled ages, whichever job starts. A reported event has an age.
func TestAnUnreachableStoreIsReportedAtDoubledAges(t *testing.T) {
	rec, now := recording(t), time.Now()
	rec.Log.Store = "etcd://a:2379/prod"
	ago := func(minutes int, e runlog.Event) {
		t.Helper()
		e.Time, e.Program, e.Store = now.Add(-time.Duration(minutes)*time.Minute), "p", rec.Log.Store
		must.Do(t, rec.Log.Append(e))
	}
	away := func(age ...time.Duration) runlog.Event {
		e := runlog.Event{Kind: runlog.NotRun, Status: runlog.Some(69)}
		if len(age) > 0 {
			e.Age = runlog.Some(age[0])
		}
		return e
	}
	asks := func(why string, kind fault.Kind, want time.Duration, told bool) {
		t.Helper()
		helper.Stderr(t, func() {
			r := NewRequest()
			r.Atom = backup
			if err := rec.NotRun(&r, "", Outcome{}, fault.New(kind, rec.Log.Store, "connection refused")); fault.KindOf(err) != kind {
				t.Errorf("%s: %v", why, err)
			}
		})
		for e := range rec.Log.Newest(1 << 20) {
			if e.Kind != runlog.NotRun || e.Operand != "backup" {
				t.Fatalf("%s: the newest event is %+v", why, e)
			}
			if e.Age.Set != told || e.Age.Value.Round(time.Minute) != want {
				t.Errorf("%s: reported: %v, after %v", why, e.Age.Set, e.Age.Value)
			}
			break
		}
	}
	ago(200, runlog.Event{Kind: runlog.Release})
	asks("the first", fault.Unavailable, 0, true)
	asks("the next start", fault.Unavailable, 0, false)
	asks("another reason", fault.NotPermitted, 0, true)

	ago(190, runlog.Event{Kind: runlog.Acquire})
	ago(100, away(0))
	ago(50, away())
	asks("after an hour", fault.Unavailable, 100*time.Minute, true)
	ago(45, away(100*time.Minute))
	asks("before the doubling", fault.Unavailable, 0, false)
	ago(110, away(100*time.Minute))
	asks("after the doubling", fault.Unavailable, 210*time.Minute, true)

	ago(0, runlog.Event{Kind: runlog.Deny, Verdict: string(Paused)}) // the store was not asked
	asks("during a pause", fault.Unavailable, 0, false)
	ago(0, runlog.Event{Kind: runlog.Deny, Verdict: string(Busy)})
	asks("after it answered", fault.Unavailable, 0, true)
}

func TestOnlyTheFirstJobOfAMinuteReportsAnUnreachableStore(t *testing.T) {
	for age, others := range map[time.Duration]bool{0: true, time.Minute: false} {
		rec := recording(t)
		rec.Log.Store = "etcd://a:2379/prod"
		first := runlog.Event{Kind: runlog.NotRun, Program: "p", PID: 7, Store: rec.Log.Store, Status: runlog.Some(69), Age: runlog.Some[time.Duration](0)}
		second := first
		second.PID, first.Time = 8, time.Now().Add(-age)
		must.Do(t, errors.Join(rec.Log.Append(first), rec.Log.Append(second)))
		if rec.othersTold(first) || rec.othersTold(second) != others {
			t.Errorf("%v apart, the first leaves it to another: %v, the second: %v", age, rec.othersTold(first), rec.othersTold(second))
		}
	}
}

func TestEachJobReportsTroubleWithItsLockDirectory(t *testing.T) {
	rec, e := recording(t), runlog.Event{Kind: runlog.NotRun, Status: runlog.Some(74)}
	must.Do(t, rec.Log.Append(e))
	if age, due := rec.awayFor(e); age.Set || !due || rec.othersTold(e) {
		t.Errorf("%v, %v", age, due)
	}
}

func TestOnlyAFileThatOnlyRootMayWritePausesTheHost(t *testing.T) {
	need.Root(t)
	PauseFile = filepath.Join(t.TempDir(), "adlock.pause")
	whole := string(record.NewPause(time.Hour, "").Bytes())
	for claim, c := range map[string]struct {
		text    string
		mode    os.FileMode
		uid     int
		on, bad bool
	}{
		"root's":                    {whole, 0o644, 0, true, false},
		"root's, of its user alone": {whole, 0o600, 0, true, false},
		"another user's":            {whole, 0o644, 1, false, true},
		"writable by a group":       {whole, 0o664, 0, false, true},
		"of an unknown format":      {"", 0o644, 0, false, true},
		"over":                      {string(pastPause().Bytes()), 0o644, 0, false, false},
	} {
		must.Do(t, os.WriteFile(PauseFile, []byte(c.text), 0o600))
		must.Do(t, os.Chmod(PauseFile, c.mode))
		must.Do(t, os.Chown(PauseFile, c.uid, -1))
		p, err := HostPause()
		if p.On != c.on || (fault.KindOf(err) == fault.NotPermitted) != c.bad || (err != nil) != c.bad {
			t.Errorf("%s: %+v, %v", claim, p, err)
		}
		must.Do(t, os.Remove(PauseFile))
	}
	if p, err := HostPause(); p.On || err != nil {
		t.Errorf("none: %+v, %v", p, err)
	}
	must.Do(t, os.Symlink("/etc/passwd", PauseFile))
	if p, err := HostPause(); p.On || err == nil {
		t.Errorf("a link: %+v, %v", p, err)
	}
}

func pastPause() record.Pause {
	p := record.NewPause(time.Nanosecond, "")
	time.Sleep(time.Microsecond)
	return p
}
