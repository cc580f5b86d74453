package main

import (
	"encoding/json"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/config"
	"adlock/lib/fault"
	"adlock/lib/hold"
	"adlock/lib/lockdir/lockfile"
	"adlock/lib/locker"
)

// keeper is the hold.Keeper of `adlock hold` for an atom in a store. It uses a holder, as a script does:
// this process belongs to the program's job, and could not end that job if the lease were lost.
type keeper struct {
	args []string
	dir  string
	line *os.File // the connection to the holder; nil: not started
	lost chan string
}

func keep(a *hold.Args, args []string) (hold.Keeper, <-chan string, error) {
	dir, err := config.DirOf(a.Store)
	if err != nil {
		return nil, nil, err
	}
	checked, err := lockfile.Create(dir)
	if err != nil {
		return nil, nil, err
	}
	checked.Close()
	k := &keeper{args: args, lost: make(chan string, 1)}
	if k.dir, err = absolute(dir); err != nil {
		return nil, nil, fault.Wrap(dir, err)
	}
	return k, k.lost, fault.Wrap(k.dir, os.Setenv("ADLOCK_DIR", k.dir))
}

// rootPaths makes paths in the environment absolute for the holder, which has another working directory.
func rootPaths() (err error) {
	variables := []string{"ADLOCK_LOGDIR"}
	for _, store := range stores {
		variables = append(variables, store.files...)
	}
	for _, name := range variables {
		if path := os.Getenv(name); path != "" && err == nil {
			if path, err = absolute(path); err == nil {
				err = os.Setenv(name, path)
			}
		}
	}
	return err
}

// absolute is filepath.Abs, but leaves ".." in place (see config.Split).
func absolute(path string) (string, error) {
	if strings.HasPrefix(path, "/") {
		return path, nil
	}
	here, err := os.Getwd()
	return here + "/" + path, err
}

func (k *keeper) Take(r locker.Request) (locker.Outcome, error) {
	line, err := startHolder(r.Owner, k.args)
	if err != nil {
		return locker.Outcome{}, err
	}
	k.line = line
	answered, gaveUp := make(chan struct{}), make(chan bool, 1)
	go func() { gaveUp <- r.Wait > 0 && giveUp(line, r.Asker, answered) }()
	wait := locker.NewWaiting(&r)
	said := json.NewDecoder(line)
	outcome, err := readAnswer(said, func(o locker.Outcome) { wait.Show(&r, o) })
	close(answered)
	r.StatusLine.Clear()
	if err != nil && <-gaveUp {
		const why = "not waited for any longer"
		return locker.Outcome{Verdict: locker.Busy, Reason: why, Figures: why}, nil
	}
	if err == nil && outcome.Verdict == locker.Acquired {
		go k.listen(said)
	}
	return outcome, err
}

// giveUp waits until the asker writes or exits. Then it hangs up, so that the holder stops waiting, and returns true.
// The caller must still read the holder's answer. Once answered is closed, giveUp returns false.
func giveUp(line, asker *os.File, answered <-chan struct{}) bool {
	const interval = 100 * time.Millisecond
	polled := []unix.PollFd{{Fd: int32(asker.Fd()), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(polled, int(interval.Milliseconds()))
		select {
		case <-answered:
			return false
		default:
		}
		if err == nil && n > 0 {
			hangUp(line)
			return true
		}
	}
}

// hangUp closes the direction to the holder. The holder then reads the end of its input, and can still answer.
func hangUp(line *os.File) {
	if raw, err := line.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = unix.Shutdown(int(fd), unix.SHUT_WR) }) // fails if the holder is gone
	}
}

// listen waits until the holder is gone, or reports that it ends the program, and sends the reason to lost.
func (k *keeper) listen(said *json.Decoder) {
	var m message
	switch err := said.Decode(&m); {
	case err != nil:
		k.lost <- "its holder is gone"
	case m.Lost:
		k.lost <- "the job is being ended, as the lease could not be kept or a newcomer asked for it"
	}
}

// Release asks the holder to release the atom. If the owner is dead (Again), the holder may already have released it.
func (k *keeper) Release(r locker.ReleaseRequest) error {
	err := k.release(r)
	if r.Again && fault.KindOf(err) == fault.Denied {
		return nil
	}
	return err
}

func (k *keeper) release(r locker.ReleaseRequest) error {
	status := -1
	if r.Status.Set {
		status = r.Status.Value
	}
	line, err := dial(k.dir, r.Token, string(r.Name))
	if err != nil {
		return err
	}
	defer line.Close()
	return unlock(string(r.Name), line, wish{status, r.NoStamp, r.Untold})
}
