package process

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Life says whether a process is alive, as far as this process can tell.
type Life int

// Unknown is the zero value: only a proven state is Alive or Dead.
const (
	Unknown Life = iota // cannot be checked: another host or namespace, no boot id, or no inode and no start known
	Alive
	Dead // proven: no such pid, exited with all its threads, the pid is another process's, or a reboot since
)

// Life reports whether the process lives. State Z proves nothing, because a leader may exit before its
// threads; a missing /proc entry proves nothing, because hidepid hides living processes. If the inode of the
// process's pidfd is known, the inode decides, whatever /proc shows and in any time namespace. Without a boot id
// no recorded process is Alive.
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
	case someBoot:
		if id.lifeHere(where) == Dead {
			return Dead
		}
		return Unknown // another process may have its pid and start in this boot
	}
	return id.lifeHere(where)
}

// lifeHere is Life for a process of this pid namespace, by what this boot shows.
func (id Identity) lifeHere(where Identity) Life {
	if !PIDLives(id.PID) {
		return Dead
	}
	now, err := inodeOf(id.PID)
	if err != nil && id.Inode != 0 {
		return Unknown
	}
	if now != 0 && id.Inode != 0 {
		if now == id.Inode {
			return Alive
		}
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
	case e.Start != id.Start || e.Exited:
		return Dead
	}
	return Alive
}

type distance int

const (
	elsewhere distance = iota
	samePlace
	earlierBoot
	someBoot // this boot or an earlier one, of this machine: a process that does not exist now is dead either way
)

// seenFrom compares the places of id and where: in samePlace a pid means the same process. If both boots are known
// and differ, pid namespaces are not compared, as their inodes are reused (lib/protocol.md, 2).
func (id Identity) seenFrom(where Identity) distance {
	sameMachine := id.Machine != "" && id.Machine == where.Machine
	unnamed := id.BootID() == "" || where.BootID() == ""
	switch {
	case bootIDs && unnamed && (id.Boot == "" || id.Boot != where.Boot):
		if sameMachine && id.PIDNS == where.PIDNS {
			return someBoot
		}
		return elsewhere
	case id.Boot != where.Boot && sameMachine:
		return earlierBoot
	case id.Boot != where.Boot, id.PIDNS != where.PIDNS:
		return elsewhere
	// Equal boot ids mean one kernel, whatever /etc/machine-id says: a container has its own, or none.
	case bootIDs || sameMachine:
		return samePlace
	}
	return elsewhere
}
