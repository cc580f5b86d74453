package process

import (
	"time"

	"golang.org/x/sys/unix"
)

// Killer ends jobs carefully (design 5). The zero Killer pauses for nothing
// but the last second. It may be used by one goroutine at a time for one job.
type Killer struct {
	// Pause is how long INT, TERM and KILL are each given to work; it is cut
	// short once everybody's death is confirmed. KILL is given a second at
	// least, as the kernel needs a moment too.
	Pause   time.Duration
	Observe func(Signalled) // told of each signal sent; may be nil

	// Record is told of every member before it is signalled, of all that are known
	// before the first is: whoever comes after an ending that failed, or was itself
	// killed, must find out who lives on (design 4). With an error nobody, or nobody
	// more, is signalled, and the error is End's. May be nil, where no lock is
	// held by the job.
	Record func([]Identity) error
}

// Signalled is one signal sent.
type Signalled struct {
	PID     int    // negative: to the whole group of that number
	Signal  string // "CONT", "INT", "TERM" or "KILL"
	Command string // as in Member
}

// A stopped process would keep INT pending, so CONT comes first.
var stages = [][]unix.Signal{
	{unix.SIGCONT, unix.SIGINT},
	{unix.SIGTERM},
	{unix.SIGKILL},
}

// How often members are looked for: rarely enough to leave most of the
// processor to the job, so that it can end.
const (
	shortestRound = 10 * time.Millisecond
	longestRound  = 50 * time.Millisecond
)

// End ends the job: CONT, INT, TERM, KILL, each process once each. It returns
// nil only when everybody's death is confirmed, also when nothing of the job
// was left: a dead owner without a group has no job that could be found.
//
// It returns ErrAncestor where this process or an ancestor belongs to the job, and
// a *StuckError where a member may not be signalled (found before the first
// signal, nothing is sent), cannot be checked, or outlives KILL. Other errors
// are the system's: the process table could not be read.
//
// A member found late gets the signals of the stage it is found in. What
// cannot be found is a process that left the owner's group, or was never in
// it, and whose parent died between two scans (a supervised job has no such
// process on Linux, as its orphans stay with their subreaper); and what a process
// that /proc hides from this one (hidepid) has started and is hidden, too.
func (k Killer) End(job Job) error {
	h, err := job.track()
	if err != nil {
		return err
	}
	return k.end(h)
}

// EndDescendants ends what Descendants returns in the same way, and never this
// process. To miss no orphan, this process must be a subreaper (Linux:
// PR_SET_CHILD_SUBREAPER), and to end it must have somebody reap its children.
func (k Killer) EndDescendants(group bool) error {
	h, err := trackOwn(group)
	if err != nil {
		return err
	}
	return k.end(h)
}

func (k Killer) end(h *hunt) error {
	if h.over() {
		return nil
	}
	defer h.close()
	done, err := h.scan()
	if done || err != nil {
		return err
	}
	// A job that cannot be ended whole is not touched.
	if err := h.obstacle(); err != nil {
		return err
	}
	if err := k.record(h); err != nil {
		return err
	}
	for stage := 1; stage <= len(stages); stage++ {
		done, err := k.run(h, stage)
		if done || err != nil {
			return err
		}
	}
	if h.growing > 0 && k.killGroup(h) { // too few scans to know whether it can be outrun: the machine is busy
		h.await(time.Second)
	}
	if done, err := h.scan(); done || err != nil { // the last may have died while the last scan ran
		return err
	}
	return h.stuck()
}

// run gives one stage its pause. It is true once nothing of the job is left.
func (k Killer) run(h *hunt, stage int) (bool, error) {
	last := stage == len(stages)
	pause := k.Pause
	if last {
		pause = max(pause, time.Second)
		h.growing = 0 // what a job forks before KILL says nothing of whether it can be outrun
	}
	deadline := time.Now().Add(pause)
	longest := deadline.Add(2 * keeperGrace)
	for round := shortestRound; ; {
		turn, err := k.signal(h, stage)
		if err != nil {
			return false, err
		}
		if turn && last || last && h.graced() && time.Now().Before(longest) {
			deadline = later(deadline, time.Now().Add(time.Second)) // the keeper's turn comes late
		}
		if last {
			if err := k.outrun(h, deadline); err != nil {
				return false, err
			}
		}
		h.await(min(round, max(0, time.Until(deadline))))
		began := time.Now()
		done, err := h.scan()
		if done || err != nil {
			return done, err
		}
		if !time.Now().Before(deadline) {
			return false, nil
		}
		round = min(max(2*time.Since(began), shortestRound), longestRound)
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// record tells Record of the members that it has not been told of.
func (k Killer) record(h *hunt) error {
	if k.Record == nil {
		return nil
	}
	var fresh []Identity
	for _, m := range h.living() {
		if !m.noted {
			fresh = append(fresh, m.identity())
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	if err := k.Record(fresh); err != nil {
		return err
	}
	for _, m := range h.living() {
		m.noted = true
	}
	return nil
}

// signal sends the signals of a stage to whoever has not had them. It is true
// where the keeper's turn came.
func (k Killer) signal(h *hunt, stage int) (turn bool, err error) {
	if err := k.record(h); err != nil {
		return false, err
	}
	for _, m := range h.living() {
		if m.stage >= stage || m.err != nil || m.key == h.keeper && !h.alone() {
			continue
		}
		if stage < len(stages) && h.passesOn(m) {
			continue
		}
		m.stage = stage
		turn = turn || m.key == h.keeper
		for _, sig := range stages[stage-1] {
			// To continue is what a supervisor forwards: spare it the event.
			if sig == unix.SIGCONT && m.key == h.keeper && !m.entry.stopped {
				continue
			}
			k.send(m, sig)
		}
	}
	return turn, nil
}

func (k Killer) send(m *member, sig unix.Signal) {
	switch err := m.handle.signal(sig); err {
	case nil:
		k.observe(m.pid, sig, m.entry.command)
	case unix.ESRCH: // died meanwhile; confirmed when next looked at
	default:
		m.err = err
	}
}

func (k Killer) observe(pid int, sig unix.Signal, command string) {
	if k.Observe != nil {
		k.Observe(Signalled{pid, unix.SignalName(sig)[len("SIG"):], command})
	}
}
