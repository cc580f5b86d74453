package main

import (
	"encoding/json"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/atom"
	"adlock/lib/config"
	"adlock/lib/fault"
	"adlock/lib/hold"
	"adlock/lib/locker"
	"adlock/lib/process"
	"adlock/lib/run"
	"adlock/lib/sysfile"
)

type leaseArgs struct {
	hold.Args
	lease string
	named bool // started by `adlock hold`, which keeps listening to its holder

	// These are for the holder: as a child of init, it does not find the owner among its ancestors.
	start     string // the owner's start time
	ancestors string // the owner's ancestors, as PID,PID
}

func newLease() *leaseArgs {
	h := &leaseArgs{Args: *hold.New()}
	h.Remote, h.Library = true, true
	return h
}

func (h *leaseArgs) options() []config.Option {
	return append(h.ScriptOptions(h.Args.Options()),
		config.Option{Name: "lease", Env: "ADLOCK_LEASE", Arg: "D", Set: config.Text(&h.lease)},
		config.Option{Name: "start", Arg: "TIME", Set: config.Text(&h.start)},
		config.Option{Name: "ancestors", Arg: "PIDS", Set: config.Text(&h.ancestors)})
}

// parse reads the options and the atom, and returns the lock directory. The library passes the lock's file
// and the four parts of the atom; `adlock hold` passes a name.
func (h *leaseArgs) parse(args []string) (dir string, err error) {
	rest, err := h.From.Parse(h.options(), args)
	if err != nil {
		return "", config.ForScript(h.options(), err)
	}
	switch len(rest) {
	case 1:
		h.named = true
		err = h.Name(rest[0])
	case 5:
		h.Request.Atom, err = atom.New(rest[1], rest[2], rest[3], rest[4])
	default:
		return "", config.LibraryOnly("lease")
	}
	if err != nil {
		return "", err
	}
	if err := h.Complete(h.options()); err != nil {
		return "", config.ForScript(h.options(), err)
	}
	if h.named {
		return config.DirOf(h.Store)
	}
	if err := h.RefuseTick(); err != nil {
		return "", err
	}
	return h.DirectoryOf(rest[0])
}

// takeLease acquires the atom for the calling script and leaves a holder behind. The holder renews the lease and
// watches the script. It releases the atom when the script asks for the release or is gone.
func takeLease(args []string) (int, error) {
	h := newLease()
	dir, err := h.parse(args)
	if err != nil {
		return 0, err
	}
	owner, err := locker.OwnedBy(h.Owner)
	if err != nil {
		return 0, err
	}
	config.TellMistakes(dir, run.Options)
	line, err := startHolder(owner, args)
	if err != nil {
		return 0, err
	}
	defer line.Close()
	wait := locker.NewWaiting(&h.Request)
	outcome, err := readAnswer(json.NewDecoder(line), func(o locker.Outcome) { wait.Show(&h.Request, o) })
	h.Request.StatusLine.Clear()
	if own, failed := sysfile.NodeName(); failed == nil && own == h.Request.Atom.Host && os.Getenv("ADLOCK_HOST") == "" {
		config.TellNoHost(dir, h.Store) // adlock.sh passes a host even if none is set
	}
	if err != nil && owner.Life() == process.Dead {
		err = fault.Untold{Err: err}
	}
	if err != nil {
		return 0, err
	}
	if outcome.Verdict == locker.Acquired {
		return fault.StatusOK, nil
	}
	h.Tell(locker.Outcome{Verdict: outcome.Verdict, Reason: outcome.Reason}, dir)
	return config.Answer(outcome.Verdict), nil
}

// startHolder starts the holder, which answers on line. If line is closed before the answer, the holder gives up.
func startHolder(owner process.Identity, args []string) (line *os.File, err error) {
	if err = rootPaths(); err != nil {
		return nil, fault.Wrap("holder", err)
	}
	ours, theirs, err := sysfile.SocketPair()
	if err != nil {
		return nil, fault.Wrap("holder", err)
	}
	var ancestors []string
	above, _ := process.Ancestors() // those above an unknown one are missing
	for _, pid := range above {
		ancestors = append(ancestors, strconv.Itoa(pid))
	}
	holder := append([]string{
		"adlock-locksmith", "holder", "--owner", strconv.Itoa(owner.PID),
		"--start=" + strconv.FormatUint(owner.Start, 10), "--ancestors=" + strings.Join(ancestors, ","),
	}, args...)
	err = process.StartOrphan(holder, "/", os.Environ(), theirs)
	unix.Close(theirs)
	if err != nil {
		unix.Close(ours)
		return nil, fault.Wrap("holder", err)
	}
	return os.NewFile(uintptr(ours), "holder"), nil
}

const answerTimeout = 20 * time.Second // how long a holder that is asked to release the lock may be silent

func release(args []string) (int, error) {
	var token string
	status, retry, again, withdraw := -1, false, false, false
	options := []config.Option{
		{Name: "token", Arg: "HEX", Set: config.Text(&token)},
		{Name: "status", Arg: "N", Set: config.Number(&status, 0, 255)},
		{Name: "again", Set: config.Toggle(&again)},
		{Name: "withdraw", Set: config.Toggle(&withdraw)},
	}
	rest, err := config.Parse(append(options, config.Origins{}.Setting([]config.Option{config.Bind("retry-failed", config.Toggle(&retry))})), args)
	if err != nil {
		return 0, err
	}
	if len(rest) != 1 || !isToken(token) {
		return 0, config.LibraryOnly("release")
	}
	dir, _ := config.Split(rest[0])
	line, err := dial(dir, token, rest[0])
	if fault.KindOf(err) == fault.Denied && (again || withdraw) {
		return 0, nil // the holder has released the lock, or the lease will expire
	}
	if err != nil {
		return 0, err
	}
	defer line.Close()
	return 0, unlock(rest[0], line, wish{status, withdraw || retry && status > 0, withdraw})
}

// unlock asks the holder at the other end of the connection to release the lock, and waits for its answer. If
// the holder is gone, or does not answer, the lock counts as lost (fault.Denied).
func unlock(lock string, line net.Conn, w wish) error {
	goOn := func(locker.Outcome) { _ = line.SetDeadline(time.Now().Add(answerTimeout)) } // cannot fail: the line is open
	goOn(locker.Outcome{})
	if err := json.NewEncoder(line).Encode(w); err != nil {
		return fault.New(fault.Denied, lock, "lost: its holder is gone")
	}
	_, err := readAnswer(json.NewDecoder(line), goOn)
	if err != nil && fault.KindOf(err) == fault.System {
		return fault.New(fault.Denied, lock, "lost: its holder does not answer")
	}
	return err
}

type wish struct {
	Status  int // below 0: unknown
	NoStamp bool
	Untold  bool
}

// isToken reports whether text has only the characters of a token, so that it cannot be a path.
func isToken(text string) bool {
	return text != "" && strings.Trim(text, "0123456789abcdef") == ""
}
