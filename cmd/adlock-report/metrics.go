package main

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/google/renameio/v2"

	"adlock/lib/atom"
	"adlock/lib/config"
	"adlock/lib/fault"
	"adlock/lib/insight/history"
	"adlock/lib/insight/metrics"
	"adlock/lib/locker"
	"adlock/lib/policy"
)

var metricsVerb = verb{
	options: func(q *query) []config.Option {
		return []config.Option{
			{Name: "output", Alias: "o", Arg: "FILE.prom", Help: "replace this file as a whole; its counters go on from what it had", Set: config.Text(&q.output)},
			q.atomOption(), q.allUsersOption(),
		}
	},
	named: true,
	show:  tellMetrics,
}

func tellMetrics(q *query) error {
	now := time.Now()
	o := metrics.Options{Now: now, Until: now}
	if q.output != "" {
		if err := mayReplace(q.output); err != nil {
			return err
		}
		if there, err := os.Stat(q.output); q.output != "-" && (err != nil || there.Mode().IsRegular()) {
			if !strings.HasSuffix(q.output, ".prom") {
				return fault.New(fault.Usage, q.output, "does not end in .prom: node_exporter's textfile collector would not read it")
			}
			if o.Before, err = metrics.ReadValues(q.output); err != nil {
				return fault.Wrap(q.output, err)
			}
		}
		o.Until = now.Add(-metrics.Settled)
	}
	if q.allUsers {
		return q.tellMetricsOfAll(o)
	}
	if err := errAway(o); err != nil {
		return err
	}
	past, err := q.recorded("metrics")
	if err = cmp.Or(err, errAway(o)); err != nil { // it may have vanished meanwhile
		return err
	}
	o.Match, o.State = past.chosen.has, past.state
	o.Locks, o.There = (&account{entries: past.entries}).locksOf(now), thereIn(past.entries)
	m, err := metrics.Collect(history.Read(past.dir), o)
	if err != nil {
		return fault.Wrap(past.dir, err) // do not write incomplete figures: they would look complete
	}
	if q.atom != "" && m.IsEmpty() {
		if err := q.tellNone("metrics", past.dir, past.entries); err != nil {
			return err
		}
	}
	return put(q.output, m.Text())
}

// tellMetricsOfAll writes the metrics of all users, and for each user whether all could be read. With
// --output it prints no errors of other users: else any user could make cron send a mail to root each minute.
func (q *query) tellMetricsOfAll(o metrics.Options) error {
	q.remembers = func(user string) bool { o := o; o.User = user; return !metrics.Kept(o).IsEmpty() }
	all, failed := everyone(q, func(a *account) (*metrics.Metrics, error) {
		o := o
		o.User, o.Cut, o.Match = a.user, a.begins, a.chosen.has
		if a.seen == nil {
			if err := errAway(o); err != nil {
				return nil, err
			}
		}
		o.Locks, o.State, o.There = a.locksOf(o.Now), stateIn(a.entries), thereIn(a.entries)
		m, err := metrics.Collect(a.events, o)
		if err == nil && !a.goesOn() {
			err = fault.New(fault.Unavailable, a.user, "was not read in time")
		}
		if err != nil || a.unread || a.damaged > mostDamaged { // what was not read now is counted later
			return nil, err
		}
		m.Users[0].Omitted += a.omitted
		m.Damaged += a.damaged
		return m, nil
	})
	if all == nil {
		return failed
	}
	m := metrics.None(o)
	for _, of := range all {
		if of.value == nil {
			o.User = of.user
			of.value = metrics.Kept(o)
		}
		of.value.Users[0].Read = of.there && len(of.troubles) == 0
		m.Add(of.value)
	}
	return errors.Join(put(q.output, m.Text()), failed)
}

// errAway returns an error if the lock directory is missing (unmounted?) and the previous file has figures from there.
func errAway(o metrics.Options) error {
	if store() != "" || metrics.Kept(o).IsEmpty() {
		return nil
	}
	dir, err := config.Dir()
	if err == nil {
		_, err = os.Stat(dir)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fault.New(fault.Unavailable, dir, "is missing, and the file has figures from there (if it is gone for good, delete the file)")
	}
	return nil // inDirectory reports other errors
}

// put writes text to output ("": standard output). A file can be read by any collector, whatever the umask.
func put(output string, text []byte) error {
	return save(cmp.Or(output, "-"), text, renameio.WithStaticPermissions(0o644))
}

// locksOf returns the locks, without those that cannot be read and atoms whose words are not known. If an
// atom is in both the lock directory and a store, the lock is the one in the store.
func (a *account) locksOf(now time.Time) []metrics.Lock {
	var locks []metrics.Lock
	byName := map[atom.Name]*locker.Entry{}
	for i := range a.entries {
		byName[a.entries[i].Name] = &a.entries[i]
	}
	for _, e := range byName {
		called := e.Called().Atom
		if e.Err != nil || called == (atom.Atom{}) {
			continue
		}
		l := metrics.Lock{Atom: called}
		if e.Pause.On {
			l.Paused = now.Add(-e.Pause.Age)
		}
		if holder := e.Holder(); holder.Active.Held && holder.Active.Owner != policy.Gone {
			l.Since = holder.Since(now)
			asked := policy.Limits{ExpireAfter: holder.Record.ExpireAfter, Source: holder.Record.Source}
			l.Overdue = policy.Expired(asked, holder.Active) || a.recorderOf(called, holder).Overdue(asked, *holder, holder.Record.Notice) != nil
		}
		locks = append(locks, l)
	}
	return locks
}

func thereIn(entries []locker.Entry) func(atom.Atom) bool {
	names := map[atom.Name]bool{}
	for i := range entries {
		names[entries[i].Name] = true
	}
	return func(a atom.Atom) bool { return names[a.Name()] }
}
