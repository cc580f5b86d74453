package process

import "slices"

// kin says who belongs to a job, over one process table (design 5).
type kin struct {
	roots  map[key]bool // the owner and what else the lock recorded
	bands  []band       // the groups and sessions that they led
	leader key          // the owner where it leads a group, else zero
}

// find returns the members, parents before children: a shell whose foreground
// child is ended first goes on to its next command. The dead are left out.
//
// A parent must itself be in the table, as the pid of a dead one may be
// another's by now. So this cannot know a child whose parent, a member, died
// before the child was ever seen, unless it is in the owner's group.
//
// known are those who were members once: they stay it however they were
// reparented since.
func (k kin) find(list []entry, known func(key) bool) []entry {
	byParent := make(map[int][]entry)
	var roots, others []entry
	for _, e := range list {
		byParent[e.ppid] = append(byParent[e.ppid], e)
		if k.roots[e.key()] {
			roots = append(roots, e)
		} else if known(e.key()) || k.inBand(e) {
			others = append(others, e)
		}
	}
	seen := make(map[key]bool)
	found := k.descend(roots, byParent, seen)
	return append(found, k.descend(others, byParent, seen)...)
}

// descend returns the queue and all below it, generation by generation, save
// whom it has seen before.
func (k kin) descend(queue []entry, byParent map[int][]entry, seen map[key]bool) []entry {
	var found []entry
	for len(queue) > 0 {
		e := queue[0]
		queue = queue[1:]
		if seen[e.key()] || e.dead {
			continue
		}
		seen[e.key()] = true
		found = append(found, e)
		for _, child := range byParent[e.pid] {
			if e.mayHave(child) {
				queue = append(queue, child)
			}
		}
	}
	return found
}

// inBand: members of a group that its leader has left keep its number taken, so
// it is still the same group.
func (k kin) inBand(e entry) bool {
	for _, b := range k.bands {
		if b.has(e) {
			return true
		}
	}
	return false
}

// whole tells that one signal to the leader's group would reach members only.
func (k kin) whole(list []entry) bool {
	for _, e := range list {
		if e.pgid == k.leader.pid && !k.inBand(e) {
			return false
		}
	}
	return k.leader.pid > 1
}

// drop leaves out the bands whose number is another's by now, or may come to be.
func (k *kin) drop(list []entry) {
	k.bands = slices.DeleteFunc(k.bands, func(b band) bool { return b.ended(list) || b.over(list) })
}

// unseen returns the number of a group that has members and shows none.
func (k kin) unseen(list []entry) (group int, is bool) {
	for _, b := range k.bands {
		if b.unseen(list) {
			return b.pid, true
		}
	}
	return 0, false
}
