// Package record is the format of an atom's files: the record of an active lock with what was
// appended to it, and the memory of a last lock. lockdir/lockfile keeps them in files; a store
// (package lease) keeps the same text.
package record

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"adlock/lib/atom"
	"adlock/lib/limit"
	"adlock/lib/policy"
	"adlock/lib/process"
)

// format is the version of the record; a record with another number is not read.
const format = "1"

// Record is the content of an active lock: its owner, and the owner's terms.
//
// An older and a newer adlock may ask for the same atom, as after an upgrade. So unknown keys are
// skipped. The key of a new field may be missing, which means the behaviour from before the field
// existed; Bytes omits the key in that case. Lines 1 and 2, which shells read, and the line end=
// stay as they are. Raise format only if an older adlock would otherwise do harm: it treats a lock
// of a higher format as damaged.
type Record struct {
	Owner process.Identity // the process whose death frees the lock
	Job   process.Identity // on a terminal: the job, held at a gate until it was recorded; PID 0: none
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
	Notice      time.Duration // set by the owner; 0: none

	Replaces   bool          // the owner preempted what ran before: remember when it was asked for
	Supervised bool          // the owner is `adlock run`, which forwards signals to its job
	Patience   time.Duration // how long after ExpireAfter newcomers leave it to the owner to end its job
	FromStart  bool          // remember the start of this run
	Learn      bool          // the atom's limits are learned from this run
	Shared     bool          // the owner is a reader: other readers may hold the atom at the same time
	Slots      int           // the limit under which the owner also took a slot; 0: none
}

// Bytes returns the record as written in the file: the pid alone on line 1 (as in shlock and the
// 1997 paper), the token on line 2, where a shell reads it, then key=value lines.
func (r Record) Bytes() []byte {
	var w writer
	w.line(strconv.Itoa(r.Owner.PID))
	w.text("token", r.Token)
	w.text("format", format)
	if r.Atom != (atom.Atom{}) {
		w.atom(r.Atom)
	}
	w.identity("", r.Owner)
	if r.Node != "" && r.Node != r.Atom.Host {
		w.quoted("node", r.Node)
	}
	if r.Owner.Image != 0 {
		w.number("image", r.Owner.Image)
	}
	if r.Job.PID != 0 {
		w.number("job.pid", uint64(r.Job.PID))
		w.identity("job.", r.Job)
	}
	if r.File > 0 {
		w.number("file", r.File)
	}
	w.text("monotonic", r.Monotonic.String())
	w.text("boottime", r.Boottime.String())
	if r.Asked > 0 {
		w.text("asked", r.Asked.String())
	}
	w.text("if_elapsed", limit.Format(r.IfElapsed))
	w.text("expire_after", limit.Format(r.ExpireAfter))
	if r.Source != policy.None {
		w.text("expire_after_from", string(r.Source))
	}
	if r.Notice > 0 {
		w.text("notice", limit.Format(r.Notice))
	}
	if r.Replaces {
		w.text("replaces", "yes")
	}
	if r.Supervised {
		w.text("supervised", "yes")
	}
	if r.FromStart {
		w.text("from_start", "yes")
	}
	if r.Shared {
		w.text("shared", "yes")
	}
	if r.Learn {
		w.text("learn", "yes")
	}
	if r.Patience > 0 {
		w.text("patience", r.Patience.String())
	}
	if r.Slots > 0 {
		w.number("slots", uint64(r.Slots))
	}
	w.text("end", "")
	return []byte(w.String())
}

// Content is what an active lock was found to contain.
type Content int

// The kinds of content.
const (
	Full    Content = iota // a record of adlock
	PIDOnly                // a pid and nothing else (shlock's)
	Empty                  // nothing: another tool's, or a full disk's
	Damaged                // anything else, or cut short: never replaced
)

// Parse reads the content of an active lock. A record that is cut short, or followed by an unknown
// line, is Damaged: half a pid would be another process's.
func Parse(content []byte) (Record, Content) {
	record, _, kind := ParseAll(content)
	return record, kind
}

// ParseAll is Parse, and returns the appended lines too.
func ParseAll(content []byte) (Record, Appended, Content) {
	head, tail := Split(content)
	record, kind := parseRecord(head)
	appended, ok := parseAppended(tail, record.Owner)
	if !ok {
		return Record{}, Appended{}, Damaged
	}
	return record, appended, kind
}

// Split divides the content of a lock after the line that ends the record.
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
	if rest == "" {
		return Record{Owner: process.Identity{PID: int(pid)}}, PIDOnly
	}
	fields, ok := parseFields(rest)
	if !ok || fields["format"] != format {
		return Record{}, Damaged
	}
	r := reader{fields: fields}
	record := Record{
		Owner:       r.identity("", int(pid)),
		Token:       r.text("token"),
		File:        r.inode("file"),
		Monotonic:   r.duration("monotonic"),
		Boottime:    r.duration("boottime"),
		IfElapsed:   r.limit("if_elapsed"),
		ExpireAfter: r.limit("expire_after"),
		Source:      policy.Source(fields["expire_after_from"]),
		Replaces:    fields["replaces"] == "yes",
		Supervised:  fields["supervised"] == "yes",
		FromStart:   fields["from_start"] == "yes",
		Shared:      fields["shared"] == "yes",
		Learn:       fields["learn"] == "yes",
	}
	if _, there := fields["program"]; there {
		record.Atom = r.atom()
	}
	if _, there := fields["node"]; there {
		record.Node = r.quoted("node")
	}
	if _, there := fields["image"]; there {
		record.Owner.Image = r.number("image", 64)
	}
	if _, there := fields["job.pid"]; there {
		record.Job = r.identity("job.", int(r.number("job.pid", 31)))
		r.failed = r.failed || record.Job.PID == 0 // not a process
	}
	if _, there := fields["asked"]; there {
		record.Asked = max(0, r.duration("asked"))
	}
	if _, there := fields["notice"]; there {
		record.Notice = r.limit("notice")
	}
	if _, there := fields["patience"]; there {
		record.Patience = r.duration("patience")
	}
	if _, there := fields["slots"]; there {
		record.Slots = int(r.number("slots", 31))
	}
	r.text("end")
	if r.failed {
		return Record{}, Damaged
	}
	return record, Full
}

// Age is for how long the lock has been there while the machine was awake: a laptop that wakes up
// must not end last night's job. Steps of the wall clock do not change it. known is false if the
// owner had another such clock: on another machine, before this boot, or in another time namespace.
func (r Record) Age() (age time.Duration, known bool) {
	here := process.Here()
	known = r.Owner.Boot != "" && r.Owner.Boot == here.Boot && r.Owner.TimeNS == here.TimeNS
	return r.Held(), known
}

// Start is when the run was asked for.
func (r Record) Start() Start {
	return Start{Boottime: r.Boottime - r.Asked, boot: r.Owner.Boot, timeNS: r.Owner.TimeNS}
}

// Held is the age, for the owner itself.
func (r Record) Held() time.Duration { return process.Monotonic() - r.Monotonic }

// Slept is how long the machine has slept since the lock was made; 0 if that is not known.
func (r Record) Slept() time.Duration {
	if _, known := r.Age(); !known {
		return 0
	}
	return max(0, process.Boottime()-r.Boottime-r.Held())
}

// KnownJob is the job that the record names, without appended lines. uid owns the lock file; -1:
// there is no file.
func (r Record) KnownJob(uid int) process.Job {
	return process.Job{Owner: r.Owner, Command: r.Job, FileUID: uid, Supervised: r.Supervised, Token: r.Token, Taken: r.Boottime}
}
