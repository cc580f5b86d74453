package process

// Remains tells whether something of the job lives that can be known of though
// its owner is dead: what the lock recorded, and the members of the process
// group and of the session that the owner led, or its command. What cannot be
// checked counts as living (design 4).
//
// What is not noticed: the group ended, its number came round to another leader
// in the same session, and that one exited before its own group did.
func (job Job) Remains() bool {
	where, err := here()
	if err != nil {
		return true
	}
	switch job.Owner.seenFrom(where) {
	case earlierBoot:
		return false
	case elsewhere:
		return true
	}
	return job.Survived() != nil || job.bandLives(where)
}

// Survived returns an error that names a process which the lock recorded beside the
// owner and which lives, or cannot be proved dead; nil where there is none.
func (job Job) Survived() error {
	for _, id := range job.recorded() {
		if id.Life() != Dead {
			return &StuckError{id.PID, "", ErrSurvivor}
		}
	}
	if job.Uncounted {
		return &StuckError{job.Owner.PID, "", ErrUncounted}
	}
	return nil
}

// Alive is Remains without what is only not known to be dead: what nobody can
// overrule who has judged the job dead.
func (job Job) Alive() bool {
	for _, id := range job.recorded() {
		if id.Life() == Alive {
			return true
		}
	}
	where, err := here()
	return err == nil && job.Owner.seenFrom(where) == samePlace && job.bandLives(where)
}

// recorded are the processes that the lock names beside the owner.
func (job Job) recorded() []Identity {
	list := job.Survivors
	if job.Command.PID != 0 {
		list = append([]Identity{job.Command}, list...)
	}
	return list
}

func (job Job) bandLives(where Identity) bool {
	var list []entry
	for _, b := range job.bands() {
		if b.gone() {
			continue // for good: whoever could make it is dead, or known to live
		}
		if list == nil {
			var err error
			if list, err = table(); err != nil {
				return true
			}
		}
		if job.Owner.TimeNS != where.TimeNS {
			b.start = 0 // start times cannot be compared: any member counts
		}
		if b.lives(list) {
			return true
		}
	}
	return false
}
