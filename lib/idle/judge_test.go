package idle

import (
	"errors"
	"strings"
	"testing"
	"time"

	"adlock/lib/process"
)

// A job of one process that is found twice, a minute apart.
func TestASignOfWorkBetweenTwoSamplesIsNamed(t *testing.T) {
	one := Figures{Key: process.Key{PID: 811, Start: 1}, Command: "tar", CPU: time.Hour, Switches: 1000, Calls: 1e9, Disk: 1e9, Faults: 900, Reaped: 70}
	other := Figures{Key: process.Key{PID: 812, Start: 2}, Command: "gzip"}
	changed := func(change func(*Figures)) []Figures {
		m := one
		change(&m)
		return []Figures{m}
	}
	for _, c := range []struct {
		claim  string
		before []Figures
		after  []Figures
		want   string
	}{
		{"nothing at all", []Figures{one}, []Figures{one}, ""},
		{"processor time of a runtime that waits", []Figures{one}, changed(func(m *Figures) { m.CPU += 50 * time.Millisecond }), ""},
		{"and of one that wakes often", []Figures{one}, changed(func(m *Figures) { m.CPU += 150 * time.Millisecond; m.Switches += 1000 }), ""},
		{"a little more", []Figures{one}, changed(func(m *Figures) { m.CPU += 60 * time.Millisecond }), "processor 0.06 s in the last minute"},
		{"more than its switches account for", []Figures{one}, changed(func(m *Figures) { m.CPU += 160 * time.Millisecond; m.Switches += 1000 }), "processor 0.16 s in the last minute"},
		{"switches of a thread that has ended", []Figures{one}, changed(func(m *Figures) { m.CPU += 40 * time.Millisecond; m.Switches = 3 }), ""},
		{"one byte", []Figures{one}, changed(func(m *Figures) { m.Calls++ }), "1 B in the last minute"},
		{"a mapped file", []Figures{one}, changed(func(m *Figures) { m.Disk += 12288 }), "12 kB in the last minute"},
		{"both", []Figures{one}, changed(func(m *Figures) { m.CPU += 400 * time.Millisecond; m.Calls += 12000; m.Disk += 4096 }), "processor 0.40 s, 12 kB in the last minute"},
		{"it runs", []Figures{one}, changed(func(m *Figures) { m.State = "is running" }), "process 811 (tar) is running"},
		{"it runs, and little", []Figures{one}, changed(func(m *Figures) { m.State = "is running"; m.CPU += 10 * time.Millisecond }), "process 811 (tar) is running, processor 0.01 s in the last minute"},
		{"a child between two looks", []Figures{one}, changed(func(m *Figures) { m.Reaped += 90 }), "process 811 (tar) has started another, which has ended"},
		{"page faults of a runtime that waits", []Figures{one}, changed(func(m *Figures) { m.Faults += 6 }), ""},
		{"page faults of a fork", []Figures{one}, changed(func(m *Figures) { m.Faults += 7 }), "process 811 (tar) has forked, or taken memory"},
		{"it ran, and its children leave no trace", []Figures{one}, changed(func(m *Figures) { m.Ignores = true; m.Switches++ }), "process 811 (tar) has run, and ignores SIGCHLD: what it started cannot be known"},
		{"it slept, and its children leave no trace", []Figures{one}, changed(func(m *Figures) { m.Ignores = true }), ""},
		{"a member came", []Figures{one}, []Figures{one, other}, "process 812 (gzip) was started"},
		{"a member went", []Figures{one, other}, []Figures{one}, "process 812 (gzip) has ended"},
		{"another has its pid", []Figures{one}, changed(func(m *Figures) { m.Start++ }), "process 811 (tar) was started"},
		{"it cannot be read", []Figures{one}, changed(func(m *Figures) { *m = Figures{Key: m.Key, Command: "sudo", Err: errors.New("permission denied")} }), "process 811 (sudo) cannot be read: permission denied"},
		{"the second of two works", []Figures{one, other}, []Figures{one, {Key: other.Key, Command: "gzip", Calls: 5e9}}, "5 GB in the last minute"},
	} {
		var j Judge
		if got := j.Look(0, c.before); got != "" {
			t.Errorf("%s: at the first look %q", c.claim, got)
		}
		if got := j.Look(time.Minute, c.after); got != c.want {
			t.Errorf("%s: %q, want %q", c.claim, got, c.want)
		}
	}
}

func TestTheFirstSampleCanAlreadyShowWork(t *testing.T) {
	for _, m := range []Figures{{State: "is stopped"}, {Err: errors.New("no")}} {
		if got := new(Judge).Look(0, []Figures{m}); got == "" {
			t.Errorf("%+v is idle", m)
		}
	}
}

// A process may take its spare time anew each minute, and never more than that within a minute.
func TestProcessorTimeIsJudgedByTheMinute(t *testing.T) {
	var j Judge
	m := Figures{Key: process.Key{PID: 7}}
	for at := time.Duration(0); at < time.Hour; at += 10 * time.Second {
		if got := j.Look(at, []Figures{m}); got != "" {
			t.Fatalf("at %s: %s", at, got)
		}
		m.CPU += 8 * time.Millisecond
	}
	m.CPU += 100 * time.Millisecond
	if got := j.Look(time.Hour, []Figures{m}); !strings.HasPrefix(got, "processor ") {
		t.Errorf("work is %q", got)
	}
	j = Judge{}
	m.CPU = 0
	j.Look(0, []Figures{m})
	m.CPU = 240 * time.Millisecond
	if got := j.Look(5*time.Minute, []Figures{m}); got != "" {
		t.Errorf("five minutes between two looks allow five times as much: %s", got)
	}
}

func TestAWatchLastsAsLongAsATypicalRunWithinBounds(t *testing.T) {
	for typical, want := range map[time.Duration]time.Duration{0: time.Minute, time.Second: time.Minute, 5 * time.Minute: 5 * time.Minute, 30 * time.Hour: time.Hour} {
		if got := Length(typical); got != want {
			t.Errorf("runs of %s are watched for %s", typical, got)
		}
	}
}
