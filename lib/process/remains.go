package process

import (
	"cmp"
	"slices"
)

// Remains reports whether a known process of a dead owner's job may live (lib/protocol.md, 2). It counts recorded
// processes, members of a group or session that the owner or its command led, and processes with the job's mark.
// What cannot be checked counts as living.
//
// It may count strangers: if the job's group or session has ended, a later process with the leader's pid led one
// too, and that leader exited before its members. In another time namespace also while that leader lives.
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
	return job.Survived() != nil || job.bandLives(where) || job.markLives(where)
}

// OfThisBoot returns the job with the id of this boot wherever the boot id is empty, for a lock whose token
// shows that it was taken in this boot.
func (job Job) OfThisBoot() Job {
	where := Here()
	name := func(id Identity) Identity {
		id.Boot = cmp.Or(id.Boot, where.Boot)
		return id
	}
	job.Owner, job.Command = name(job.Owner), name(job.Command)
	job.Survivors = slices.Clone(job.Survivors)
	for i, id := range job.Survivors {
		job.Survivors[i] = name(id)
	}
	return job
}

// Survived returns an error that names a recorded or uncounted process, except the owner, that may live; nil: none.
func (job Job) Survived() error {
	for _, id := range job.Recorded() {
		if id.Life() != Dead {
			return &StuckError{PID: id.PID, Err: errSurvivor}
		}
	}
	if job.Uncounted {
		return job.uncounted()
	}
	return nil
}

// uncounted returns an error if a survivor for which the lock had no room lives, or may live. It looks in the
// groups, sessions and mark of the job, and at the descendants of a living owner. If the owner lives, then the owner,
// this process and its ancestors do not count: they release the lock.
func (job Job) uncounted() error {
	unknown := &StuckError{PID: job.Owner.PID, Err: ErrUncounted}
	lives := job.Owner.Life() == Alive
	k := Membership{Roots: map[Key]bool{job.Owner.Key(): lives}}
	if err := k.AddBands(job); err != nil {
		return err
	}
	if len(k.bands) == 0 && k.mark == nil {
		return unknown
	}
	list, err := k.Look(Table, nothing)
	if err != nil {
		return unknown
	}
	k.Drop(list)
	spared := []int{job.Owner.PID}
	if lives {
		line, err := Ancestors()
		if err != nil {
			return unknown
		}
		spared = append(spared, line...)
	}
	for _, e := range k.Find(list, nothing) {
		if !lives || !slices.Contains(spared, e.PID) {
			return &StuckError{PID: e.PID, Command: e.Command, Err: errSurvivor}
		}
	}
	if _, unseen := k.Unseen(list); unseen || len(k.Doubts()) > 0 {
		return unknown
	}
	return nil
}

// EndingBegan reports whether an ending of the job has recorded members. It is also true if only daemons were recorded.
func (job Job) EndingBegan() bool { return len(job.Survivors) > 0 || job.Uncounted }

// Alive reports whether a process of a dead owner's job is known to live. Unlike Remains it ignores recorded
// processes that cannot be checked, and processes that only the job's mark shows: a person may judge them dead
// (adlock clear). Alive may be true if the process table cannot be read.
func (job Job) Alive() bool {
	if slices.ContainsFunc(job.Recorded(), func(id Identity) bool { return id.Life() == Alive }) {
		return true
	}
	where, err := here()
	return err == nil && job.Owner.seenFrom(where) == samePlace && job.bandLives(where)
}

// Recorded returns the processes that the lock names besides the owner.
func (job Job) Recorded() []Identity {
	list := job.Survivors
	if job.Command.PID != 0 {
		list = append([]Identity{job.Command}, list...)
	}
	return list
}

func (job Job) bandLives(where Identity) bool {
	var list []Entry
	for _, b := range job.bands() {
		if b.gone() {
			continue // the group cannot come back: the process with its number is dead, or a recorded one
		}
		if list == nil {
			var err error
			if list, err = Table(nil); err != nil {
				return true
			}
		}
		if job.Owner.TimeNS != where.TimeNS {
			b.Start = 0 // start times cannot be compared: any member counts
		}
		if b.lives(list) {
			return true
		}
	}
	return false
}

func (job Job) markLives(where Identity) bool {
	m, ok := job.mark(where)
	if !ok {
		return false
	}
	seen, _, err := m.look(Table, nothing)
	return err != nil || len(seen.members) > 0 || len(seen.doubts) > 0
}

// Marked returns the pids of the processes that bear the job's mark; none if the mark cannot be looked for.
func (job Job) Marked() (pids []int, err error) {
	where, err := here()
	if err != nil {
		return nil, err
	}
	m, ok := job.mark(where)
	if !ok {
		return nil, nil
	}
	seen, _, err := m.look(Table, nothing)
	for k := range seen.members {
		pids = append(pids, k.PID)
	}
	slices.Sort(pids)
	return pids, err
}

// Left reports whether a process bears the job's mark, except the owner, this process and its ancestors.
func (job Job) Left() (bool, error) {
	marked, err := job.Marked()
	if err != nil {
		return false, err
	}
	above, err := Ancestors()
	return slices.ContainsFunc(marked, func(pid int) bool { return !slices.Contains(above, pid) }), err
}

func nothing(Key) bool { return false }
