package process

import "slices"

// Membership finds the processes of a job in a process table (lib/protocol.md, 5).
type Membership struct {
	Roots  map[Key]bool // the owner and the other recorded processes
	Leader Key          // the owner, or the process of AddGroup, if it led a group; else zero
	bands  []band       // the groups and sessions of the job
	mark   *mark        // of the job; nil: it has none
	seen   marked       // the processes with the mark, as Look found them
}

// AddBands adds a job's mark, groups and sessions; none if the job was recorded in another boot or place. It
// fails (ErrUnchecked) if it cannot distinguish their members from other processes.
func (k *Membership) AddBands(job Job) error {
	where, err := here()
	if err != nil {
		return err
	}
	switch job.Owner.seenFrom(where) {
	case samePlace:
	case someBoot:
		if job.bandLives(where) {
			return &StuckError{PID: job.Owner.PID, Err: ErrUnchecked} // processes of a later boot may have these numbers
		}
		return nil
	default:
		return nil
	}
	if m, ok := job.mark(where); ok {
		k.mark = &m
	}
	for _, b := range job.bands() {
		if !b.session && (b.Start == 0 || job.Owner.TimeNS != where.TimeNS) {
			return &StuckError{PID: b.PID, Err: ErrUnchecked} // the ages of its members cannot be compared
		}
		k.bands = append(k.bands, b)
		if b.Key == job.Owner.Key() && !b.session {
			k.Leader = b.Key
		}
	}
	return nil
}

// AddGroup makes the group that a process leads the job's only band; it does nothing if the process leads none.
func (k *Membership) AddGroup(id Identity) {
	if id.PGID == id.PID {
		k.Leader = id.Key()
		k.bands = []band{{Key: k.Leader, within: id.SID}}
	}
}

// Empty reports whether there can be no member.
func (k *Membership) Empty() bool { return len(k.Roots) == 0 && len(k.bands) == 0 && k.mark == nil }

// Look reads a process table. If the job has a mark, Look searches for it in all but roots and known processes.
func (k *Membership) Look(table TableReader, known func(Key) bool) (list []Entry, err error) {
	if k.mark == nil {
		return table(nil)
	}
	k.seen, list, err = k.mark.look(table, func(e Key) bool { return k.Roots[e] || known(e) })
	return list, err
}

// Doubts returns the processes that may bear the mark, without those that Find has found to be members.
func (k *Membership) Doubts() []*Entry { return k.seen.doubts }

// Find returns the living members, parents before children: if a shell's foreground child were ended before
// the shell, the shell would go on to its next command. A process for which known is true was a member
// before, and stays one, whatever its parent is now.
//
// A child is found through its parent only while the parent is in the table: later the parent's pid may be
// another process's. A child whose parent exited before the child was seen is found only by a group,
// a session or the mark of the job.
func (k *Membership) Find(list []Entry, known func(Key) bool) []Entry {
	byParent := make(map[int][]Entry)
	var roots, others []Entry
	for _, e := range list {
		byParent[e.Parent] = append(byParent[e.Parent], e)
		if k.Roots[e.Key()] {
			roots = append(roots, e)
		} else if known(e.Key()) || k.inBand(e) || k.seen.members[e.Key()] {
			others = append(others, e)
		}
	}
	seen := make(map[Key]bool)
	found := k.descend(roots, byParent, seen)
	for _, e := range k.descend(others, byParent, seen) {
		e.ByBand = k.inBand(e) || k.seen.members[e.Key()]
		found = append(found, e)
	}
	k.seen.doubts = slices.DeleteFunc(k.seen.doubts, func(e *Entry) bool { return seen[e.Key()] })
	return found
}

// descend returns the living processes of queue and their descendants by generation, and adds them to seen.
func (k Membership) descend(queue []Entry, byParent map[int][]Entry, seen map[Key]bool) []Entry {
	var found []Entry
	for len(queue) > 0 {
		e := queue[0]
		queue = queue[1:]
		if seen[e.Key()] || e.Exited {
			continue
		}
		seen[e.Key()] = true
		found = append(found, e)
		for _, child := range byParent[e.PID] {
			if e.mayHave(child) {
				queue = append(queue, child)
			}
		}
	}
	return found
}

// inBand reports whether e is in a group or session of the job. A group whose leader is gone is still the
// same group: while it has members, no other group can get its number.
func (k Membership) inBand(e Entry) bool {
	return slices.ContainsFunc(k.bands, func(b band) bool { return b.has(e) })
}

// Whole reports whether the leader has a group and a signal to that group would reach members only.
func (k Membership) Whole(list []Entry) bool {
	return k.Leader.PID > 1 && !slices.ContainsFunc(list, func(e Entry) bool { return e.PGID == k.Leader.PID && !k.inBand(e) })
}

// Drop removes the bands that have ended: another process has their number, or may get it.
func (k *Membership) Drop(list []Entry) {
	k.bands = slices.DeleteFunc(k.bands, func(b band) bool { return b.ended(list) || b.over(list) })
}

// Unseen returns the number of a group whose members the table does not show (band.unseen); false: none.
func (k Membership) Unseen(list []Entry) (group int, is bool) {
	for _, b := range k.bands {
		if b.unseen(list) {
			return b.PID, true
		}
	}
	return 0, false
}
