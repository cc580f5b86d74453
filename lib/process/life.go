package process

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Life is what can be known about a process from here and now.
type Life int

// Unknown is the zero value: only what was proven is Alive or Dead.
const (
	Unknown Life = iota // it cannot be checked from here: another host or namespace, hidden, or no start time recorded
	Alive
	Dead // proven: no such pid, exited with all its threads, the pid is another process's, or the machine was booted since
)

// String is the word for messages: "alive", "dead" or "unknown".
func (l Life) String() string {
	switch l {
	case Alive:
		return "alive"
	case Dead:
		return "dead"
	default:
		return "unknown"
	}
}

// Life tells whether the process lives. A state Z proves nothing, as a leader
// may exit before its threads; nor does a missing /proc entry, as hidepid
// hides the living.
func (id Identity) Life() Life {
	where, err := here()
	if err != nil || id.PID <= 0 {
		return Unknown
	}
	switch id.seenFrom(where) {
	case earlierBoot:
		return Dead
	case elsewhere:
		return Unknown
	}
	if !PIDLives(id.PID) {
		return Dead
	}
	if id.Start == 0 || id.TimeNS != where.TimeNS {
		return Unknown
	}
	e, err := look(id.PID)
	switch {
	case errors.Is(err, unix.ESRCH):
		return Dead
	case err != nil:
		return Unknown
	case e.start != id.Start || e.dead:
		return Dead
	}
	return Alive
}

type distance int

const (
	elsewhere distance = iota
	samePlace
	earlierBoot
)

// seenFrom tells whether pids read where id was read mean the same processes
// where we are. The inode of a pid namespace is used again once the namespace
// is gone, so it counts only within one boot (facts 1).
func (id Identity) seenFrom(where Identity) distance {
	sameMachine := id.Machine != "" && id.Machine == where.Machine
	switch {
	case bootIDs && (id.Boot == "" || where.Boot == ""):
		return elsewhere
	case id.Boot != where.Boot && sameMachine:
		return earlierBoot
	case id.Boot != where.Boot, id.PIDNS != where.PIDNS:
		return elsewhere
	// One boot id is one kernel, whatever /etc/machine-id says: containers
	// have their own or none.
	case bootIDs || sameMachine:
		return samePlace
	}
	return elsewhere
}

// GroupLives tells whether the process group that id led has living members
// that started no earlier than it. Once id is dead such a group still holds
// its atom (design 4). It is false for a process that led no group, and where
// id was read on another boot or elsewhere; it is true where the members
// cannot be seen but the system says that there are some.
//
// A group's id is not handed out as a pid while the group has members. What is
// not noticed: the group ended, its id came round to another leader, and that
// one exited before its own group did.
func (id Identity) GroupLives() bool {
	where, err := here()
	if err != nil || !id.leads() || id.seenFrom(where) != samePlace {
		return false
	}
	if errors.Is(unix.Kill(-id.PGID, 0), unix.ESRCH) {
		return false // what the common case costs: one call, no scan
	}
	list, err := table()
	if err != nil {
		return true
	}
	if id.TimeNS != where.TimeNS {
		id.Start = 0 // start times cannot be compared: any member counts
	}
	// Asked again: the last member may have been reaped before the table was read.
	return id.groupLivesIn(list) && !errors.Is(unix.Kill(-id.PGID, 0), unix.ESRCH)
}

// leads: pid 1 leads too, but kill(-1) means everybody.
func (id Identity) leads() bool { return id.PID > 1 && id.PGID == id.PID }

func (id Identity) groupLivesIn(list []entry) bool {
	seen := false
	for _, e := range list {
		if e.pid == id.PID && id.Start != 0 && e.start != id.Start {
			return false // the pid was handed out again, so the group had ended
		}
		seen = seen || e.pgid == id.PGID
	}
	for _, e := range list {
		if e.pgid == id.PGID && !e.dead && e.start >= id.Start {
			return true
		}
	}
	return !seen // there is a group, but /proc hides it
}
