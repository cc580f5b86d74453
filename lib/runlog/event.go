// Package runlog records the transactions: requests for locks, the answers, and the signals sent.
//
// The runlog of a host is one file, program.HOST.runlog (the paper's name; "program" is literal), with
// one line of logfmt per event, rotated to .1. The runlog informs people and reports. Only one decision about
// locks reads it: --if-elapsed auto counts how often the atom was asked for too soon, and counts none
// if the runlog cannot be read. So an error of this package never keeps a job from running.
//
// # The line
//
//	time=2026-11-21T02:58:12.123456Z event=release program=backup operator=run operand=nightly pid=811 token=9f… duration=61.25 status=0
//
// Time and event come first, fields without a value are omitted, and a reader skips unknown keys. Time is UTC
// with microseconds: it sorts as text, and needs no time zone file. Durations are in seconds with up to nine
// decimals, or the word never. Lines are in the order of writing. A value may have any bytes (quote.go).
package runlog

import (
	"strconv"
	"time"

	"adlock/lib/atom"
)

// Event is one transaction. A zero field is not in the line; a field is an Opt if zero has a meaning. The
// fields have the order of the line (fields.go); the values of a field with ",own" seldom recur.
type Event struct {
	Time time.Time `log:"time"`  // Append sets the current time for zero, and truncates to microseconds
	Kind Kind      `log:"event"` // what happened

	// The atom, as given (any bytes). A line has Host only if it differs from the HOST of the file's name.
	Program  string `log:"program"`
	Host     string `log:"host"`
	Operator string `log:"operator"`
	Operand  string `log:"operand"`

	// Store is the address of the store that holds the atom; "": a lock directory.
	Store string `log:"store"`

	PID    int    `log:"pid"`       // in acquire, release and lost the owner (0: unknown), else the acting process; 0 in hook
	Node   string `log:"node"`      // the machine of PID, if the atom is in a store; Append fills in this machine
	Token  string `log:"token,own"` // the acquisition of PID
	Shared bool   `log:"shared"`    // the owner is a reader: other readers may hold the atom at the same time

	Owner      int    `log:"owner"`           // the owner that PID found: waited for, ended, found dead or cleared
	OwnerNode  string `log:"owner_node"`      // the machine of Owner, if that may be another one
	OwnerToken string `log:"owner_token,own"` // the acquisition that this owner held

	Verdict string `log:"verdict"` // acquired, busy, too-soon, full, paused, stuck

	// The limits in force, and where they are from: learned, said, file; "": default. IfElapsedFrom: learned or "".
	IfElapsed       Opt[time.Duration] `log:"if_elapsed"`
	IfElapsedFrom   string             `log:"if_elapsed_from"`
	FromStart       bool               `log:"from_start"` // IfElapsed counts from the start of the last run
	OncePer         time.Duration      `log:"once_per"`   // the atom runs once in each tick of this period
	ExpireAfter     Opt[time.Duration] `log:"expire_after"`
	ExpireAfterFrom string             `log:"expire_after_from"`

	Age      Opt[time.Duration] `log:"age"`      // of the active lock; in too-soon and clock, of the last lock; in paused, of the pause
	Wait     time.Duration      `log:"wait"`     // how long the newcomer has waited or, in wait, may wait
	Duration Opt[time.Duration] `log:"duration"` // how long the atom was held

	Status Opt[int] `log:"status"` // exit status of the job (-1: no release), the hook or, in missing and not-run, adlock
	Signal string   `log:"signal"` // without SIG: the signal sent, or the one that ended the job, hook or newcomer
	Target int      `log:"target"` // the process that a signal was sent to
	Count  int      `log:"count"`  // how many, e.g. denials in a row

	// Overdue is the age of OwnerToken's acquisition when it was last reported as overdue.
	Overdue Opt[time.Duration] `log:"overdue"`

	Idle   time.Duration `log:"idle"`       // how long the owner's job was seen idle before it was ended
	Work   string        `log:"work,own"`   // what the owner's job was seen doing after a learned limit had passed
	Reason string        `log:"reason,own"` // the reason in words and figures, for people
}

func (e *Event) Atom() atom.Atom {
	return atom.Atom{Program: e.Program, Host: e.Host, Operator: e.Operator, Operand: e.Operand}
}

// On describes a process: "7 on web1", or "7" if the machine (node) is "".
func On(pid int, node string) string {
	if node == "" {
		return strconv.Itoa(pid)
	}
	return strconv.Itoa(pid) + " on " + node
}

// Kind is what happened. An acquisition begins with Acquire and ends with the one Release, Takeover, Reclaim or
// Clear that names its token. (The token is Token in Release, OwnerToken in the others.) After Lost there may be none.
type Kind string

// The kinds of events, with the fields that each carries besides the atom and PID.
const (
	// Acquire: Token, Shared, both limits; Reason: a warning about the limits, and what was learned.
	Acquire Kind = "acquire"
	// Deny: Verdict, Reason, Age, both limits, Wait; Owner and OwnerToken if there is an owner; Count of the
	// denials in a row as busy or full; Overdue if that was reported; Work.
	Deny Kind = "deny"
	// Release: Token, Duration, Status, Signal; Reason if a file could not be written, or Status is -1.
	Release Kind = "release"
	// Expire, before an ending: Owner (PID itself if it is the job's supervisor), OwnerToken, Age, both limits, Idle.
	Expire Kind = "expire"
	// Signal: Signal, Target; OwnerToken if a newcomer or adlock stop sent it, not the owner.
	Signal Kind = "signal"
	// Takeover of an expired lock: Owner, OwnerToken, Age, both limits, Idle; Acquire follows unless readers are left.
	Takeover Kind = "takeover"
	// Reclaim of a dead owner's lock: Owner, OwnerToken, Age, both limits; Acquire follows unless readers are left.
	Reclaim Kind = "reclaim"
	// Stuck: the fields of Deny without Count; Token if the owner's supervisor reports it, then without Wait and Work.
	Stuck Kind = "stuck"
	// Lost, found at a release: Token, Reason; Owner and OwnerToken if another owner's lock is there. If the
	// owner is being ended by force, also Duration, Status, Signal; Owner is then the process that ends the job.
	Lost Kind = "lost"
	// Clock, for a last lock in the future (Age, below 0) or a damaged one: Reason.
	Clock Kind = "clock"
	// Clear, by a person: Owner, OwnerToken; Age only after a Stop.
	Clear Kind = "clear"
	// Stop, by a person, before the first signal: Owner, OwnerToken, Age; a Clear follows after the ending.
	Stop Kind = "stop"
	// Empty: Age of the empty lock that was cleared; Reason if it was a damaged one.
	Empty Kind = "empty"
	// Hook, after a hook has failed: Status or Signal, Reason.
	Hook Kind = "hook"
	// Starved, after Count denials in a row: the fields of the last Deny.
	Starved Kind = "starved"
	// Overdue: Owner, OwnerToken, Age, Overdue, Reason; of a newcomer Verdict and Work, of the owner itself Token.
	Overdue Kind = "overdue"
	// Pause of the atom or, if the event has none, of all jobs of the host: Reason.
	Pause Kind = "pause"
	// Resume, when a person ends such a pause before it is over: Reason.
	Resume Kind = "resume"
	// Paused, when a pause of more than a day is reported: the fields of Deny.
	Paused Kind = "paused"
	// Missing, when there is no command (Status 127) or it cannot be run (126): Reason; PID is that of adlock.
	Missing Kind = "missing"
	// Wait, when a newcomer begins to wait: the fields of Deny, and Wait, for how long at most (limit.Never: without
	// end). An Acquire or a Deny of the same PID, or that process's death, ends the wait.
	Wait Kind = "wait"
	// Cancel, when a signal ends a newcomer before its job began: Signal, Wait, Reason.
	Cancel Kind = "cancel"
	// NotRun, after an error of the directory or store, or refused options (Status 64), or if the newcomer belongs to
	// the job that denies it (then also the fields of Deny): Status, Reason. In a store, if the hook was called, Age
	// is how long the store had kept all jobs from running.
	NotRun Kind = "not-run"
)

func Kinds() []Kind {
	return []Kind{Acquire, Deny, Release, Expire, Signal, Takeover, Reclaim, Stuck, Lost, Clock, Clear, Stop, Empty, Hook, Starved, Overdue, Pause, Resume, Paused, Missing, Wait, Cancel, NotRun}
}

// Opt is a value that may be absent, where the zero value has another meaning.
type Opt[T any] struct {
	Value T
	Set   bool
}

// Pointer returns a pointer to a copy of the value, or nil if the value is absent.
func (o Opt[T]) Pointer() *T {
	if !o.Set {
		return nil
	}
	return &o.Value
}

func (o Opt[T]) Or(otherwise T) T {
	if o.Set {
		return o.Value
	}
	return otherwise
}

func Some[T any](v T) Opt[T] { return Opt[T]{v, true} }
