package runlog

// Kinds are all kinds of events, in the order in which they are documented.
func Kinds() []Kind {
	return []Kind{Acquire, Deny, Release, Expire, Signal, Takeover, Reclaim, Stuck, Lost, Clock, Clear, Stop, Empty, Hook, Starved, Overdue, Pause, Resume, Paused, Missing, Wait, Cancel, NotRun}
}
