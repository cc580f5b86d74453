// Package runlog keeps the record of transactions: the requests for locks, the answers, and the signals
// sent.
//
// The runlog of a host is one file, program.HOST.runlog (the paper's name; "program" is literal), with
// one line of logfmt per event, rotated to .1. It informs people and reports. Only one decision about
// locks reads it: --if-elapsed auto counts how often the atom was asked for too soon, and counts none
// if the runlog cannot be read. So an error of this package never keeps a job from running.
//
// # The line
//
//	time=2026-11-21T02:58:12.123456Z event=release program=backup operator=run operand=nightly pid=811 token=9f… duration=61.25 status=0
//
// Time and event come first, fields without a value are omitted, and a reader skips unknown keys. Time
// is UTC with microseconds: it sorts as text, and needs no time zone file. Durations are seconds with
// up to nine decimals, or never. Lines are in the order in which they were written. A value may contain
// any bytes (quote.go).
package runlog

import "time"

// Event is one transaction. A zero field is not in the line; a field is an Opt if zero has a meaning.
// The fields stand in the order of the line (fields.go); the values of a field with ",own" are not
// likely to recur.
type Event struct {
	Time time.Time `log:"time"`  // Append sets the current time for zero, and truncates to microseconds
	Kind Kind      `log:"event"` // what happened

	// The atom, as it was given (any bytes). A line has Host only if it differs from the HOST of the
	// file's name, which a reader fills in.
	Program  string `log:"program"`
	Host     string `log:"host"`
	Operator string `log:"operator"`
	Operand  string `log:"operand"`

	// Store is the address, as given, of the store beyond this machine that holds the atom; "": a
	// lock directory. Atoms of the same name in two places are two atoms.
	Store string `log:"store"`

	PID    int    `log:"pid"`       // the acting process: the owner in acquire, release and lost; else the newcomer
	Node   string `log:"node"`      // its machine, if the atom is in a store; Append fills in this one
	Token  string `log:"token,own"` // the acquisition of PID
	Shared bool   `log:"shared"`    // it is a reader: other readers may hold the atom at the same time

	Owner      int    `log:"owner"`           // the owner that PID found: waited for, ended, found dead or cleared
	OwnerNode  string `log:"owner_node"`      // its machine, if that may be another one
	OwnerToken string `log:"owner_token,own"` // the acquisition that this owner held

	Verdict string `log:"verdict"` // acquired, busy, too-soon, full, paused, stuck

	// The limits in force, limit.Never is never; and where they are from: learned, said; "": the
	// default, for IfElapsed also said.
	IfElapsed       Opt[time.Duration] `log:"if_elapsed"`
	IfElapsedFrom   string             `log:"if_elapsed_from"`
	FromStart       bool               `log:"from_start"` // IfElapsed counts from the start of the last run
	OncePer         time.Duration      `log:"once_per"`   // the atom runs once in each tick of this period
	ExpireAfter     Opt[time.Duration] `log:"expire_after"`
	ExpireAfterFrom string             `log:"expire_after_from"`

	Age      Opt[time.Duration] `log:"age"`      // of the active lock, or (verdict too-soon, event clock) of the last lock
	Wait     time.Duration      `log:"wait"`     // how long the newcomer has waited
	Duration Opt[time.Duration] `log:"duration"` // how long the atom was held

	Status Opt[int] `log:"status"` // the job's exit status
	Signal string   `log:"signal"` // without SIG: the signal sent, or the one that ended the job
	Target int      `log:"target"` // the process that a signal was sent to
	Count  int      `log:"count"`  // how many, e.g. denials in a row

	// Overdue is the age of OwnerToken's acquisition when it was last reported as overdue.
	Overdue Opt[time.Duration] `log:"overdue"`

	Idle   time.Duration `log:"idle"`       // how long the owner's job was seen idle before it was ended
	Work   string        `log:"work,own"`   // what the owner's job was seen doing after a learned limit had passed
	Reason string        `log:"reason,own"` // the reason in words and figures, for people
}

// Kind is what happened. An acquisition begins with Acquire and ends with the one Release, Takeover,
// Reclaim or Clear that names its token (Token in Release, OwnerToken in the others).
type Kind string

// The kinds of events. Each carries the atom and PID, and the listed fields.
const (
	// Acquire: the atom was taken. Token, Shared, both limits, Wait; Reason if the limits were
	// learned.
	Acquire Kind = "acquire"
	// Deny: the newcomer was denied. Verdict, Reason, Age, both limits, Wait; Owner and
	// OwnerToken if there is one; Count of the denials in a row as busy or full; Overdue if that
	// was reported; Work.
	Deny Kind = "deny"
	// Release: the owner is done. Token, Duration, Status, and Signal if a signal ended the job;
	// Reason if the last lock or a slot could not be written.
	Release Kind = "release"
	// Expire: the owner has passed ExpireAfter and is about to be ended. Owner, OwnerToken, Age,
	// ExpireAfter, Idle; Owner is PID if a supervisor ends its own job.
	Expire Kind = "expire"
	// Signal: a signal was sent. Signal, Target, OwnerToken; Reason if it failed.
	Signal Kind = "signal"
	// Takeover: the death of an expired owner is confirmed and its lock is replaced. Owner,
	// OwnerToken, Age, Idle; an Acquire follows, in a store perhaps after another newcomer's.
	Takeover Kind = "takeover"
	// Reclaim: the lock of a dead owner was replaced. Owner, OwnerToken, Age, Reason (the proof
	// of death); an Acquire follows, in a store perhaps another newcomer's.
	Reclaim Kind = "reclaim"
	// Stuck: the owner has expired and cannot be ended. As Expire; Reason.
	Stuck Kind = "stuck"
	// Lost: the owner found at its release that the lock was no longer its own. Token, and PID if
	// the lock is still its own and being taken over; else Owner and OwnerToken of the lock that
	// is there, Reason.
	Lost Kind = "lost"
	// Clock: a last lock lay in the future and was invalid. Age (below 0).
	Clock Kind = "clock"
	// Clear: a person removed the lock, or had its job ended (after a Stop). Owner, OwnerToken,
	// Age.
	Clear Kind = "clear"
	// Stop: a person asked to end the owner's job; written before the first signal. Owner,
	// OwnerToken, Age; a Clear follows once the death is confirmed.
	Stop Kind = "stop"
	// Empty: an empty lock was cleared. Age.
	Empty Kind = "empty"
	// Hook: the hook that was started for an event failed. Status or Signal, Reason.
	Hook Kind = "hook"
	// Starved: the atom was denied many times in a row. Count, Verdict (the last one), Reason.
	Starved Kind = "starved"
	// Overdue: the owner has passed its notice, and that is reported. Owner, OwnerToken, Age,
	// Overdue (the same), Work, Reason; Owner is PID if a supervisor reports its own job.
	Overdue Kind = "overdue"
	// Pause: a person has paused the atom, or with no atom all jobs of the host. Reason.
	Pause Kind = "pause"
	// Resume: a person has ended that pause. Reason.
	Resume Kind = "resume"
	// Paused: a pause of more than a day has denied the newcomer, and that is reported. Verdict, Age
	// (of the pause), Reason.
	Paused Kind = "paused"
	// Missing: the command does not exist (Status 127) or cannot be run (126). Nothing was locked
	// and nothing ran. Status, Reason; PID is the process that looked for it.
	Missing Kind = "missing"
	// Wait: the newcomer waits from now on. Wait, its longest wait (limit.Never: without end);
	// else as Deny. It ends with an Acquire or a Deny of the same PID, or with that process's
	// death.
	Wait Kind = "wait"
	// Cancel: a signal ended the newcomer before its job began, during its wait or jitter.
	// Nothing ran. Signal, Wait, Reason.
	Cancel Kind = "cancel"
	// NotRun: nothing ran, because of trouble with the lock directory, because the options were
	// refused (Status 64), or because the newcomer's own job holds the atom (then with the fields
	// of Deny). Status (that of adlock), Reason; Age, if the lock is in a store: for how long the
	// store had kept all jobs from running when the hook was told.
	NotRun Kind = "not-run"
)

// Kinds are all kinds of events, in the order in which they are documented.
func Kinds() []Kind {
	return []Kind{Acquire, Deny, Release, Expire, Signal, Takeover, Reclaim, Stuck, Lost, Clock, Clear, Stop, Empty, Hook, Starved, Overdue, Pause, Resume, Paused, Missing, Wait, Cancel, NotRun}
}

// Opt is a value that may be absent, where the zero value has another meaning.
type Opt[T any] struct {
	Value T
	Set   bool
}

// Pointer points to a copy of the value; it is nil if the value is absent.
func (o Opt[T]) Pointer() *T {
	if !o.Set {
		return nil
	}
	return &o.Value
}

// Some is an Opt with a value.
func Some[T any](v T) Opt[T] { return Opt[T]{v, true} }
