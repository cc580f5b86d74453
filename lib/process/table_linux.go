package process

import (
	"bytes"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// table reads all processes that /proc shows. It is no picture of one instant,
// but who lives at its end is in it: what was forked while the directory was
// read is looked up by number, until nothing has been forked meanwhile. So a
// process that keeps forking its successor and exits is seen, too.
//
// A machine that forks faster than numbers can be looked up for long makes it
// give up on that.
func table() ([]entry, error) {
	const rounds = 1000
	before := lastPID()
	list, err := readTable()
	for i := 0; err == nil && i < rounds; i++ {
		now := lastPID()
		switch {
		case now == before:
			return hiddenChildren(list), nil
		case now < before: // the numbers began again from the bottom
			list, err = readTable()
		default:
			list, err = readForked(list, before, now)
		}
		before = now
	}
	return hiddenChildren(list), err
}

// lastPID is the pid or thread id handed out last in this pid namespace, the
// last field of /proc/loadavg (proc_loadavg(5)). 0: it cannot be read.
func lastPID() int {
	f := bytes.Fields(slurp("/proc/loadavg", make([]byte, 128)))
	if len(f) < 5 {
		return 0
	}
	pid, err := strconv.Atoi(string(f[4]))
	if err != nil {
		return 0
	}
	return pid
}

func readTable() ([]entry, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	list := make([]entry, 0, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue // not a process
		}
		if list, err = readOne(list, pid); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// readForked adds the processes with pids in (after, upTo]. One that is in the
// list already is there twice then, which does no harm.
func readForked(list []entry, after, upTo int) ([]entry, error) {
	var err error
	for pid := after + 1; pid <= upTo && err == nil; pid++ {
		if threadOf(pid) == 0 {
			list, err = readOne(list, pid)
		}
	}
	return list, err
}

// threadOf tells thread ids apart: /proc does not list them, but has them. It
// returns the process whose thread that is; 0: it is the id of a process, or gone.
func threadOf(id int) int {
	pid, err := statusNumber(slurp(path(id, "status"), make([]byte, 512)), "Tgid:", 0)
	if err != nil || pid == id {
		return 0
	}
	return pid
}

// readOne adds a process, but not one that has exited since.
func readOne(list []entry, pid int) ([]entry, error) {
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
