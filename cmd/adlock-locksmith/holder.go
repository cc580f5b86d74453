package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/atom"
	"adlock/lib/exit"
	"adlock/lib/lock"
	"adlock/lib/process"
	"adlock/lib/runlog"
	"adlock/lib/store"
)

// holder holds an atom for a script: it is nobody's child, in a session of its
// own, with no descriptor of the script's.
type holder struct {
	*holdArgs
	smith  *store.Locksmith
	dir    *lock.Dir
	socket *os.File
	token  string
	fence  string
	end    chan time.Duration

	asker *os.File // who told us to release; nil: nobody
	told  runlog.Opt[int]
	retry bool // the run failed, and that does not count for IfElapsed
}

// askerLine is the descriptor of the process that started the holder.
const askerLine = 3

// heldUntil is the holder's life. Nobody waits for its status.
func heldUntil(args []string) (int, error) {
	unix.CloseOnExec(askerLine)
	line := os.NewFile(askerLine, "asker")
	h := &holder{holdArgs: newHold(), end: make(chan time.Duration, 1)}
	outcome, err := h.take(args, line)
	if err == nil && outcome.Verdict == atom.Acquired {
		err = h.leaveWord()
		if err != nil {
			err = errors.Join(err, h.release(atom.Return{NoStamp: true}))
		}
	}
	_, told := line.WriteString(answer(outcome, err))
	line.Close()
	if err != nil || outcome.Verdict != atom.Acquired {
		return 0, nil
	}
	// Whoever asked may have gone meanwhile; then the script has, most likely.
	if told != nil && h.Request.Owner.Life() == process.Alive {
		return 0, h.release(atom.Return{NoStamp: true})
	}
	return 0, h.serve()
}

// take takes the atom for the owner, for as long as the asker waits.
func (h *holder) take(args []string, asker *os.File) (atom.Outcome, error) {
	path, err := h.parse(args)
	if err != nil {
		return atom.Outcome{}, err
	}
	if err := h.findOwner(); err != nil {
		return atom.Outcome{}, err
	}
	if h.dir, err = lock.Create(path); err != nil {
		return atom.Outcome{}, err
	}
	if h.smith, err = openIn(path, h.store, h.Request.Atom.Host, h.lease); err != nil {
		return atom.Outcome{}, err
	}
	waiting, giveUp := context.WithCancel(context.Background())
	h.smith.Context, h.smith.Ancestor = waiting, h.isKin
	h.Request.End = h.end
	answered := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, asker) // it says nothing, and is gone when this returns
		select {
		case <-answered:
		default:
			giveUp()
		}
	}()
	outcome, err := h.smith.Take(h.Request)
	close(answered)
	h.token, h.fence = outcome.Token, outcome.Fence
	return outcome, err
}

// findOwner makes sure that the owner is the process that asked.
func (h *holder) findOwner() (err error) {
	if h.Request.Owner, err = process.Of(h.owner); err != nil {
		return exit.Wrap("owner", err)
	}
	if strconv.FormatUint(h.Request.Owner.Start, 10) != h.start {
		return exit.New(exit.Usage, "owner", "is gone")
	}
	return nil
}

func (h *holder) isKin(pid int) bool {
	return strings.Contains(","+h.kin+",", ","+strconv.Itoa(pid)+",")
}

// leaveWord opens the socket and writes the file from which the script reads its
// token: one for each process, as it is read at once.
func (h *holder) leaveWord() (err error) {
	if h.socket, err = listen(h.dir, h.token); err != nil {
		return exit.Wrap(h.dir.Path(socketName(h.token)), err)
	}
	draft, err := h.dir.Draft([]byte(strconv.Itoa(h.owner) + "\ntoken=" + h.token + "\nfence=" + h.fence + "\n"))
	if err != nil {
		return err
	}
	defer draft.Discard()
	return draft.Replace(h.wordName())
}

func (h *holder) wordName() string { return "smith." + strconv.Itoa(h.owner) }

// serve holds the atom until the script says so, or is gone, or has to end.
func (h *holder) serve() error {
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGPIPE)
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	asked := make(chan bool, 1)
	go h.listen(asked)
	gone := make(chan bool, 1)
	go func() { awaitEnd(h.Request.Owner); gone <- true }()
	select {
	case <-asked:
	case <-gone:
	case <-stop: // the machine shuts down, say: no job without its lock
		h.endScript(h.Request.Pause)
	case pause := <-h.end:
		h.endScript(pause)
	}
	return h.release(atom.Return{Status: h.told, NoStamp: h.retry})
}

// endScript ends the script carefully. What cannot be ended keeps the lock.
func (h *holder) endScript(pause time.Duration) {
	killer := process.Killer{Pause: pause, Observe: func(s process.Signalled) { h.smith.RecordSignal(&h.Request, s) }}
	if err := killer.End(process.Job{Owner: h.Request.Owner, FileUID: -1}); err != nil {
		h.smith.Linger(err, func() bool { return h.Request.Owner.Life() != process.Dead })
	}
}

// listen answers on the socket, until somebody wants a release.
func (h *holder) listen(asked chan<- bool) {
	for {
		line, err := accept(h.socket)
		if err != nil {
			return
		}
		text, _ := bufio.NewReader(line).ReadString('\n')
		word, status, _ := strings.Cut(strings.TrimSpace(text), " ")
		if word == "release" || word == "retry" {
			h.retry = word == "retry"
			if n, err := strconv.Atoi(status); err == nil && n >= 0 {
				h.told = runlog.Some(n)
			}
			h.asker = line
			asked <- true
			return
		}
		line.Close()
	}
}

// release gives the atom back, tells whoever asked for it, and cleans up.
func (h *holder) release(r atom.Return) error {
	err := h.smith.Release(r)
	if h.asker != nil {
		_, _ = h.asker.WriteString(answer(atom.Outcome{Verdict: "released"}, err)) // it may be gone
		h.asker.Close()
	}
	return errors.Join(err, h.remove(socketName(h.token)), h.removeWord())
}

func (h *holder) remove(file string) error {
	err := unix.Unlinkat(h.dir.Fd(), file, 0)
	if err == unix.ENOENT {
		return nil
	}
	return exit.Wrap(h.dir.Path(file), err)
}

// removeWord removes the file unless another acquisition of the same process has
// left its own.
func (h *holder) removeWord() error {
	text, err := os.ReadFile(h.dir.Path(h.wordName()))
	if err != nil || !strings.Contains(string(text), h.token) {
		return nil
	}
	return h.remove(h.wordName())
}

// awaitEnd returns when the owner is dead, and the group and session that it may have
// led: as in a lock directory, that still holds the atom.
func awaitEnd(owner process.Identity) {
	const interval = 200 * time.Millisecond
	for owner.Life() != process.Dead || (process.Job{Owner: owner}).Remains() {
		if owner.Life() == process.Dead || !awaitDeath(owner.PID) {
			time.Sleep(interval)
		}
	}
}
