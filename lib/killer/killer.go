// Package killer ends the whole job of a lock's owner carefully (lib/protocol.md, 5): CONT, INT, TERM, KILL.
// It signals only identified processes, and each of them at most once with each signal. A job that forks faster
// than it can be scanned gets KILL, perhaps repeatedly, to its process group as well.
package killer

import (
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/process"
	"adlock/lib/sysfile"
)

// Killer ends jobs, one at a time. The zero Killer pauses only after KILL.
type Killer struct {
	// Pause is the time that INT, TERM and KILL each get to take effect; it ends early once all
	// deaths are confirmed. KILL gets at least a second, as the kernel may need that long.
	Pause   time.Duration
	Observe func(Signalled) // called for each signal sent; may be nil

	// Record is called with all known members before the first signal, and with a member found later before its
	// first signal. So the next newcomer finds out which members live if this ending fails (lib/protocol.md, 5). If
	// Record returns an error, no further signal is sent, and End returns that error. Record may be nil, as for
	// a job whose lock is not a file but in a store.
	Record func([]process.Identity) error

	// Enough reports whether another process has already ended the job. If so, End sends no further
	// signals and returns nil. Enough may be nil.
	Enough func() bool
}

// Signalled is one signal sent.
type Signalled struct {
	PID     int    // negative: the signal went to the process group of that number
	Signal  string // "CONT", "INT", "TERM" or "KILL"
	Command string // as the process table shows it; "" for a group
}

// A stopped process would keep INT pending, so CONT comes first.
var stages = [][]unix.Signal{
	{unix.SIGCONT, unix.SIGINT},
	{unix.SIGTERM},
	{unix.SIGKILL},
}

// End ends the job, and returns nil once all deaths are confirmed, or at once if it finds no living process of the job.
//
// The error is ErrAncestor if this process or an ancestor belongs to the job, and a *process.StuckError if a
// member may not be signalled, cannot be checked, or outlives KILL. If such a member is known before the
// first signal, no signal is sent. Other errors are the system's, or those of Record.
//
// A member that is found late first gets the signals of the current stage or, if it was forked after they were sent, of
// the next. End cannot find a member if /proc hides it and its parent, or if it is outside the job's group, session and
// mark and its parent died between two scans. (On Linux a living supervisor inherits it.)
func (k Killer) End(job process.Job) error {
	return k.end(track(job))
}

// EndDescendants ends the processes that Descendants returns, as End ends a job, but never this process. This
// process must be a subreaper (Linux), or orphans are missed.
func (k Killer) EndDescendants(group bool) error {
	return k.end(trackOwn(group))
}

func (k Killer) end(h *tree, err error) error {
	if err != nil || h.membership.Empty() {
		return err
	}
	defer h.close()
	done, err := h.check()
	if done || err != nil {
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
	return k.outlived(h)
}

// outlived kills the group of a job that still forks, and scans once more. If a member is left, the error names it.
func (k Killer) outlived(h *tree) error {
	if h.growing > 0 && k.killGroup(h) { // on a busy machine, mostGrowing scans may not have fitted into the last stage
		h.await(time.Second)
	}
	if done, err := h.scan(); done || err != nil { // the last member may have died during the last scan
		return err
	}
	return h.stuck()
}

// run sends a stage's signals and waits out its pause. done is true if the job has no process left or Enough returns
// true.
func (k Killer) run(h *tree, stage int) (done bool, err error) {
	last := stage == len(stages)
	if last {
		h.growing = 0 // count only scans after KILL: it may stop a job that forked until then
	}
	pause, longest := k.pauses(stage)
	begun := time.Now()
	for deadline := begun.Add(pause); ; {
		if k.Enough != nil && k.Enough() {
			return true, nil
		}
		turn, err := k.signal(h, stage)
		if err != nil {
			return done, err
		}
		if last {
			deadline = extended(deadline, time.Now(), begun.Add(longest), turn, h.graced())
			if err := k.outrun(h, deadline); err != nil {
				return done, err
			}
		}
		h.await(min(betweenScans(h.took), time.Until(deadline)))
		if done, err = h.scan(); done || err != nil || !time.Now().Before(deadline) && !(last && h.keeperIsDue()) {
			return done, err
		}
	}
}

// pauses returns how long a stage lasts, and how long at most if it is extended for the keeper.
func (k Killer) pauses(stage int) (pause, longest time.Duration) {
	pause = k.Pause
	if stage == len(stages) {
		pause = max(pause, time.Second)
	}
	return pause, pause + 2*keeperGrace
}

// extended returns the deadline of the last stage. It is at least a second from now if the keeper has just been
// signalled (turn) or, until longest, if only the keeper is left and may still exit by itself (graced).
func extended(deadline, now, longest time.Time, turn, graced bool) time.Time {
	if second := now.Add(time.Second); second.After(deadline) && (turn || graced && now.Before(longest)) {
		return second
	}
	return deadline
}

// betweenScans returns the pause after a scan that lasted took. It leaves the job processor time in which to end.
func betweenScans(took time.Duration) time.Duration {
	return min(max(2*took, 10*time.Millisecond), 50*time.Millisecond)
}

// record calls Record with the members that are not recorded yet.
func (k Killer) record(h *tree) error {
	if k.Record == nil {
		return nil
	}
	var fresh []process.Identity
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

// signal records new members, then sends the signals of a stage to the members that have not had them, if they
// may be signalled now. turn is true if it signalled the keeper, whose turn comes after all others.
func (k Killer) signal(h *tree, stage int) (turn bool, err error) {
	if err := k.record(h); err != nil {
		return turn, err
	}
	if h.stage < stage {
		h.stage, h.since = stage, process.StartNow()
	}
	for _, m := range h.living() {
		if m.stage >= stage || m.err != nil || m.Key == h.keeper && !h.alone() {
			continue
		}
		if stage < len(stages) && h.passesOn(m) {
			continue
		}
		m.stage = stage
		turn = turn || m.Key == h.keeper
		for _, sig := range stages[stage-1] {
			// A running supervisor would only forward CONT to its job.
			if sig == unix.SIGCONT && m.Key == h.keeper && !m.entry.Stopped {
				continue
			}
			k.send(m, sig)
		}
	}
	return turn, nil
}

func (k Killer) send(m *member, sig unix.Signal) {
	switch err := m.Handle.Signal(sig); err {
	case nil:
		k.observe(m.PID, sig, m.entry.Command)
	case unix.ESRCH: // the member has died: the next scan confirms its death
	default:
		m.err = err
	}
}

func (k Killer) observe(pid int, sig unix.Signal, command string) {
	if k.Observe != nil {
		k.Observe(Signalled{pid, sysfile.SignalName(sig), command})
	}
}
