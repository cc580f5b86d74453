// Package record is the format of an atom's files, and of what a store keeps. An active lock has a record, to
// which lines are appended; a last lock has a memory.
package record

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"adlock/lib/atom"
	"adlock/lib/policy"
	"adlock/lib/process"
)

const format = "1"

// Record is the content of an active lock: its owner, and the owner's terms.
//
// Another version of adlock may ask for the same atom, as during an upgrade. So unknown keys are skipped, and the key
// of a new field may be missing. Lines 1 and 2, which shells read, and the line end= stay as they are. Raise format
// only if a reader that does not know a new field would do harm: that reader treats the lock as damaged.
type Record struct {
	Owner process.Identity // the process that holds the lock; once it is dead, what is left of its job holds the lock
	Job   process.Identity // on a terminal: the gate, which becomes the command once it is recorded here; PID 0: none
	Token string           // names this acquisition
	Atom  atom.Atom        // zero: unknown, in a lock that a verb holds for a moment (tune --reset, clear --last)
	Node  string           // the node name of the owner's machine; "": the atom's host

	File        uint64        // the inode of the lock's file, which a copy of the file does not have; 0: not known
	Monotonic   time.Duration // when the lock was made, on the clock that stands still while the machine sleeps
	Boottime    time.Duration // likewise, on the clock that counts sleep
	Asked       time.Duration // how long before Boottime the run was asked for (wait and jitter)
	IfElapsed   time.Duration // what the owner asked for; only for display
	ExpireAfter time.Duration // what the owner asked for
	Source      policy.Source // of ExpireAfter; policy.None: the owner set none
	Notice      time.Duration // the age at which the run is overdue, set by the owner; 0: none

	Replaces   bool          // the owner preempted a run; the last lock is to record when this run was asked for
	Supervised bool          // the owner is `adlock run`, which forwards signals to its job
	Patience   time.Duration // how long after ExpireAfter newcomers let the owner end its job itself
	FromStart  bool          // the last lock is to record the start of this run
	Learn      bool          // the atom's limits are learned from this run
	Shared     bool          // the owner is a reader: other readers may hold the atom at the same time
	Slots      int           // the limit under which the owner also took a slot; 0: the owner took none
}

// Bytes returns the record as written in the file. Line 1 is the pid alone, as in shlock and the 1997 paper.
// Line 2 is the token, which a shell reads there; key=value lines follow.
func (r Record) Bytes() []byte {
	return append([]byte(strconv.Itoa(r.Owner.PID)+"\n"), Write(r.lines)...)
}

// MarshalText returns what Bytes does, and nothing if there is no owner.
func (r Record) MarshalText() ([]byte, error) {
	if r.Owner.PID == 0 {
		return nil, nil
	}
	return r.Bytes(), nil
}

func (r *Record) UnmarshalText(text []byte) error {
	var content Content
	if *r, _, content = ParseAll(text); content != Full && content != Empty {
		return errFormat
	}
	return nil
}

// lines names the keys of the lines after the pid. An optional line that would say nothing is left out.
func (r *Record) lines(l *Lines) {
	l.Text("token", &r.Token)
	l.failed = l.line("format", format) != format || l.failed
	l.atom(&r.Atom)
	l.identity("", &r.Owner)
	if l.has("node", r.Node != "" && r.Node != r.Atom.Host) {
		l.Quoted("node", &r.Node)
	}
	Optional(l, "image", &r.Owner.Image, l.uint)
	if l.has("job.pid", r.Job.PID != 0) {
		l.int("job.pid", &r.Job.PID)
		l.failed = l.failed || r.Job.PID == 0 // not a process
		l.identity("job.", &r.Job)
	}
	Optional(l, "file", &r.File, l.uint)
	l.Duration("monotonic", &r.Monotonic)
	l.Duration("boottime", &r.Boottime)
	if l.has("asked", r.Asked > 0) {
		l.Duration("asked", &r.Asked)
		r.Asked = max(0, r.Asked)
	}
	l.limit("if_elapsed", &r.IfElapsed)
	l.limit("expire_after", &r.ExpireAfter)
	Optional(l, "expire_after_from", (*string)(&r.Source), l.Text)
	Optional(l, "notice", &r.Notice, l.limit)
	l.Flag("replaces", &r.Replaces)
	l.Flag("supervised", &r.Supervised)
	l.Flag("from_start", &r.FromStart)
	l.Flag("shared", &r.Shared)
	l.Flag("learn", &r.Learn)
	Optional(l, "patience", &r.Patience, l.Duration)
	Optional(l, "slots", &r.Slots, l.int)
	l.line("end", "")
}

// Content is what an active lock was found to contain.
type Content int

const (
	Full    Content = iota // a record of adlock
	PIDOnly                // a pid and nothing else, as shlock writes
	Empty                  // nothing: made by another tool, or on a full disk
	Damaged                // anything else, or cut short: replaced only if from before this boot (lockfile.Active.Wrecked)
)

// ParseAll reads the content of an active lock. A record cut short is Damaged: a pid that has lost its end
// is another process's. But the content is PIDOnly if exactly the first line is left, and Empty if nothing is left.
func ParseAll(content []byte) (Record, Appended, Content) {
	head, tail := Split(content)
	record, kind := parseRecord(head)
	appended, ok := parseAppended(tail, record.Owner)
	if !ok {
		return Record{}, Appended{}, Damaged
	}
	return record, appended, kind
}

// Split divides the content of a lock after the line that ends the record; without that line, rest is nil.
func Split(content []byte) (record, rest []byte) {
	const end = "\nend=\n"
	if at := bytes.Index(content, []byte(end)); at >= 0 {
		return content[:at+len(end)], content[at+len(end):]
	}
	return content, nil
}

func parseRecord(content []byte) (Record, Content) {
	if len(content) == 0 {
		return Record{}, Empty
	}
	first, rest, whole := strings.Cut(string(content), "\n")
	pid, err := strconv.ParseInt(strings.Trim(first, " \t"), 10, 32)
	if err != nil || pid <= 0 || !whole {
		return Record{}, Damaged
	}
	record := Record{Owner: process.Identity{PID: int(pid)}}
	if rest == "" {
		return record, PIDOnly
	}
	if _, ok := Read([]byte(rest), record.lines); !ok {
		return Record{}, Damaged
	}
	return record, Full
}

// Age returns how long the lock has existed while the machine was awake: a laptop that wakes up must not end
// last night's job. If the owner had another clock (machine, boot, time namespace), known is false.
func (r Record) Age() (age time.Duration, known bool) {
	here := process.Here()
	known = r.Owner.Boot != "" && r.Owner.Boot == here.Boot && r.Owner.TimeNS == here.TimeNS
	return r.Held(), known
}

// Start returns when the run was asked for. It returns the zero Start if the system shows no boot id: no other
// process could compare it.
func (r Record) Start() Start {
	if r.Owner.BootID() == "" {
		return Start{}
	}
	return Start{Boottime: r.Boottime - r.Asked, boot: r.Owner.Boot, timeNS: r.Owner.TimeNS}
}

// Lock returns the lock that has this record or, if the record is a slot's, the lock for which the slot was taken.
func (r Record) Lock() atom.File {
	if r.Shared {
		return atom.File{Kind: atom.ReaderLock, Name: r.Atom.Name(), Number: r.Owner.PID}
	}
	return atom.File{Kind: atom.ActiveLock, Name: r.Atom.Name()}
}

// Held returns the age of a lock whose owner has the clock of this process.
func (r Record) Held() time.Duration { return process.Monotonic() - r.Monotonic }

// Slept returns how long the machine has slept since the lock was made; 0 if that is not known.
func (r Record) Slept() time.Duration {
	if _, known := r.Age(); !known {
		return 0
	}
	return max(0, process.Boottime()-r.Boottime-r.Held())
}

// KnownJob returns the job as the record names it. uid is the user who owns the lock's file; -1: there is no file.
func (r Record) KnownJob(uid int) process.Job {
	return process.Job{Owner: r.Owner, Command: r.Job, FileUID: uid, Supervised: r.Supervised, Token: r.Token, Taken: r.Boottime}
}
