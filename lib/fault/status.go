package fault

// The statuses of every verb are those of sysexits(3), so that a status of the job itself is rarely
// mistaken for one of adlock's. Only code that ends a process uses them.
const (
	StatusOK           = 0
	StatusUsage        = 64
	StatusUnavailable  = 69
	StatusSystem       = 71
	StatusCannotCreate = 73
	StatusIO           = 74
	StatusDenied       = 75
	StatusNotPermitted = 77
)

// The statuses of timeout(1), and of a shell for a command that cannot run (POSIX.1-2017, XCU 2.8.2).
const (
	StatusExpired     = 124
	StatusNotRunnable = 126
	StatusNoCommand   = 127
)

// The private statuses by which the library's verbs answer adlock_get: no signals' numbers (W14), and not
// printed, as `$(…)` would put another process between script and helper. sh/adlock.sh has them too.
const (
	AnswerTooSoon = 80
	AnswerBusy    = 81
	AnswerFull    = 82
	AnswerExpired = 83
	AnswerStuck   = 84 // the helper has printed the error; the script gets 77
	AnswerPaused  = 85
)

var ofKind = [...]int{
	System: StatusSystem, Usage: StatusUsage, Unavailable: StatusUnavailable,
	CannotCreate: StatusCannotCreate, IO: StatusIO, Denied: StatusDenied,
	NotPermitted: StatusNotPermitted, NoCommand: StatusNoCommand, NotRunnable: StatusNotRunnable,
	Misconfigured: StatusUsage,
}

// StatusOf returns the status for err; StatusOK for nil.
func StatusOf(err error) int {
	if err == nil {
		return StatusOK
	}
	return ofKind[KindOf(err)]
}
