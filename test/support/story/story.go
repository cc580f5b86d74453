// Package story makes runlogs for tests of their readers.
package story

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"adlock/lib/atom"
	"adlock/lib/runlog"
)

// Host is where every story happens.
const Host = "dax"

// Midnight is when every story begins: at the start of 20 November 2026, UTC.
var Midnight = time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)

// Story is a list of events.
type Story struct{ events []runlog.Event }

// Job is one atom of a story with its limits.
type Job struct {
	story                  *Story
	atom                   atom.Atom
	ifElapsed, expireAfter time.Duration
	runs                   int
}

// Job adds an atom, "program operator operand".
func (s *Story) Job(words string, ifElapsed, expireAfter time.Duration) *Job {
	parts := strings.SplitN(words, " ", 3)
	a := atom.Atom{Program: parts[0], Host: Host, Operator: parts[1], Operand: parts[2]}
	return &Job{story: s, atom: a, ifElapsed: ifElapsed, expireAfter: expireAfter}
}

// Events are the events in the order of their times.
func (s *Story) Events() iter.Seq2[runlog.Event, error] {
	slices.SortStableFunc(s.events, func(a, b runlog.Event) int { return a.Time.Compare(b.Time) })
	return func(yield func(runlog.Event, error) bool) {
		for _, e := range s.events {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// Write appends the story to the runlog in the directory dir.
func (s *Story) Write(dir string) error {
	log := runlog.Log{Dir: dir, Host: Host, Max: 1 << 40}
	for e := range s.Events() {
		if err := log.Append(e); err != nil {
			return err
		}
	}
	return nil
}

// Add adds an event, with the job's atom and the time Midnight + at.
func (j *Job) Add(at time.Duration, e runlog.Event) {
	e.Time = Midnight.Add(at)
	e.Program, e.Host, e.Operator, e.Operand = j.atom.Program, j.atom.Host, j.atom.Operator, j.atom.Operand
	j.story.events = append(j.story.events, e)
}

// PID is the owner of the job's latest run.
func (j *Job) PID() int { return 1000 + j.runs }

// Token is the token of the job's latest run.
func (j *Job) Token() string { return fmt.Sprintf("%s-%d", j.atom.Operand, j.runs) }

// Open adds a run that has no end.
func (j *Job) Open(at time.Duration) {
	j.runs++
	j.Add(at, runlog.Event{Kind: runlog.Acquire, PID: j.PID(), Token: j.Token(), IfElapsed: runlog.Some(j.ifElapsed), ExpireAfter: runlog.Some(j.expireAfter), ExpireAfterFrom: "said"})
}

// Run adds a run that takes that long and exits with the status.
func (j *Job) Run(at, takes time.Duration, status int) {
	j.Open(at)
	j.Add(at+takes, runlog.Event{Kind: runlog.Release, PID: j.PID(), Token: j.Token(), Duration: runlog.Some(takes), Status: runlog.Some(status)})
}

// Hang adds a run that a newcomer ends by force after that long.
func (j *Job) Hang(at, takes time.Duration, by int) {
	j.Open(at)
	found := runlog.Event{PID: by, Owner: j.PID(), OwnerToken: j.Token(), Age: runlog.Some(takes), IfElapsed: runlog.Some(j.ifElapsed), ExpireAfter: runlog.Some(j.expireAfter), ExpireAfterFrom: "said"}
	for i, kind := range []runlog.Kind{runlog.Expire, runlog.Signal, runlog.Takeover} {
		found.Kind, found.Signal, found.Target = kind, "", 0
		if kind == runlog.Signal {
			found.Signal, found.Target = "INT", j.PID()
		}
		j.Add(at+takes+time.Duration(i)*time.Millisecond, found)
	}
}

// Die adds a run whose owner dies, and is found dead after that long.
func (j *Job) Die(at, found time.Duration, by int) {
	j.Open(at)
	j.Add(at+found, runlog.Event{Kind: runlog.Reclaim, PID: by, Owner: j.PID(), OwnerToken: j.Token(), Age: runlog.Some(found)})
}

// Deny adds n denied requests, one each time that every has passed.
func (j *Job) Deny(at time.Duration, verdict string, n int, every time.Duration) {
	kind := runlog.Deny
	if verdict == "stuck" {
		kind = runlog.Stuck
	}
	for i := range n {
		j.Add(at+time.Duration(i)*every, runlog.Event{Kind: kind, PID: 9000 + i, Verdict: verdict, IfElapsed: runlog.Some(j.ifElapsed), ExpireAfter: runlog.Some(j.expireAfter), ExpireAfterFrom: "said"})
	}
}

// Day is a day of four jobs that has some of everything.
func Day() *Story {
	s := &Story{}
	backup := s.Job("backup run /srv/data", time.Hour, 90*time.Minute)
	for hour := range 23 {
		at := time.Duration(hour) * time.Hour
		switch hour {
		case 9:
			backup.Hang(at, 2*time.Hour, 4711)
			backup.Deny(at+10*time.Minute, "busy", 7, 10*time.Minute)
		case 10:
		case 15:
			backup.Run(at, 12*time.Minute, 23)
		default:
			backup.Run(at, time.Duration(10+hour%5*4)*time.Minute, 0)
		}
	}
	sync := s.Job("rsync copy mirror <a&b>", 15*time.Minute, 40*time.Minute)
	for i := range 5 {
		sync.Hang(time.Duration(i)*4*time.Hour, 40*time.Minute, 5000+i)
	}
	sync.Open(23 * time.Hour)
	spam := s.Job("agent poll status", 15*time.Minute, 5*time.Minute)
	for i := range 90 {
		spam.Run(time.Duration(i)*16*time.Minute, 3*time.Second, 0)
	}
	spam.Deny(6*time.Hour+time.Minute, "too-soon", 1000, 10*time.Second)
	slots := s.Job("render run frame 7", 0, 2*time.Hour)
	slots.Run(2*time.Hour, 40*time.Minute, 0)
	slots.Deny(4*time.Hour, "full", 12, 10*time.Minute)
	slots.Die(8*time.Hour, 3*time.Hour, 6001)
	slots.Run(11*time.Hour, 50*time.Minute, 0)
	slots.Deny(20*time.Hour, "stuck", 1, time.Minute)
	return s
}
