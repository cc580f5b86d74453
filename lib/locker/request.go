// Package locker has the types for taking and releasing atoms, in a lock directory or in a store beyond this
// machine: the request, the answer, and the events that are written about them.
package locker

import (
	"cmp"
	"os"
	"time"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/flock"
	"adlock/lib/learn"
	"adlock/lib/limit"
	"adlock/lib/policy"
	"adlock/lib/process"
	"adlock/lib/record"
	"adlock/lib/runlog"
)

// Request says which atom is wanted, for which owner, and on what terms.
type Request struct {
	Atom   atom.Atom
	Limits policy.Limits
	Auto   Auto

	Owner      process.Identity // the process that owns the lock: once it and its job are dead, the lock is free
	Job        process.Identity // a process that waits at its gate to become the job (record.Record); PID 0: none
	Supervised bool
	Patience   time.Duration // see record.Record

	// End gets the pause between signals when the owner in a store must end its own job: because a newcomer asks for that,
	// or because the lease is gone or cannot be renewed. If End is nil, no pause is sent.
	End chan<- time.Duration

	Slots     int       // how many atoms of the program, or runs of the atom (IsSemaphore), may run at once; 0: any
	Now       time.Time // the pass clock; zero: read the clock
	FromStart bool      // IfElapsed counts from the start of the last run
	Tick      policy.Tick

	Shared bool // other requests with Shared may hold the atom at the same time

	Flock *flock.File // held beside the atom; nil: none

	Wait        time.Duration // wait at most this long for a busy, full or paused atom; limit.Never: without end
	WaitElapsed bool          // wait also if it is too soon
	WaitSince   time.Duration // boottime at which the waiting began; 0: now
	Asked       time.Duration // boottime at which the run was asked for, before a jitter; WaitSince wins if it is set

	// Asker is a file from the process that asked, or nil. The newcomer stops waiting when the file can be read or ends.
	Asker *os.File

	// Keep gets a function by which the newcomer leaves the queue once its run has ended: until then it keeps its
	// place. Keep is not called for a denial, for a reader, or by a store. If it is nil, Take leaves the queue.
	Keep func(leave func())

	Pause        time.Duration // the time between the signals by which a job is ended
	LeaveExpired bool          // do not end an owner that has expired: the verdict is Expired (a store ignores this)

	AtOnce bool // return ErrNotAtOnce and change nothing if more is needed than to check and take

	StatusLine *StatusLine // shows the wait; nil: not shown

	Starving int           // starving is reported after this many denials in a row, and 10, 100 times as many; 0: never
	Notice   time.Duration // the age at which an owner is overdue; limit.Never: none; 0: the owner's, else learned

	Learned learn.State // set by Resolve

	saidDamaged bool // the damaged last lock has been reported
	saidFuture  bool // a last lock from the future has been logged

	watched watched                  // what this newcomer saw of the job that it watched
	calm    map[string]time.Duration // by token: the age of the owner before which FindOverdue does not check it again
}

// NewRequest returns a request that is made now, with the default terms and without an atom.
func NewRequest() Request {
	return Request{Asked: process.Boottime(), Limits: policy.Limits{ExpireAfter: limit.Never}, Pause: policy.DefaultPause}
}

// Auto says which limits are learned: these replace the ones in Limits once the last lock has been read.
type Auto struct {
	IfElapsed, ExpireAfter bool
}

// Terms returns the part of the request from which policy decides.
func (r *Request) Terms() policy.Terms {
	t := policy.Terms{Limits: r.Limits, Shared: r.Shared, Slots: r.Slots, Tick: r.Tick, Program: r.Atom.Program}
	if r.IsSemaphore() {
		t.Semaphore = r.Atom.Operand
	}
	return t
}

// IsSemaphore reports whether the slots count the runs of one atom, which share it.
func (r *Request) IsSemaphore() bool { return r.Slots > 0 && r.Atom.IsNamed() }

// Resolve puts the learned limits in force.
func (r *Request) Resolve(learned learn.State) {
	r.Learned = learned
	if r.Auto.IfElapsed {
		r.Limits.IfElapsed = learned.IfElapsed()
	}
	if r.Auto.ExpireAfter {
		r.Limits.ExpireAfter, r.Limits.Source = learned.ExpireAfter(r.Limits.IfElapsed), policy.Learned
	}
}

// Explanation returns the reasons for the learned limits. The last lock must have been read.
func (r *Request) Explanation() string {
	var ifElapsed, expireAfter string
	if r.Auto.IfElapsed {
		ifElapsed = "IfElapsed " + limit.Format(r.Limits.IfElapsed) + ": " + r.Learned.ExplainIfElapsed()
	}
	if r.Auto.ExpireAfter {
		expireAfter = "ExpireAfter " + limit.Format(r.Limits.ExpireAfter) + ": " + r.Learned.ExplainExpireAfter(r.Limits.IfElapsed)
	}
	return joined(ifElapsed, expireAfter)
}

// Record returns the record of a lock that is made now.
func (r *Request) Record() record.Record {
	expireAfter, source := r.Limits.OfOwner()
	now := process.Boottime()
	return record.Record{
		Owner: r.Owner, Job: r.Job, Token: record.NewToken(), Atom: r.Atom,
		Monotonic: process.Monotonic(), Boottime: now, Asked: r.askedBefore(now), IfElapsed: r.Limits.IfElapsed,
		ExpireAfter: expireAfter, Source: source, Notice: r.Notice,
		Replaces: r.Limits.Preempt(), Supervised: r.Supervised, Patience: r.Patience, Slots: r.Slots, FromStart: r.FromStart, Shared: r.Shared, Learn: r.Auto != Auto{},
	}
}

// MomentaryRecord returns the record of a lock that this process holds for a moment. If this process is killed,
// the record shows for certain that it is dead; a mere pid would not.
func MomentaryRecord(a atom.Atom) (record.Record, error) {
	owner, err := process.Of(os.Getpid())
	if err != nil {
		return record.Record{}, fault.Wrap("own process", err)
	}
	return record.Record{Owner: owner, Token: record.NewToken(), Atom: a, Monotonic: process.Monotonic(), Boottime: process.Boottime(), ExpireAfter: limit.Never}, nil
}

// NewMemory returns the first content of the last lock: the atom, unless the name identifies it.
func (r *Request) NewMemory() record.Memory {
	if r.Atom.Exact() {
		return record.Memory{}
	}
	return record.Memory{Atom: r.Atom}
}

// askedBefore returns how long before a moment (boottime) the run was asked for; FromStart counts from then.
func (r *Request) askedBefore(moment time.Duration) time.Duration {
	return max(0, moment-cmp.Or(r.WaitSince, r.Asked, moment))
}

// IsOlder reports whether the run was asked for before that of an owner whose lock has this record and age. If both are
// of one boot and time namespace, the record's own times, which are exact, count instead of age.
func (r *Request) IsOlder(owner record.Record, age time.Duration) bool {
	now := process.Boottime()
	if _, known := owner.Age(); known {
		age = now - owner.Boottime
	}
	return age+owner.Asked < r.askedBefore(now)
}

// isOlderThan reports whether the run was asked for before other. It is false for another boot or time namespace.
func (r *Request) isOlderThan(other record.Start) bool {
	return other.IsHere() && other.Boottime > cmp.Or(r.WaitSince, r.Asked, process.Boottime())
}

// Clock returns the time up to which ages are counted: real and, if set, the pass clock.
func (r *Request) Clock(real time.Time) Moment { return Moment{Real: real, Fixed: r.Now} }

func joined(some, more string) string {
	if some == "" || more == "" {
		return some + more
	}
	return some + "; " + more
}

// ReleaseRequest says how an acquisition ends.
type ReleaseRequest struct {
	Name    atom.Name
	Token   string          // of the acquisition; "": the one of this process or an ancestor
	PID     int             // of the owner, for a report that the lock is gone; 0: unknown
	Status  runlog.Opt[int] // of the job; not set: unknown
	Signal  string          // that ended the job, without SIG; "": none
	Expired bool            // the owner ended the job itself, at ExpireAfter
	Idle    time.Duration   // how long the job had been idle when it was ended, if ExpireAfter was learned; else 0
	Asked   bool            // the owner ended the job itself, as a newcomer in its store asked
	NoStamp bool            // the run does not count for IfElapsed, nor for the tick
	Untold  bool            // how the run went is unknown: it teaches nothing, and is no success
	Alone   bool            // the owner knows that no other process of its job lives, whatever the lock records
	Tick    policy.Tick

	// Again says that an earlier release may have been interrupted, or that the owner is dead and its lock
	// may have been reclaimed. If the lock is gone or another owner's, it is not reported as lost.
	Again bool

	// Withdraw gives up the acquisition, without a stamp, because the process for which the atom was taken
	// has died. A lock that is not this process's or an ancestor's stays, and nothing is reported as lost.
	Withdraw bool

	AtOnce    bool          // as in Request
	GuardWait time.Duration // how long to wait for a newcomer that is changing the lock; 0.2 s at least
	ForScript bool          // the request is from a script's helper, which is ended together with the script
}

// Owns reports whether the lock with this record may be released: it has the Token, if one is given; without
// one, and for Withdraw, its owner must be this process or an ancestor that lives.
func (r ReleaseRequest) Owns(own record.Record) bool {
	if r.Token != "" && (own.Token != r.Token || !r.Withdraw) {
		return own.Token == r.Token
	}
	return process.IsAncestor(own.Owner.PID) && own.Owner.Life() == process.Alive
}

// OwnedBy returns the identity of the process pid if that is this process or an ancestor: the owner's
// death must mean that the job is over. The error is fault.Untold if that process has died.
func OwnedBy(pid int) (process.Identity, error) {
	id, is, err := process.Ancestor(pid)
	if is {
		return id, fault.Wrap("--owner", err)
	}
	err = fault.New(fault.Usage, "--owner", "is not an ancestor of this process")
	if process.Gone(pid) {
		err = fault.Untold{Err: err}
	}
	return process.Identity{}, err
}
