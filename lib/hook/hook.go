// Package hook starts a command of the user when something has happened that a person should know. Nothing depends on
// the command: it is an orphan (process.StartOrphan), its output is dropped, it is ended after half a minute, and its
// failure only adds a line to the runlog. If asked to, the package also writes to syslog.
package hook

import (
	"cmp"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"adlock/lib/fault"
	"adlock/lib/process"
	"adlock/lib/runlog"
)

// Kind is the kind of an event. The hook gets it as ADLOCK_EVENT.
type Kind string

// Each Start is followed by one Success, Fail or Ended with the same ADLOCK_RUN, unless the process
// that ran the job was killed or its lock was lost. (If a newcomer in a store made the owner end the job, the
// owner's hook gets Fail, and the newcomer's Ended.)
const (
	Start     Kind = "start"     // a run has begun; only if Hook.Runs is set
	Success   Kind = "success"   // a run ended with status 0; only if Hook.Runs is set
	Fail      Kind = "fail"      // a run ended otherwise (perhaps by its own supervisor), or its command cannot be run
	Ended     Kind = "ended"     // a newcomer, or adlock stop, has ended a job; ADLOCK_RUN is that job's
	Stuck     Kind = "stuck"     // a job cannot be ended by a newcomer, or by its own supervisor
	Lost      Kind = "lost"      // a lock was lost before its release: it was removed, another owner has it, or its lease ended
	Starving  Kind = "starving"  // an atom was denied many times in a row
	Overdue   Kind = "overdue"   // a job has passed its --notice, a learned limit or, without a limit, a learned notice
	Paused    Kind = "paused"    // a pause of more than a day has denied a newcomer
	Unwritten Kind = "unwritten" // the runlog, a last lock or a slot could not be written
	NotRun    Kind = "not-run"   // a job was not run: nothing could be locked, or the job that started it had the lock
)

// Hook is the command and what it is started with. A nil Hook does nothing. Several goroutines may use it.
type Hook struct {
	Command string   // for sh -c
	Runs    bool     // start the hook for Start and Success, too
	Syslog  bool     // write events to the system's log as well, except Start and Success
	Env     []string // the hook's environment, without the event's variables; nil: this process's

	mu   sync.Mutex
	held bool
	late []func()
}

// Event is an event that the hook and the system's log get.
type Event struct {
	Kind Kind
	Text string // in words, in one line

	// The run that the event is about has its Token or, without one, its OwnerToken.
	runlog.Event
}

// Tell writes the event to the system's log (Syslog) and starts the hook, but does not wait for it. For Start and
// Success it only starts the hook, and only with Runs. If a hook cannot be started, Tell notes that in log, or warns.
func (h *Hook) Tell(log *runlog.Log, e Event) {
	routine := e.Kind == Start || e.Kind == Success
	if !routine {
		h.Say(e.Text)
	}
	if h == nil || h.Command == "" || routine && !h.Runs {
		return
	}
	start := func() { h.start(log, e) }
	h.mu.Lock()
	if h.held && e.Kind != Overdue && e.Kind != Stuck {
		h.late = append(h.late, start)
		start = func() {}
	}
	h.mu.Unlock()
	start()
}

// Hold delays the hooks until LetGo, as a newcomer that ends this process's job would take a hook for a part of the
// job. Only the hooks for Overdue and Stuck are started at once, as such a job may never end.
func (h *Hook) Hold() {
	h.mu.Lock()
	h.held = true
	h.mu.Unlock()
}

// LetGo starts the hooks that were delayed since Hold.
func (h *Hook) LetGo() {
	h.mu.Lock()
	late := h.late
	h.held, h.late = false, nil
	h.mu.Unlock()
	for _, start := range late {
		start()
	}
}

func (h *Hook) start(log *runlog.Log, e Event) {
	log = cmp.Or(log, &runlog.Log{})
	a := e.Atom()
	args := []string{
		waiterName, log.Dir, log.Host, strconv.FormatInt(log.Max, 10),
		a.Program, a.Host, a.Operator, a.Operand, string(e.Kind), h.Command, log.Store,
	}
	if err := process.StartOrphan(args, "", append(h.Environment(), e.variables()...), -1); err != nil {
		why := "cannot be started: " + err.Error()
		if !note(log, runlog.Event{Program: a.Program, Host: a.Host, Operator: a.Operator, Operand: a.Operand}, e.Kind, why) {
			fault.Warn("the hook for "+string(e.Kind), why)
		}
	}
}

// Environment returns Env, else this process's environment. It omits ADLOCK_HOOK…, ADLOCK_MARK (the hook is no part of
// the job), the variables of another hook's event, and what adlock.sh sets for its helpers alone.
func (h *Hook) Environment() []string {
	env := os.Environ()
	if h != nil && h.Env != nil {
		env = h.Env
	}
	return slices.DeleteFunc(slices.Clone(env), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return name == process.MarkVariable || variable == "GOMAXPROCS=1" || name == "ADLOCK_HOOK" || name == "ADLOCK_HOOK_RUNS" || slices.Contains(ofEvents, name)
	})
}

// longestText is how many bytes of a text are passed on, so that execve(2) takes the hook's environment.
const longestText = 4096

// ofEvents are the variables that describe an event. None has the name of a setting, which would change the locks that
// the hook itself takes.
var ofEvents = strings.Fields("ADLOCK_EVENT ADLOCK_ATOM ADLOCK_TEXT ADLOCK_RUN ADLOCK_PID ADLOCK_OWNER ADLOCK_STATUS ADLOCK_SIGNAL ADLOCK_SECONDS ADLOCK_COUNT")

// variables returns the hook's variables for the event. With these two, a settings file names no hook for its locks.
func (e Event) variables() []string {
	all := []string{
		"ADLOCK_HOOK=:", "ADLOCK_HOOK_RUNS=0",
		"ADLOCK_EVENT=" + string(e.Kind),
		"ADLOCK_ATOM=" + string(e.Atom().Name()),
		"ADLOCK_TEXT=" + fault.Plain(strings.ReplaceAll(e.Text[:min(len(e.Text), longestText)], "\n", "; ")),
	}
	add := func(there bool, name, value string) {
		if there {
			all = append(all, name+"="+value)
		}
	}
	run := e.run()
	add(run != "", "ADLOCK_RUN", run)
	add(e.PID != 0, "ADLOCK_PID", strconv.Itoa(e.PID))
	add(e.Owner != 0, "ADLOCK_OWNER", strconv.Itoa(e.Owner))
	add(e.Status.Set && e.Status.Value >= 0, "ADLOCK_STATUS", strconv.Itoa(e.Status.Value))
	add(e.Signal != "", "ADLOCK_SIGNAL", e.Signal)
	took := e.Duration
	if !took.Set {
		took = e.Age
	}
	add(took.Set, "ADLOCK_SECONDS", strconv.FormatInt(int64(took.Value/time.Second), 10))
	add(e.Count != 0, "ADLOCK_COUNT", strconv.Itoa(e.Count))
	return all
}

// run returns the run's token, as a UUID (RFC 9562) if it has the length of one: some monitors require that.
func (e Event) run() string {
	token := cmp.Or(e.Token, e.OwnerToken)
	switch {
	case strings.HasPrefix(token, "flock:"): // another program, not a run, has locked the file
		return ""
	case len(token) != 32:
		return token
	}
	return token[:8] + "-" + token[8:12] + "-" + token[12:16] + "-" + token[16:20] + "-" + token[20:]
}
