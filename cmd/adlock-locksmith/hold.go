package main

import (
	"bufio"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/atom"
	"adlock/lib/command"
	"adlock/lib/exit"
	"adlock/lib/lock"
	"adlock/lib/name"
	"adlock/lib/process"
	"adlock/lib/store"
)

// The private statuses by which adlock_get learns of a denial (package hot).
const (
	statusTooSoon = 10
	statusBusy    = 11
	statusFull    = 12
)

// holdArgs are what hold is told: as `adlock mkatomic --lock`, and more.
type holdArgs struct {
	command.Settings
	store string
	lease string
	owner int // pid of the owner-to-be; 0: the parent

	// For the holder: who started it, as that is no ancestor of its own.
	start string // the owner's start time
	kin   string // the owner's ancestors, as PID,PID
}

func newHold() *holdArgs { return &holdArgs{Settings: command.Defaults()} }

func (h *holdArgs) options() []command.Option {
	return append(h.Settings.Options(),
		command.Option{Name: "store", Env: "ADLOCK_STORE", Arg: "URL", Set: command.Text(&h.store)},
		command.Option{Name: "lease", Env: "ADLOCK_LEASE", Arg: "D", Set: command.Text(&h.lease)},
		command.Option{Name: "lock", Set: func(string) error { return nil }}, // what mkatomic wants
		command.Option{Name: "owner", Arg: "PID", Set: command.Number(&h.owner, 1, 1<<30)},
		command.Option{Name: "since", Arg: "UPTIME", Set: command.Uptime(&h.Request.WaitSince)},
		command.Option{Name: "start", Arg: "TIME", Set: command.Text(&h.start)},
		command.Option{Name: "kin", Arg: "PIDS", Set: command.Text(&h.kin)})
}

// parse reads the options and the atom, and returns the lock directory.
func (h *holdArgs) parse(args []string) (dir string, err error) {
	rest, err := command.Parse(h.options(), args)
	if err != nil {
		return "", err
	}
	if len(rest) != 5 {
		return "", exit.New(exit.Usage, "hold", "wants FILE PROGRAM HOST OPERATOR OPERAND")
	}
	if h.Request.Atom, err = name.New(rest[1], rest[2], rest[3], rest[4]); err != nil {
		return "", err
	}
	if want := lock.ActivePrefix + h.Request.Atom.Name(); filepath.Base(rest[0]) != want {
		return "", exit.New(exit.Usage, rest[0], "is not the lock of this atom, which is "+want)
	}
	return filepath.Dir(rest[0]), nil
}

// hold takes the atom for the script that asks and leaves a holder behind: a
// process of its own that tends the lease, watches the script, and releases when
// it is told to or when the script is gone. This process says how that went.
func hold(args []string) (int, error) {
	h := newHold()
	if _, err := h.parse(args); err != nil {
		return 0, err
	}
	owner, err := atom.OwnedBy(h.owner)
	if err != nil {
		return 0, err
	}
	verdict, reason, err := startHolder(owner, args)
	if err != nil {
		return 0, err
	}
	if verdict == atom.Acquired {
		return exit.OK, nil
	}
	h.Tell(atom.Outcome{Verdict: verdict, Reason: reason})
	switch verdict {
	case atom.TooSoon:
		return statusTooSoon, nil
	case atom.Full:
		return statusFull, nil
	}
	return statusBusy, nil
}

// startHolder starts the holder and returns its answer. It hangs up when this
// process is gone, for whoever waits for an atom wants it no longer then.
func startHolder(owner process.Identity, args []string) (atom.Verdict, string, error) {
	ours, theirs, err := store.Socketpair()
	if err != nil {
		return "", "", exit.Wrap("holder", err)
	}
	line := os.NewFile(uintptr(ours), "holder")
	defer line.Close()
	var kin []string
	for _, pid := range process.Ancestors() {
		kin = append(kin, strconv.Itoa(pid))
	}
	holder := append([]string{
		"adlock-locksmith", "holder", "--owner=" + strconv.Itoa(owner.PID),
		"--start=" + strconv.FormatUint(owner.Start, 10), "--kin=" + strings.Join(kin, ","),
	}, args...)
	err = store.StartOrphan(holder, theirs)
	unix.Close(theirs)
	if err != nil {
		return "", "", exit.Wrap("holder", err)
	}
	return readAnswer(line)
}

// answer is what the holder says, in one line: VERDICT STATUS REASON. A status
// other than 0 is an error's.
func answer(o atom.Outcome, err error) string {
	if err != nil {
		return "error " + strconv.Itoa(exit.Code(err)) + " " + oneLine(err.Error()) + "\n"
	}
	return string(o.Verdict) + " 0 " + oneLine(o.Reason) + "\n"
}

func oneLine(text string) string { return strings.ReplaceAll(text, "\n", "; ") }

func readAnswer(line *os.File) (atom.Verdict, string, error) {
	text, err := bufio.NewReader(line).ReadString('\n')
	if err != nil {
		return "", "", exit.New(exit.System, "holder", "died before it had an answer")
	}
	verdict, rest, _ := strings.Cut(strings.TrimSuffix(text, "\n"), " ")
	code, reason, _ := strings.Cut(rest, " ")
	status, err := strconv.Atoi(code)
	switch {
	case err != nil:
		return "", "", exit.Wrap("holder", err)
	case status != exit.OK:
		object, why, _ := strings.Cut(reason, ": ")
		return "", "", exit.New(status, object, why)
	}
	return atom.Verdict(verdict), reason, nil
}

// patience is how long a script waits for its holder to let go.
const patience = 20 * time.Second

// release tells the holder of the acquisition to let go. A holder that is gone
// has lost the lock: 75. So has one that does not answer.
func release(args []string) (int, error) {
	var token string
	status, retry, again, withdraw := -1, false, false, false
	rest, err := command.Parse([]command.Option{
		{Name: "token", Arg: "HEX", Set: command.Text(&token)},
		{Name: "status", Arg: "N", Set: command.Number(&status, 0, 255)},
		{Name: "retry-failed", Set: command.Toggle(&retry)},
		{Name: "again", Set: command.Toggle(&again)},
		{Name: "withdraw", Set: command.Toggle(&withdraw)},
	}, args)
	if err != nil {
		return 0, err
	}
	if len(rest) != 1 || !isToken(token) {
		return 0, exit.New(exit.Usage, "release", "wants --token and one FILE")
	}
	line, err := dial(filepath.Dir(rest[0]), token)
	if err != nil && (again || withdraw) {
		return 0, nil // it has let go, or its lease will run out
	}
	if err != nil {
		return 0, exit.New(exit.Denied, rest[0], "lost: its holder is gone")
	}
	defer line.Close()
	if err := line.SetDeadline(time.Now().Add(patience)); err != nil {
		return 0, exit.Wrap(rest[0], err)
	}
	word := "release "
	if withdraw || retry && status > 0 {
		word = "retry "
	}
	if _, err := line.WriteString(word + strconv.Itoa(status) + "\n"); err != nil {
		return 0, exit.New(exit.Denied, rest[0], "lost: its holder is gone")
	}
	if _, _, err := readAnswer(line); err != nil {
		if exit.Code(err) == exit.System {
			return 0, exit.New(exit.Denied, rest[0], "lost: its holder does not answer")
		}
		return 0, err
	}
	return 0, nil
}

// isToken keeps a token from being a path.
func isToken(text string) bool {
	return text != "" && strings.Trim(text, "0123456789abcdef") == ""
}
