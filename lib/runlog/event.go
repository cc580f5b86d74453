// Package runlog keeps the record of transactions: what was asked of the
// locks, what was answered, and what was done to whom.
//
// The runlog of a host is one file, program.HOST.runlog (the paper's name for
// it; "program" is literal), with one line of logfmt per event. Past a size it
// is turned over to program.HOST.runlog.1, and what was there is gone. The
// runlog informs people and reports. Only one decision about locks reads it:
// --if-elapsed auto counts how often the atom was asked for too soon, and counts none
// where the runlog cannot be read. So an error from here is worth a line on standard
// error and never the fate of a job.
//
// # The line
//
//	time=2026-11-21T02:58:12.123456Z event=release program=backup operator=run operand=nightly pid=811 token=9f… duration=61.25 status=0
//
// Time and event come first, fields without a value are left out, and a reader
// skips keys it does not know. Time is UTC with microseconds: it sorts as text,
// does not repeat an hour in autumn, is the same for cron and for a login whose
// TZ differs, and spares the taking of a lock the reading of a time zone file.
// Durations are seconds with up to nine decimals, or never. Lines stand in the
// order in which they were written; a writer that was held up may bring a time
// a little older than the line before.
//
// A value survives whatever its bytes: see quote.go.
package runlog

import "time"

// Event is one transaction. The zero value of a field means that the line does
// not have it; where zero says something of its own the field is an Opt. The
// constants of Kind tell which fields each kind carries.
type Event struct {
	Time time.Time // when; Append fills in the current time for the zero value and drops what is below a microsecond
	Kind Kind      // what happened

	// The atom, as it was given (any bytes).
	Program, Operator, Operand string
	// Host is the atom's host as it was given. A line has it only where it
	// differs from the HOST of the file's name; a reader fills in the latter.
	Host string

	// Store is the store beyond this machine that the atom is in, as its address was
	// given; "": a lock directory. Atoms of one name in two places are two.
	Store string

	PID    int    // the process that acts: the owner in acquire, release and lost; else the newcomer
	Node   string // its machine, where the atom is in a store; Append fills in this one
	Token  string // the acquisition of PID
	Shared bool   // it reads: others that read may hold the atom at the same time

	Owner      int    // the owner that PID found: waited for, ended, found dead or cleared
	OwnerNode  string // its machine, where that may be another one
	OwnerToken string // the acquisition that this owner held

	Verdict string // acquired, busy, too-soon, full, stuck
	Reason  string // why, in words and with figures, for people

	IfElapsed   Opt[time.Duration] // the limits in force; limit.Never is never
	ExpireAfter Opt[time.Duration]

	IfElapsedFrom   string // learned; "": it was said, or is the default
	ExpireAfterFrom string // said, learned; "": none has been said

	Age      Opt[time.Duration] // of the active lock, or (verdict too-soon, event clock) of the last lock
	Wait     time.Duration      // how long the newcomer has waited
	Duration Opt[time.Duration] // how long the atom was held

	Status Opt[int] // the job's exit status
	Signal string   // without SIG: the signal sent, or the one that ended the job
	Target int      // the process that a signal was sent to
	Count  int      // how many, e.g. denials in a row

	// Overdue is the age of OwnerToken's acquisition when a person was told last that it is overdue.
	Overdue Opt[time.Duration]

	Idle time.Duration // for how long the owner's job was seen to do nothing before it was ended
	Work string        // or what it was seen to do, in words, though it is past a limit that was learned
}

// Kind says what happened. An acquisition begins with Acquire and ends with the
// one Release, Takeover, Reclaim or Clear that names its token (Token in
// Release, OwnerToken in the others); so runs can be told from the runlog alone.
type Kind string

// The kinds of events. Each carries the atom and PID, besides what is listed.
const (
	// Acquire: the atom was taken. Token, Shared, both limits, Wait; Reason where
	// the limits were learned.
	Acquire Kind = "acquire"
	// Deny: the newcomer was turned away. Verdict, Reason, Age, both limits,
	// Wait; Owner and OwnerToken where there is one; Count of the denials in a row
	// as busy or full; Overdue where a person was told; Work.
	Deny Kind = "deny"
	// Release: the owner is done. Token, Duration, Status, and Signal if a
	// signal ended the job; Reason where what was to be kept of it could not be written.
	Release Kind = "release"
	// Expire: the owner has passed ExpireAfter and is about to be ended. Owner,
	// OwnerToken, Age, ExpireAfter, Idle; Owner is PID where a supervisor ends its own job.
	Expire Kind = "expire"
	// Signal: a signal was sent. Signal, Target, OwnerToken; Reason if it failed.
	Signal Kind = "signal"
	// Takeover: the death of an expired owner is confirmed and its lock is
	// replaced. Owner, OwnerToken, Age, Idle; an Acquire follows, in a store maybe after that of
	// another newcomer.
	Takeover Kind = "takeover"
	// Reclaim: the lock of an owner that had died was replaced. Owner,
	// OwnerToken, Age, Reason (the proof of death); an Acquire follows, in a store
	// maybe that of another newcomer.
	Reclaim Kind = "reclaim"
	// Stuck: the owner has expired and cannot be ended. As Expire; Reason.
	Stuck Kind = "stuck"
	// Lost: the owner found, when it released, that the lock was not its own
	// any more. Token, and PID where the lock is still its own and being taken
	// over; else Owner and OwnerToken of the lock that is there, Reason.
	Lost Kind = "lost"
	// Clock: a last lock lay in the future and is not believed. Age (below 0).
	Clock Kind = "clock"
	// Clear: a person removed the lock, or had its job ended (after a Stop). Owner,
	// OwnerToken, Age.
	Clear Kind = "clear"
	// Stop: a person has the owner's job ended, before the first signal. Owner, OwnerToken,
	// Age; a Clear follows once the death is confirmed.
	Stop Kind = "stop"
	// Empty: an empty lock was cleared. Age.
	Empty Kind = "empty"
	// Hook: the hook that was told of something failed. Status or Signal, Reason.
	Hook Kind = "hook"
	// Starved: the atom was denied many times in a row. Count, Verdict (the
	// last one), Reason.
	Starved Kind = "starved"
	// Overdue: the owner has passed its notice, and a person is told. Owner, OwnerToken,
	// Age, Overdue (the same), Work, Reason; Owner is PID where a supervisor tells the hook of its own job.
	Overdue Kind = "overdue"
	// Missing: the command is not there (Status 127) or cannot be run (126).
	// Nothing was locked and nothing ran. Status, Reason; PID is the process that looked for it.
	Missing Kind = "missing"
	// Wait: the newcomer waits from now on. Wait, the most it will (limit.Never:
	// without end); else as Deny. An Acquire or a Deny of the same PID ends it,
	// or its death.
	Wait Kind = "wait"
	// Cancel: a signal ended the newcomer before its job began, while it waited or its
	// jitter passed. Nothing ran. Signal, Wait, Reason.
	Cancel Kind = "cancel"
	// NotRun: nothing could be locked, for trouble with the lock directory, and nothing ran.
	// Status, which is that of adlock; Reason.
	NotRun Kind = "not-run"
	// Unlocked: for trouble with the lock directory the job runs without a lock, as was
	// asked for. Token, Reason; a Release follows.
	Unlocked Kind = "unlocked"
)

// Opt is a value that may be absent, where the zero value means something else.
type Opt[T any] struct {
	Value T
	Set   bool
}

// Pointer points at a copy of the value; it is nil where the value is absent.
func (o Opt[T]) Pointer() *T {
	if !o.Set {
		return nil
	}
	return &o.Value
}

// Some is the Opt that is there.
func Some[T any](v T) Opt[T] { return Opt[T]{v, true} }
