package process

import (
	"bytes"
	"io/fs"
	"math"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// Table reads all processes that /proc shows, and those of their children that /proc hides. Then it looks up the pids
// that were allocated since, until there are no new ones. So Table finds even a job in which each process forks a
// successor and exits. If the machine forks faster than pids can be looked up, Table stops after a while.
//
// see, unless nil, is called with each shown process as soon as it has been read. If see returns false, the
// process has ended since, and is left out: the processes that it has forked are in the table.
func Table(see func(*Entry) bool) ([]Entry, error) {
	s := scan{see}
	list, err := steadyTable(lastPID, func() ([]Entry, error) { return s.readListed("/proc", nil, 0, math.MaxInt) }, s.readForked)
	return hiddenChildren(list), err
}

type scan struct{ see func(*Entry) bool }

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
		case now < before: // pids have wrapped around
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

// lastPID returns the pid or thread id allocated last in this pid namespace; 0 if this system does not show
// it (subset=pid). A newcomer may then miss a job in which each process forks a successor and exits. A
// supervisor does not: the kernel reports whether it has children.
func lastPID() (int, error) {
	text, err := word("/proc/loadavg")
	return lastPIDOf([]byte(text)), err
}

// lastPIDOf returns the last field of /proc/loadavg (proc_loadavg(5)); 0 if there is none.
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

func (s scan) readListed(proc string, list []Entry, after, upTo int) ([]Entry, error) {
	dir, err := os.Open(proc)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	list = slices.Grow(list, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err == nil && after < pid && pid <= upTo { // other names are no processes, or were not asked for
			list, err = s.readOne(list, pid)
			if err != nil {
				return nil, err
			}
		}
	}
	return list, nil
}

// readForked adds the processes with pids in (after, upTo]; a process may be in the list twice. If many pids
// were allocated, most are unused by now, and reading all of /proc is quicker than looking up each pid.
func (s scan) readForked(list []Entry, after, upTo int) ([]Entry, error) {
	if upTo-after > len(list)/4 {
		return s.readListed("/proc", list, after, upTo)
	}
	var err error
	for pid := after + 1; pid <= upTo && err == nil; pid++ {
		if ThreadOf(pid) == 0 {
			list, err = s.readOne(list, pid)
		}
	}
	return list, err
}

// ThreadOf returns the pid of the process to which the thread with this id belongs; 0 for a process's own id, an
// unused one, or one that /proc hides. /proc does not list threads, but has a directory for each.
func ThreadOf(id int) (process int) {
	pid, err := statusNumber(slurp(path(id, "status"), make([]byte, 512)), "Tgid:", 0)
	if err != nil || pid == id {
		return process
	}
	return pid
}

func (s scan) readOne(list []Entry, pid int) ([]Entry, error) {
	e, err := look(pid)
	switch err {
	case nil:
		if s.see == nil || s.see(&e) {
			list = append(list, e)
		}
		return list, nil
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
