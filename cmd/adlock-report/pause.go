package main

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/google/renameio/v2"

	"adlock/lib/atom"
	"adlock/lib/config"
	"adlock/lib/fault"
	"adlock/lib/insight/terminal"
	"adlock/lib/limit"
	"adlock/lib/lockdir"
	"adlock/lib/lockdir/lockfile"
	"adlock/lib/locker"
	"adlock/lib/policy"
	"adlock/lib/record"
	"adlock/lib/sysfile"
)

// longestWhy is the limit of --why in bytes: each newcomer reads the whole pause.
const longestWhy = 1024

var (
	pauseVerb = verb{
		options: func(q *query) []config.Option {
			return []config.Option{
				q.allOption(),
				{Name: "for", Arg: "D", Help: "how long the pause lasts; never: until adlock resume", Set: config.Duration(&q.pauseFor)},
				{Name: "why", Arg: "TEXT", Help: "the reason that a denied newcomer prints", Set: config.Text(&q.why)},
				{Name: "json", Help: "print the pauses as JSON, one array; durations are seconds", Set: config.Toggle(&q.json)},
			}
		},
		args: true,
		show: func(q *query) error {
			switch lists := q.pauseFor == 0 && q.why == "" && !q.all && len(q.args) == 0; {
			case lists:
				return listPauses(q)
			case q.json:
				return fault.New(fault.Usage, "pause", "--json lists the pauses, and goes with no other option and no NAME")
			case q.pauseFor <= 0:
				return fault.New(fault.Usage, "pause", "wants --for D, or --for never")
			case len(q.why) > longestWhy:
				return fault.New(fault.Usage, "--why", "is longer than "+strconv.Itoa(longestWhy)+" bytes")
			}
			return setPause(q, "pause", record.NewPause(q.pauseFor, fault.OneLine(q.why)))
		},
	}
	resumeVerb = verb{
		options: func(q *query) []config.Option { return []config.Option{q.allOption()} },
		args:    true,
		show: func(q *query) error {
			if err := setPause(q, "resume", record.Pause{}); err != nil {
				return err
			}
			tellStillPaused(q)
			return nil
		},
	}
)

func (q *query) allOption() config.Option {
	return config.Option{Name: "all", Help: "as root: all newcomers of this host; else all atoms that this user has now", Set: config.Toggle(&q.all)}
}

// setPause pauses the named atoms or, with --all, all of the user (for root: all of the host). A zero p ends the pause.
func setPause(q *query, verb string, p record.Pause) error {
	switch {
	case q.all == (len(q.args) > 0):
		return fault.New(fault.Usage, verb, "wants a NAME, or --all")
	case q.all && os.Geteuid() == 0:
		return pauseHost(p)
	case store() != "":
		return fault.New(fault.Usage, verb, "an atom in a store is paused for this host only: as root, with --all")
	}
	dir, err := openLocks()
	if errors.Is(err, fs.ErrNotExist) {
		err = fault.New(fault.Usage, verb, "there are no atoms yet")
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	l := &lockdir.Locker{Dir: dir}
	entries, err := l.List()
	if err != nil {
		return err
	}
	var meant []int
	if !q.all {
		if meant, err = atom.Exact(locker.CalledOf(entries), q.args); err != nil {
			return &fault.Error{Kind: fault.Usage, Object: verb, Err: err}
		}
	}
	for i := range entries {
		if !q.all && !slices.Contains(meant, i) {
			continue
		}
		c := entries[i].Called()
		failed := l.Pause(c.Name, p)
		if failed == nil && c.Atom != (atom.Atom{}) && entries[i].Memory.Pause != p {
			logPause(c.Atom, p)
		}
		err = errors.Join(err, fault.Wrap(dir.Path(c.Name.LastLock()), failed))
	}
	return err
}

func logPause(a atom.Atom, p record.Pause) {
	dir, err := locksBy(lockfile.Create) // no atom may have run on this host yet
	if err != nil {
		fault.Report(err)
		return
	}
	defer dir.Close()
	host, _ := thisHost() // with an error, host is the node name; if that is unknown too, Append fails
	log, err := config.RunlogOf(dir.Path(""), atom.Canonify(cmp.Or(a.Host, host)))
	if err != nil {
		fault.Report(err)
		return
	}
	locker.Recorder{Log: log}.Pause(a, p.Policy(), cmp.Or(os.Getenv("SUDO_USER"), sysfile.UserName(os.Getuid())))
}

func pauseHost(p record.Pause) error {
	var err error
	if p.Since.IsZero() {
		err = os.Remove(locker.PauseFile)
	} else {
		err = renameio.WriteFile(locker.PauseFile, p.Bytes(), 0o644, renameio.WithStaticPermissions(0o644))
	}
	switch {
	case err == nil:
		logPause(atom.Atom{}, p)
	case errors.Is(err, fs.ErrNotExist) && p.Since.IsZero():
		return nil
	}
	return fault.Wrap(locker.PauseFile, err)
}

type paused struct {
	name atom.Name
	policy.Pause
}

func (p paused) object() any {
	return struct {
		Atom atom.Name     `json:"atom,omitempty"`
		Age  limit.Seconds `json:"age_seconds"`
		Left limit.Seconds `json:"left_seconds"`
		Why  string        `json:"why"`
	}{p.name, limit.Seconds(p.Age), limit.Seconds(p.Left), p.Why}
}

func pauses() (all []paused, err error) {
	host, err := locker.HostPause()
	if err != nil {
		return nil, err
	}
	if host.On {
		all = append(all, paused{Pause: host})
	}
	entries, _, err := inDirectory()
	for i := range entries {
		if own := entries[i].Memory.Pause.Policy(); own.On {
			all = append(all, paused{entries[i].Name, own})
		}
	}
	return all, err
}

func tellStillPaused(q *query) {
	all, err := pauses()
	if err != nil {
		fault.Report(err)
	}
	var named []string
	for _, p := range all {
		switch {
		case p.name == "":
			fault.Warn("resume", "all jobs of this host stay "+p.Reason())
		case q.all:
			named = append(named, string(p.name))
		}
	}
	if len(named) > 0 {
		fault.Warn("resume", "paused by name, and not resumed: "+strings.Join(named, " "))
	}
}

func listPauses(q *query) error {
	all, err := pauses()
	if err != nil {
		return err
	}
	if q.json {
		return write(arrayOf(all, paused.object))
	}
	var text []byte
	for _, p := range all {
		text = append(text, terminal.Clean(cmp.Or(string(p.name), "all jobs of this host")+": "+p.Reason()+"; began "+limit.FormatAge(p.Age)+" ago")+"\n"...)
	}
	return write(text)
}
