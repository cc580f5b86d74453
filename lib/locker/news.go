package locker

import (
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/hook"
	"adlock/lib/killer"
	"adlock/lib/limit"
	"adlock/lib/policy"
	"adlock/lib/process"
	"adlock/lib/record"
	"adlock/lib/runlog"
)

// A message for a person goes to standard error, in one line, so that cron mails it, and to the hook. Normal
// outcomes print nothing.

// Title returns an atom's operator and operand for a message, cut after 200 bytes.
func Title(a atom.Atom) string {
	const most = 200
	text := a.Operator + " " + a.Operand
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}

func (rec Recorder) tell(kind hook.Kind, e runlog.Event, text string) {
	fault.Warn(titleOf(e), text)
	rec.tellHook(kind, e, text)
}

func (rec Recorder) tellHook(kind hook.Kind, e runlog.Event, text string) {
	rec.Hook.Tell(rec.Log, hook.Event{Kind: kind, Text: titleOf(e) + ": " + text, Event: e})
}

func titleOf(e runlog.Event) string { return Title(e.Atom()) }

func expired(age, expireAfter time.Duration, source policy.Source, idle time.Duration) string {
	if idle > 0 {
		return hadRun(age) + ", past its learned limit of " + limit.Format(expireAfter) + " and idle for " + limit.Format(idle)
	}
	return hadRun(age) + ", " + policy.LimitText(expireAfter, source)
}

func hadRun(age time.Duration) string { return "it had run for " + limit.FormatAge(age) }

func (r *Request) ShowEnding(owner process.Identity, s killer.Signalled) {
	r.StatusLine.Show(func() string {
		return Title(r.Atom) + ": ending process " + strconv.Itoa(owner.PID) + " and its job: " + s.Signal + " to " + strconv.Itoa(s.PID) + " (" + s.Command + ")"
	})
}

func (r *Request) ShowEndingBy(pid int) {
	r.StatusLine.Show(func() string {
		return Title(r.Atom) + ": waiting for process " + strconv.Itoa(pid) + ", which is ending the job"
	})
}

func (rec Recorder) tellEnd(r ReleaseRequest, e runlog.Event, own record.Record) {
	switch {
	case r.Expired:
		rec.tell(hook.Fail, e, "ended by force: "+expired(e.Duration.Value, own.ExpireAfter, own.Source, r.Idle))
	case r.Asked:
		rec.tell(hook.Fail, e, "ended by force, as a newcomer asked for it: "+hadRun(e.Duration.Value))
	case r.Withdraw:
	case r.Untold:
		rec.tellHook(hook.Fail, e, e.Reason)
	case e.Status.Value != 0 && e.Signal != "":
		rec.tellHook(hook.Fail, e, "ended by "+e.Signal)
	case e.Status.Value != 0:
		rec.tellHook(hook.Fail, e, "failed with status "+strconv.Itoa(e.Status.Value))
	default:
		rec.tellHook(hook.Success, e, "succeeded")
	}
}

// EndedByForce reports, once for an acquisition, that the owner in the record is being ended: by the process that
// the runlog names, else by holder (0: unknown). That process calls the hook (Replaced, Stopped), because a hook that
// the owner called would be ended with the job. The error is of the kind fault.Denied, and contains ErrGuarded.
func (rec Recorder) EndedByForce(r ReleaseRequest, own record.Record, holder int) error {
	e := event(runlog.Lost, own.Atom, own.Owner.PID)
	e.Token, e.Status, e.Signal = own.Token, r.Status, r.Signal
	e.Duration = runlog.Some(own.Held())
	e.Owner, e.Reason = holder, "ended by force"
	if ending, found := rec.EndingOf(own); found {
		e.Owner, e.Reason = ending.PID, "ended by force by process "+strconv.Itoa(ending.PID)
		if ending.Kind == runlog.Stop {
			e.Reason += ", as a person asked: " + hadRun(ending.Age.Value)
		} else {
			e.Reason += ": " + expired(ending.Age.Value, ending.ExpireAfter.Value, policy.Source(ending.ExpireAfterFrom), ending.Idle)
		}
	} else if holder != 0 {
		e.Reason += " by process " + strconv.Itoa(holder)
	}
	if !rec.saidLost(own) {
		rec.append(e)
		fault.Warn(titleOf(e), e.Reason)
		rec.Hook.Say(titleOf(e) + ": " + e.Reason)
	}
	return &fault.Error{Kind: fault.Denied, Object: Title(own.Atom), Err: &endedError{e.Reason}}
}

type endedError struct{ reason string }

func (e *endedError) Error() string { return e.reason }
func (e *endedError) Unwrap() error { return ErrGuarded }

// IsEnded reports whether the error is one of EndedByForce.
func IsEnded(err error) bool {
	var ended *endedError
	return errors.As(err, &ended)
}

// EndingOf returns the event by which a newcomer, or adlock stop, began to end the acquisition; false if there is none.
func (rec Recorder) EndingOf(own record.Record) (runlog.Event, bool) {
	for e := range rec.since(own.Atom, own.Token) {
		if (e.Kind == runlog.Expire || e.Kind == runlog.Stop) && e.OwnerToken == own.Token && e.PID != own.Owner.PID {
			return e, true
		}
	}
	return runlog.Event{}, false
}

func (rec Recorder) saidLost(own record.Record) bool {
	for e := range rec.since(own.Atom, own.Token) {
		if e.Kind == runlog.Lost && e.Token == own.Token {
			return true
		}
	}
	return false
}

// denials returns how often the atom was denied as busy or full since it was last taken; other denials do not
// count. Most events of such denials record their number in the row (Count), so the newest of these suffices.
func (rec Recorder) denials(a atom.Atom) (inARow int) {
	for e := range rec.since(a, "") {
		if e.Kind != runlog.Deny || e.Verdict != string(Busy) && e.Verdict != string(Full) {
			continue
		}
		if e.Count > 0 {
			return inARow + e.Count
		}
		inARow++ // an event without Count
	}
	return inARow
}

// alarming reports whether count is first, ten times first, a hundred times first, and so on; false if first is 0.
func alarming(count, first int) bool {
	if first <= 0 {
		return false
	}
	for first < count {
		first *= 10
	}
	return count == first
}

// deniedByPause logs the denial. It reports the pause when that is a day old, and again each time its age has doubled.
func (rec Recorder) deniedByPause(name atom.Name, e *runlog.Event, p policy.Pause) {
	if rec.Log == nil {
		return
	}
	e.Age = runlog.Some(p.Age)
	if logged := rec.append(*e); p.Age < aDay || logged && !rec.isNews(name, p) {
		return
	}
	e.Kind = runlog.Paused
	rec.append(*e)
	rec.tell(hook.Paused, *e, "paused for "+limit.FormatAge(p.Age)+" already, "+p.Figures()+"; to end that: adlock resume NAME or, as root, --all")
}

// toldPauses is a file beside the runlog. It has a line for each report of a pause: the atom's name (or * and the
// host), the beginning of the pause in seconds since the epoch, and its age. Many newcomers may append at once.
const toldPauses = "told.pause"

// isNews reports whether the pause is to be reported, because it never was or its age has doubled since. If so, isNews
// notes that in toldPauses. Pauses that began within an hour count as one: a step of the clock moves the beginning.
func (rec Recorder) isNews(name atom.Name, p policy.Pause) bool {
	if p.Host {
		name = atom.Name("*" + rec.Log.Host)
	}
	f, err := os.OpenFile(rec.Log.Dir+"/"+toldPauses, os.O_RDWR|os.O_APPEND|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return true // the pause is then reported again
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() { // reading a FIFO would not end
		return true
	}
	known, _ := io.ReadAll(f)
	began := time.Now().Add(-p.Age)
	for line := range strings.Lines(string(known)) {
		of, figures, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		text, figure, _ := strings.Cut(figures, " ")
		since, _ := strconv.ParseInt(text, 10, 64) // 0 if the line is cut short
		age, _ := time.ParseDuration(figure)
		if of == string(name) && time.Unix(since, 0).Sub(began).Abs() < time.Hour && p.Age < 2*age {
			return false
		}
	}
	entry := string(name) + " " + strconv.FormatInt(began.Unix(), 10) + " " + p.Age.String() + "\n"
	if len(known) > 0 && known[len(known)-1] != '\n' { // the last line was cut short
		entry = "\n" + entry
	}
	_, _ = f.WriteString(entry)
	return true
}

func (rec Recorder) starving(denied runlog.Event) {
	e := denied
	e.Kind = runlog.Starved
	rec.append(e)
	text := "starving: denied " + strconv.Itoa(e.Count) + " times in a row; " + e.Reason
	wait := "let it wait"
	if e.Wait > 0 { // the newcomer is already waiting
		wait += " longer"
	}
	rec.tell(hook.Starving, e, text+"; "+wait+" (--wait, ADLOCK_WAIT), or raise --slots (ADLOCK_SLOTS)")
}
