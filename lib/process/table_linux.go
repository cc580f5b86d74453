package process

import (
	"bytes"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Table reads all processes that /proc shows. It is no snapshot of one instant, but contains
// every process that lives at its end: pids that were handed out while the directory was read are
// looked up by number, until no more are handed out meanwhile. So it also sees a process that
// keeps forking its successor and exits.
//
// If the machine forks faster than numbers can be looked up, Table gives that up after a while.
func Table() ([]Entry, error) {
	list, err := steadyTable(lastPID, func() ([]Entry, error) { return readTable("/proc") }, readForked)
	return hiddenChildren(list), err
}

// steadyTable reads a whole table, and reads again while the last pid advances: 1000 times at
// most.
func steadyTable(last func() (int, error), whole func() ([]Entry, error), forked func(list []Entry, after, upTo int) ([]Entry, error)) ([]Entry, error) {
	before, err := last()
	if err != nil {
		return nil, err
	}
	list, err := whole()
	for range 1000 {
		now, unread := last()
		switch {
		case unread != nil:
			return nil, unread
		case err != nil:
			return nil, err
		case now < before: // the numbers started again from the bottom
			list, err = whole()
		case now > before:
			list, err = forked(list, before, now)
		default:
			return list, nil
		}
		before = now
	}
	return list, err
}

// lastPID is the pid or thread id handed out last in this pid namespace. It is 0 if this system
// does not show it (/proc has subset=pid). Then one look has to suffice, and a newcomer may miss
// a process that keeps forking its successor; a supervisor knows whether it has children.
func lastPID() (int, error) {
	text, err := word("/proc/loadavg")
	return lastPIDOf([]byte(text)), err
}

// lastPIDOf is the last field of /proc/loadavg (proc_loadavg(5)).
func lastPIDOf(loadavg []byte) (pid int) {
	f := bytes.Fields(loadavg)
	if len(f) < 5 {
		return pid
	}
	last, err := strconv.Atoi(string(f[4]))
	if err != nil {
		return pid
	}
	return last
}

func readTable(proc string) ([]Entry, error) {
	dir, err := os.Open(proc)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	list := make([]Entry, 0, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err == nil { // else it is not a process
			list, err = readOne(list, pid)
			if err != nil {
				return nil, err
			}
		}
	}
	return list, nil
}

// readForked adds the processes with pids in (after, upTo]. One that is in the list already is
// then there twice, which does no harm.
func readForked(list []Entry, after, upTo int) ([]Entry, error) {
	var err error
	for pid := after + 1; pid <= upTo && err == nil; pid++ {
		if ThreadOf(pid) == 0 {
			list, err = readOne(list, pid)
		}
	}
	return list, err
}

// ThreadOf recognises thread ids: /proc does not list them, but has them. It returns the process
// of the thread; 0: it is the id of a process, or gone.
func ThreadOf(id int) (process int) {
	pid, err := statusNumber(slurp(path(id, "status"), make([]byte, 512)), "Tgid:", 0)
	if err != nil || pid == id {
		return process
	}
	return pid
}

// readOne adds a process unless it has exited since.
func readOne(list []Entry, pid int) ([]Entry, error) {
	e, err := look(pid)
	switch err {
	case nil:
		return append(list, e), nil
	case unix.ESRCH:
		return list, nil
	case unix.EPERM:
		if e, there := hidden(pid); there {
			list = append(list, e)
		}
		return list, nil
	}
	return nil, &fs.PathError{Op: "read", Path: path(pid, "stat"), Err: err}
}
