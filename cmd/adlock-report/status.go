package main

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"time"

	"adlock/lib/atom"
	"adlock/lib/config"
	"adlock/lib/cronline"
	"adlock/lib/fault"
	"adlock/lib/insight/terminal"
	"adlock/lib/limit"
	"adlock/lib/lockdir/lockfile"
	"adlock/lib/locker"
	"adlock/lib/policy"
	"adlock/lib/runlog"
)

var statusVerb = verb{
	options: func(q *query) []config.Option {
		return []config.Option{
			q.atomOption(),
			config.StoreOption(),
			q.allUsersOption(),
			{Name: "json", Help: "as JSON, one array a line; durations are seconds", Set: config.Toggle(&q.json)},
			{Name: "failed", Help: "only atoms whose last run failed or was ended by force, or that are in trouble; nothing is printed where there is none", Set: config.Toggle(&q.failed)},
			{Name: "exit-code", Help: "exit with 1 if there is a row to show, else with 0: with --failed for Nagios, say", Set: config.Toggle(&q.exitCode)},
			{Name: "watch", Help: "show it again every 2 seconds", Set: config.Toggle(&q.watch)},
		}
	},
	args:      true,
	exclusive: [][]string{{"store", "all-users"}, {"watch", "exit-code"}},
	show:      status,
}

const refresh = 2 * time.Second

func status(q *query) error {
	for {
		text, shows, failed := statusText(q)
		if failed != nil && (text == nil || !(q.allUsers && q.watch)) {
			return errors.Join(write(text), failed)
		}
		if q.watch && !q.json && terminal.Is(os.Stdout) {
			text = append([]byte("\x1b[H\x1b[2J"), text...)
		}
		err := write(text)
		if err == nil && q.exitCode && shows {
			err = errFound
		}
		if err != nil || !q.watch {
			return err
		}
		if failed != nil {
			fault.Report(failed)
		}
		time.Sleep(refresh)
	}
}

func statusText(q *query) (text []byte, shows bool, failed error) {
	now := time.Now()
	all, stray, failed := q.look(now)
	if failed != nil && len(all) == 0 {
		return nil, false, failed // a nil text: there is nothing to show but the error
	}
	rows, err := q.chosen(all)
	if err != nil {
		return nil, false, errors.Join(failed, err)
	}
	if q.failed {
		rows = slices.DeleteFunc(rows, func(r *row) bool { return !r.inTrouble() })
	}
	shows, text = len(rows) > 0, []byte{}
	switch {
	case q.json:
		text = arrayOf(rows, (*row).object)
	case shows && q.failed:
		text = []byte(table(rows, now))
	case shows:
		text = []byte(table(rows, now) + q.strayText(stray, rows) + q.renamedText())
	case !q.failed:
		var why string
		why, err = q.nothing(len(all) > 0)
		text = []byte(folded(why))
	}
	return text, shows, errors.Join(failed, err)
}

// look returns the rows and the slots that no row shows. With --all-users, failed may be one user's error:
// the others have rows then.
func (q *query) look(now time.Time) (rows []*row, stray []locker.Slot, failed error) {
	if !q.allUsers {
		a := &account{}
		if a.entries, a.slots, failed = atomsAndSlots(); failed != nil {
			return nil, nil, failed
		}
		a.host = hostPause()
		pauseAll(a.entries, a.host)
		rows = a.rowsOf(pasts(), now)
		return rows, strays(a.slots, rows), nil
	}
	type seen struct {
		rows  []*row
		stray []locker.Slot
	}
	all, failed := everyone(q, func(a *account) (seen, error) {
		past, err := pastsIn(a.events)
		rows := a.rowsOf(past, now)
		a.omitted += max(0, len(rows)-mostAtoms)
		rows = rows[:min(len(rows), mostAtoms)]
		if slices.ContainsFunc(rows, func(r *row) bool { // its last run is not known, and may have failed
			return r.Last == nil && (!r.Completed.IsZero() || r.State == "idle") && r.Completed.Before(a.begins) && a.chosen.has(r.Atom)
		}) {
			a.tellCut(time.Time{})
		}
		return seen{rows, strays(a.slots, rows)}, err
	})
	for _, of := range all {
		rows, stray = append(rows, of.value.rows...), append(stray, of.value.stray...)
	}
	return rows, stray, failed
}

// renamedText says that locks keep the host's former name; "" if the host was not renamed, or with --all-users.
func (q *query) renamedText() string {
	address, _ := config.Store() // look has returned its error
	host, node := lockfile.Renamed(address)
	if host == node || q.allUsers {
		return ""
	}
	return folded("this machine's node name is " + terminal.Clean(node) + " now; its locks here keep the host " + terminal.Clean(host))
}

func (q *query) chosen(all []*row) ([]*row, error) {
	rows := slices.DeleteFunc(slices.Clone(all), func(r *row) bool { return string(r.Name) != q.atom && !matches(q.atom, r.Atom) })
	if len(q.args) == 0 {
		return rows, nil
	}
	var called []atom.Called
	for _, r := range rows {
		called = append(called, r.Called)
	}
	meant, err := atom.Meant(called, q.args)
	if err != nil {
		return nil, &fault.Error{Kind: fault.Usage, Object: "status", Err: err}
	}
	var wanted []*row
	for _, i := range meant {
		wanted = append(wanted, rows[i])
	}
	return wanted, nil
}

func (q *query) nothing(others bool) (string, error) {
	switch address := store(); {
	case others:
		return atom.ErrNone(q.atom).Error(), nil
	case q.allUsers:
		return "no atoms in any user's lock directory", nil
	case address != "":
		return "no atoms in " + terminal.Clean(address), nil
	}
	dir, err := config.Dir()
	if err != nil {
		return "", err
	}
	if _, missing := os.Stat(dir); errors.Is(missing, fs.ErrNotExist) {
		return "no atoms: " + terminal.Clean(dir) + ": no such directory", nil
	}
	return "no atoms in " + terminal.Clean(dir), nil
}

type rowObject struct {
	atomObject
	Command     string         `json:"command,omitempty"`
	State       string         `json:"state"`
	Since       string         `json:"since,omitempty"`
	Held        *limit.Seconds `json:"held_seconds,omitempty"`
	Owner       *int           `json:"owner,omitempty"`
	UID         *int           `json:"uid,omitempty"`
	User        string         `json:"user,omitempty"`
	Node        string         `json:"node,omitempty"`
	Completed   string         `json:"completed,omitempty"`
	CompletedOn string         `json:"completed_on,omitempty"`
	DueIn       *limit.Seconds `json:"due_in_seconds,omitempty"`
	IfElapsed   *limit.Seconds `json:"if_elapsed_seconds,omitempty"`
	ExpireAfter *limit.Seconds `json:"expire_after_seconds,omitempty"`
	From        policy.Source  `json:"expire_after_from,omitempty"`
	Readers     int            `json:"readers,omitempty"`
	Slot        int            `json:"slot,omitempty"`
	Slots       int            `json:"slots,omitempty"`
	Last        *lastObject    `json:"last,omitempty"`
	Waiting     []waiterObject `json:"waiting,omitempty"`
	Takeable    bool           `json:"takeable"`
	Why         string         `json:"why"`
	Overdue     string         `json:"overdue,omitempty"`
}

type lastObject struct {
	Outcome     string `json:"outcome"`
	Status      *int   `json:"status,omitempty"`
	Signal      string `json:"signal,omitempty"`
	Ended       string `json:"ended"`
	FailedInRow int    `json:"failed_in_a_row,omitempty"`
}

type waiterObject struct {
	PID   int            `json:"pid"`
	Node  string         `json:"node,omitempty"`
	Since string         `json:"since,omitempty"`   // "": unknown, as on another machine
	Most  *limit.Seconds `json:"wait_seconds"`      // null: without end
	Why   string         `json:"verdict,omitempty"` // busy, full, too-soon or paused; "": unknown
}

func (r *row) object() any {
	o := &rowObject{
		atomObject: atomOf(r.Called), Command: cronline.Shown(r.Atom.Command), State: r.State, Since: limit.Instant(r.Since),
		Completed: limit.Instant(r.Completed), CompletedOn: r.CompletedOn, DueIn: seconds(r.DueIn), Takeable: r.Takeable, Why: r.Why, Overdue: r.overdue,
	}
	if r.Held {
		o.Held, o.Owner, o.UID, o.Node = seconds(runlog.Some(r.Age)), &r.Owner, &r.UID, r.Node
		if r.Node == "" {
			o.User = userName(r.UID)
		}
	}
	if r.LimitsKnown {
		o.IfElapsed, o.ExpireAfter = seconds(runlog.Some(r.Limits.IfElapsed)), seconds(runlog.Some(r.Limits.ExpireAfter))
		o.From = r.Limits.Source
	}
	if r.user != "" {
		o.UID, o.User = &r.UID, r.user
	}
	o.Readers, o.Slot, o.Slots = r.Readers, r.Slot, r.Slots
	if r.Last != nil {
		o.Last = &lastObject{r.Last.Outcome.String(), r.Last.Status.Pointer(), r.Last.Signal, limit.Instant(r.Last.End), r.Failed}
	}
	for _, w := range r.Waiting {
		o.Waiting = append(o.Waiting, waiterObject{w.pid, w.node, limit.Instant(w.since), seconds(runlog.Opt[time.Duration]{Value: w.most, Set: w.most != limit.Never}), w.verdict})
	}
	return o
}
