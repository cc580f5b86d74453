package fault

// These are statuses of sysexits(3), so that the status of a job is rarely mistaken for one of adlock's.
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

// These are the statuses of timeout(1), and of a shell for a command that cannot run (POSIX.1-2017, XCU 2.8.2).
const (
	StatusExpired     = 124
	StatusNotRunnable = 126
	StatusNoCommand   = 127
)

// These are the private statuses by which the library's verbs answer adlock_get. None is the number of a signal (W14 in
// sh/adlock.sh, which repeats them). A printed answer would need `$(…)`, a further process between script and helper.
const (
	AnswerTooSoon = 80
	AnswerBusy    = 81
	AnswerFull    = 82
	AnswerExpired = 83
	AnswerStuck   = 84 // the helper has printed the error; the script gets 77
	AnswerPaused  = 85
	AnswerGone    = 86 // answers a withdrawal: if there is a lock now, it is not the script's
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
