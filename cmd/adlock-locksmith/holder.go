package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/atom"
	"adlock/lib/config"
	"adlock/lib/fault"
	"adlock/lib/hold"
	"adlock/lib/killer"
	"adlock/lib/lease"
	"adlock/lib/lease/watchdog"
	"adlock/lib/lockdir/lockfile"
	"adlock/lib/locker"
	"adlock/lib/process"
	"adlock/lib/runlog"
	"adlock/lib/sysfile"
)

// holder is the process that holds an atom for a script or `adlock hold`. It is a child of init, in its own session.
type holder struct {
	*leaseArgs
	smith  *lease.Locker
	dir    *lockfile.Dir
	socket net.Listener
	token  string
	since  time.Duration // boottime at which the atom was taken
	fence  string
	end    chan time.Duration

	front  *os.File // the connection to `adlock hold`, for the message that the atom is lost; nil: a script asked
	asker  net.Conn // the connection to the process that asked for the release; nil: none
	status runlog.Opt[int]
	untold bool // the request for the release did not say how the run went
	retry  bool // the run does not count for IfElapsed: it failed with --retry-failed, or the owner withdrew it
}

const askerLine = 3

// heldUntil is the verb holder. It runs until the atom is denied or released. No process waits for its exit status.
func heldUntil(args []string) (int, error) {
	unix.CloseOnExec(askerLine)
	line := os.NewFile(askerLine, "asker")
	h := &holder{leaseArgs: newLease(), end: make(chan time.Duration, 1)}
	outcome, err := h.take(args, line)
	if err == nil && outcome.Verdict == locker.Acquired {
		err = h.writeToken()
		if err != nil {
			err = errors.Join(err, h.release(locker.ReleaseRequest{NoStamp: true}))
		}
	}
	unsent := messageOf(outcome, err).send(line)
	if h.named {
		h.front = line
	} else {
		line.Close()
	}
	if err != nil || outcome.Verdict != locker.Acquired {
		return 0, nil
	}
	// If the asker is gone but the owner lives, the script does not know that the atom was acquired for it.
	if unsent != nil && h.Request.Owner.Life() == process.Alive {
		return 0, h.release(locker.ReleaseRequest{NoStamp: true})
	}
	return 0, h.serve()
}

func (h *holder) take(args []string, asker *os.File) (locker.Outcome, error) {
	path, err := h.parse(args)
	if err != nil {
		return locker.Outcome{}, err
	}
	if err := h.findOwner(); err != nil {
		return locker.Outcome{}, err
	}
	if h.dir, err = lockfile.Create(path); err != nil {
		return locker.Outcome{}, err
	}
	h.Hook.Env = config.Environment()
	if h.smith, err = openIn(path, h.Store, h.Request.Atom.Host, cmp.Or(h.lease, config.Lease()), h.Hook); err != nil {
		return locker.Outcome{}, err
	}
	waiting, giveUp := context.WithCancel(context.Background())
	h.smith.Context, h.smith.Ancestor, h.smith.Waits = waiting, h.isKin, sayWaiting(asker)
	h.Request.End = h.end
	answered := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, asker) // Copy returns once the asker, which sends nothing, is gone or has given up
		select {
		case <-answered:
		default:
			giveUp()
		}
	}()
	outcome, err := h.smith.Take(h.Request)
	close(answered)
	h.token, h.fence, h.since = outcome.Token, outcome.Fence, process.Boottime()
	return outcome, err
}

// sayWaiting returns a function that reports to the asker which process the holder waits for. The function reports
// only changes: many messages to a stopped asker would fill the socket, and block the holder.
func sayWaiting(asker *os.File) func(locker.Outcome) {
	var said message
	return func(o locker.Outcome) {
		if m := (message{Waits: true, Blocker: o.Blocker, Node: o.Node}); m != said {
			_ = m.send(asker) // the asker may be gone
			said = m
		}
	}
}

func (h *holder) findOwner() (err error) {
	if h.Request.Owner, err = process.Of(h.Owner); err != nil {
		return fault.Wrap("owner", err)
	}
	if strconv.FormatUint(h.Request.Owner.Start, 10) != h.start {
		return fault.New(fault.Usage, "owner", "is gone")
	}
	if h.Owner == 1 {
		return fault.New(fault.Usage, "owner", "is process 1, which cannot be ended if its lease is lost: start it below an init process")
	}
	return nil
}

func (h *holder) isKin(pid int) bool {
	return strings.Contains(","+h.ancestors+",", ","+strconv.Itoa(pid)+",")
}

// writeToken opens the socket and, unless `adlock hold` asked, writes the file from which the script reads
// its token. One file for each owner is enough, as the script reads it at once.
func (h *holder) writeToken() (err error) {
	if h.socket, err = listen(h.dir, h.token); err != nil {
		return fault.Wrap(h.dir.Path(atom.HolderSocketName(h.token)), err)
	}
	if h.named {
		return nil // the answer has the token
	}
	temp, err := h.dir.TempFile([]byte(strconv.Itoa(h.Owner) + "\ntoken=" + h.token + "\nfence=" + h.fence + "\n"))
	if err != nil {
		return err
	}
	defer temp.Discard()
	return temp.Replace(h.wordName())
}

func (h *holder) wordName() string { return atom.HolderWordName(h.Owner) }

func (h *holder) serve() error {
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGPIPE)
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	asked := make(chan bool, 1)
	go h.listen(asked)
	go sweep(h.dir)
	gone := make(chan bool, 1)
	go func() {
		hold.AwaitDeath(h.Request.Owner)
		hold.AwaitRest(h.job())
		gone <- true
	}()
	for over := false; !over; {
		over = true
		select {
		case <-asked:
		case <-gone:
			if len(asked) == 0 {
				h.retry = h.named && h.RetryFailed // the program has not reported a status, so the run counts as failed
			}
		case <-stop: // for example at shutdown: the job must not run on without its lock
			if over = h.endScript(h.Request.Pause); over {
				fault.Warn(locker.Title(h.Request.Atom), "ended by force: its adlock-locksmith was told to end")
			}
		case pause := <-h.end:
			over = h.endScript(pause)
		}
	}
	return h.release(locker.ReleaseRequest{Status: h.status, NoStamp: h.retry})
}

func (h *holder) job() process.Job {
	return process.Job{Owner: h.Request.Owner, FileUID: -1, Token: h.token, Taken: h.since}
}

// endScript ends the script carefully. It returns false if the script cannot be ended, and so keeps the lock.
func (h *holder) endScript(pause time.Duration) bool {
	if h.front != nil {
		_ = message{Lost: true}.send(h.front) // `adlock hold` may be gone
	}
	ending := killer.Killer{Pause: pause, Observe: func(s killer.Signalled) { h.smith.RecordSignal(&h.Request, s) }}
	watchdog.SpeakFor(h.job()) // before this, the holder has no standard error
	err := ending.End(h.job())
	if err != nil {
		h.smith.OwnStuck(&h.Request, h.token, process.Boottime()-h.since, err)
	}
	return err == nil
}

func (h *holder) listen(asked chan<- bool) {
	var once sync.Once
	for {
		line, err := h.socket.Accept()
		if err != nil {
			time.Sleep(time.Second) // probably no descriptor is free
			continue
		}
		go func() { // so that a stopped process does not block the others
			var w wish
			if json.NewDecoder(line).Decode(&w) != nil {
				line.Close()
				return
			}
			once.Do(func() {
				if w.Status >= 0 {
					h.status = runlog.Some(w.Status)
				}
				h.untold = w.Untold
				h.retry = w.NoStamp || h.RetryFailed && h.status.Value > 0
				h.asker = line
				asked <- true
			})
		}()
	}
}

func (h *holder) release(r locker.ReleaseRequest) error {
	r.Untold = h.asker == nil || h.untold
	done := make(chan error, 1)
	go func() { done <- h.smith.Release(r) }()
	err := h.await(done)
	if h.asker != nil {
		_ = messageOf(locker.Outcome{}, err).send(h.asker) // the asker may be gone
		h.asker.Close()
	}
	return errors.Join(err, h.remove(atom.HolderSocketName(h.token)), h.removeWord())
}

// await returns the result of the release. Until then, await reports to the asker that the holder still tries.
func (h *holder) await(done <-chan error) error {
	for {
		select {
		case err := <-done:
			return err
		case <-time.After(answerTimeout / 4):
			if h.asker != nil {
				_ = message{Waits: true}.send(h.asker) // the asker may be gone
			}
		}
	}
}

func (h *holder) remove(file string) error {
	err := sysfile.Unlinkat(h.dir.Fd(), file)
	if err == unix.ENOENT {
		return nil
	}
	return fault.Wrap(h.dir.Path(file), err)
}

// removeWord removes the token's file, unless another acquisition of this owner has written its own there.
func (h *holder) removeWord() error {
	text, err := os.ReadFile(h.dir.Path(h.wordName()))
	if err != nil || !strings.Contains(string(text), h.token) {
		return nil
	}
	return h.remove(h.wordName())
}
