// Package hold is the verb `hold`. It acquires an atom for the program that has started it, the asker, and speaks with
// it in lines, on standard input and output. So programs in any language can do what scripts do with adlock.sh.
//
// The program owns the lock, not this process. If this process is killed, only the program's death frees the atom, and
// a newcomer ends the program when the atom has expired. So nothing runs unlocked. This process only acquires the lock
// and releases it: at a line `release`, at the end of its input, or when the program is dead. Signals for the program
// (Ctrl-C) do not end this process, as the program may have to clean up first, under its lock.
//
// Each answer is a line, whose first word says what happened:
//
//	acquired TOKEN [FENCE]                  the atom is held
//	busy|too-soon|full|paused|stuck REASON  it is not held; the verb ends
//	released                                answers `release [STATUS]` or the end of input; the verb ends
//	lost REASON                             another process may hold the atom; the verb ends
//	error REASON                            trouble; the verb ends, unless a line was not understood
package hold

import (
	"cmp"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/atom"
	"adlock/lib/config"
	"adlock/lib/fault"
	"adlock/lib/lockdir"
	"adlock/lib/locker"
	"adlock/lib/process"
	"adlock/lib/run"
	"adlock/lib/sysfile"
)

// Keeper acquires one atom for its owner, and releases it, as a locker.Locker does.
type Keeper interface {
	Take(locker.Request) (locker.Outcome, error)
	Release(locker.ReleaseRequest) error
}

// Opener opens a store beyond this machine; args are those of the verb. lost gets the reason when another process may
// acquire the atom.
type Opener func(a *Args, args []string) (k Keeper, lost <-chan string, err error)

// Verb is the verb hold. With open nil, adlock-locksmith replaces this process if the lock is in a store.
func Verb(open Opener) config.Verb {
	return config.Verb{
		Name: "hold", Does: "take a lock for the calling program, and hold it until the program says release", Args: "NAME",
		Options: func() []config.Option { return New().Options() }, More: more,
		Run: func(args []string) (int, error) { return hold(open, args) },
	}
}

func more() []config.List {
	return []config.List{
		{Title: "what it says, a line each", Lines: [][2]string{
			{"acquired TOKEN [FENCE]", "the lock is the parent's, or --owner's"},
			{"busy, too-soon, full, paused, stuck", "denied, and why (exit status 75; stuck: 77)"},
			{"released", "the end"},
			{"lost", "the lock is another's, and why (75)"},
			{"error", "what is wrong; it goes on where a line was not understood"},
		}},
		{Title: "what it is told", Lines: [][2]string{
			{"release [STATUS]", "release the lock; STATUS is noted in the runlog"},
			{"the end of input", "release the lock"},
		}},
	}
}

// hold reports errors on standard error and, once it has begun to open the locks, in an answer too.
func hold(open Opener, args []string) (int, error) {
	a := New()
	if err := a.Parse(args); err != nil {
		return 0, err
	}
	if sysfile.IsTerminal(0) { // an interactive shell would own the lock, and a newcomer could end that shell
		return 0, fault.New(fault.Usage, "standard input", "is a terminal: a program speaks to hold through pipes, a person says adlock run")
	}
	if config.IsRemote(a.Store) && open == nil {
		return 0, config.Become(config.Locksmith, "for a store beyond this machine", "hold", args)
	}
	if err := a.findOwner(); err != nil {
		return 0, err
	}
	stepAside()
	h := &holding{Args: a}
	err := h.open(open, args)
	if err != nil {
		return 0, sayError(err)
	}
	return h.hold()
}

const (
	lost    = "lost"
	trouble = "error"
)

func sayError(err error) error {
	word := trouble
	if fault.KindOf(err) == fault.Denied {
		word = lost
	}
	_ = say(word, err.Error())
	return err
}

// say writes an answer, but not by os.Stdout: without a reader, SIGPIPE would then end this process, and the lock would
// stay.
func say(words ...string) error {
	text := fault.OneLine(strings.TrimSpace(strings.Join(words, " "))) + "\n"
	_, err := sysfile.Write(1, []byte(text))
	return err
}

// stepAside leaves the owner's session, so that signals to the program's terminal, group or session do not reach this
// process. It also catches the signals that would end this process: if it ignored them, so would a hook.
func stepAside() {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	_, _ = unix.Setsid() // fails in the leader of a process group (see awaitRest)
}

type holding struct {
	*Args
	keeper Keeper
	path   string        // of the lock directory; "": the atom is in a store
	lost   <-chan string // gets the reason when the lock is lost; nil for a lock directory, where a newcomer first ends the owner
	token  string
	since  time.Duration // boottime at which the atom was taken
}

func (h *holding) open(open Opener, args []string) (err error) {
	if h.Remote = config.IsRemote(h.Store); h.Remote {
		h.keeper, h.lost, err = open(h.Args, args)
		if dir, failed := config.DirOf(h.Store); err == nil && failed == nil && h.From["host"].Place == config.Unsaid {
			config.TellNoHost(dir, h.Store)
		}
		return err
	}
	path, err := config.DirOf(h.Store)
	if err != nil {
		return err
	}
	config.TellMistakes(path, run.Options)
	rec, err := config.RecorderOf(path, atom.Canonify(h.Request.Atom.Host), h.Hook)
	if err != nil {
		return err
	}
	k, err := lockdir.Open(path, rec)
	if err != nil {
		return rec.NotRun(&h.Request, path, locker.Outcome{}, err)
	}
	h.keeper, h.path = k, path
	return nil
}

// notRun records why nothing was acquired in a lock directory; adlock-locksmith does so for a store.
func (h *holding) notRun(o locker.Outcome, why error) error {
	k, is := h.keeper.(*lockdir.Locker)
	if !is {
		return why
	}
	return k.NotRun(&h.Request, h.path, o, why)
}

func (h *holding) hold() (int, error) {
	gone := h.ownersEnd()
	outcome, err := h.acquire(gone)
	switch {
	case outcome.Verdict == locker.Stuck:
		_ = say(string(locker.Stuck), err.Error()) // the asker may be gone
		return 0, err
	case err != nil:
		return 0, sayError(h.notRun(outcome, err))
	case outcome.Verdict != locker.Acquired:
		return h.denied(outcome)
	}
	h.token, h.since = outcome.Token, process.Boottime()
	if err := say(string(locker.Acquired), outcome.Token, outcome.Fence); err != nil {
		// The asker does not know that it has the atom.
		r := h.releaseRequest(ending{unreported: true})
		r.NoStamp = true
		return 0, cmp.Or(h.keeper.Release(r), fault.Wrap("standard output", err))
	}
	return h.finish(h.serve(gone))
}

// acquire acquires the atom. If the owner dies before acquire returns, this process exits, and the next newcomer
// reclaims the lock. Any input ends a wait.
func (h *holding) acquire(gone <-chan struct{}) (locker.Outcome, error) {
	taken := make(chan struct{})
	defer close(taken)
	go exitAtDeath(gone, taken, os.Exit)
	h.Request.Asker = os.Stdin
	r := h.Request
	r.Keep = func(func()) {} // the place in the queue is kept until this process ends
	return h.keeper.Take(r)
}

// exitAtDeath ends this process if the owner dies before the atom is acquired. If both channels are closed, select
// chooses at random, so exitAtDeath then checks taken.
func exitAtDeath(gone, taken <-chan struct{}, exit func(status int)) {
	select {
	case <-taken:
	case <-gone:
		select {
		case <-taken:
		default:
			exit(fault.StatusDenied)
		}
	}
}

func (h *holding) denied(o locker.Outcome) (int, error) {
	dir, err := config.DirOf(h.Store)
	if err != nil {
		return 0, err
	}
	h.Tell(o, dir)
	_ = say(string(o.Verdict), o.Figures) // the asker may be gone
	return fault.StatusDenied, nil
}

func (h *holding) finish(e ending) (int, error) {
	if e.lost != "" { // the process that ends the program reports the reason on its standard error
		_ = say(lost, e.lost) // the program may be gone
		return fault.StatusDenied, nil
	}
	if e.unreported && ends(h.Request.Owner) && !h.awaitRest() {
		return fault.StatusOK, nil
	}
	switch err := h.keeper.Release(h.releaseRequest(e)); {
	case err == nil:
		_ = say("released") // the asker may be gone
		return fault.StatusOK, nil
	case config.ShouldReport(err):
		return 0, sayError(err)
	default: // the error has been reported on standard error
		_ = say(lost, err.Error())
		return fault.StatusDenied, nil
	}
}

// releaseRequest is the request to release the atom after this ending. With --retry-failed, a run that ended
// without a line `release` counts as failed.
func (h *holding) releaseRequest(e ending) locker.ReleaseRequest {
	r := locker.ReleaseRequest{
		Name: h.Request.Atom.Name(), Token: h.token, PID: h.Request.Owner.PID, Status: e.status,
		NoStamp: h.RetryFailed && (e.unreported || e.status.Value != 0), ForScript: true, Untold: e.unreported,
	}
	if ends(h.Request.Owner) {
		r.Again = true // a newcomer may have reclaimed the lock already
	} else {
		r.GuardWait = 4 * min(h.Request.Pause, time.Hour)
	}
	return r
}
