package main

import (
	"cmp"
	"errors"
	"io/fs"
	"iter"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/renameio/v2"

	"adlock/lib/atom"
	"adlock/lib/config"
	"adlock/lib/fault"
	"adlock/lib/insight/history"
	"adlock/lib/insight/terminal"
	"adlock/lib/limit"
	"adlock/lib/lockdir"
	"adlock/lib/lockdir/lockfile"
	"adlock/lib/locker"
	"adlock/lib/policy"
	"adlock/lib/runlog"
	"adlock/lib/way"
)

func openLocks() (*lockfile.Dir, error) { return locksBy(lockfile.Open) }

func locksBy(open func(path string) (*lockfile.Dir, error)) (*lockfile.Dir, error) {
	path, err := config.Dir()
	if err != nil {
		return nil, err
	}
	return open(path)
}

func thisHost() (string, error) {
	address, _ := config.Store() // a verb that needs the store reports the error
	return lockfile.Host(address, false)
}

// atomsAndSlots reads the store if one is used, else the lock directory. A missing directory has no atoms.
func atomsAndSlots() ([]locker.Entry, []locker.Slot, error) {
	if store() != "" {
		return stored()
	}
	return inDirectory()
}

func inDirectory() ([]locker.Entry, []locker.Slot, error) {
	dir, err := openLocks()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	defer dir.Close()
	return listed(dir)
}

func listed(dir *lockfile.Dir) ([]locker.Entry, []locker.Slot, error) {
	l := &lockdir.Locker{Dir: dir}
	entries, err := l.List()
	if err != nil {
		return nil, nil, err
	}
	slots, err := l.Slots()
	return entries, slots, err
}

// hostPause is the pause of the host. A file that cannot be used counts as a pause, as no newcomer runs then.
func hostPause() policy.Pause {
	host, err := locker.HostPause()
	if err != nil {
		fault.Report(err)
		host = policy.Pause{On: true, Left: limit.Never, Why: locker.PauseFile + " cannot be used"}
	}
	return host
}

func pauseAll(entries []locker.Entry, host policy.Pause) {
	for i := range entries {
		if host.On {
			entries[i].Pause = host
		}
	}
}

// recorderOf returns a Recorder with the runlog of the lock's atom; without a runlog if there is an error.
func (a *account) recorderOf(of atom.Atom, lock *locker.View) locker.Recorder {
	if a.seen != nil {
		return locker.Recorder{Log: &runlog.Log{Seen: a.seen}}
	}
	dir, err := config.Dir()
	log, failed := config.RunlogOf(dir, atom.Canonify(of.Host))
	if cmp.Or(err, failed) != nil {
		return locker.Recorder{}
	}
	if lock.Node != "" {
		log.Store = store()
	}
	return locker.Recorder{Log: log}
}

// sources returns the runlog's directory, and the atoms of the lock directory and the store: one runlog records both.
func sources() (logDir string, entries []locker.Entry, err error) {
	if logDir, err = config.RunlogDir(); err != nil {
		return "", nil, err
	}
	if entries, _, err = inDirectory(); err == nil && store() != "" {
		others, _, failed := stored()
		entries, err = append(entries, others...), failed
	}
	pauseAll(entries, hostPause())
	return logDir, entries, err
}

type recorded struct {
	dir     string // of the runlog
	entries []locker.Entry
	chosen  choice
	state   func(token string) history.Outcome // returns the state of a run without an end; nil: the store does not answer
}

// recorded returns what the runlog and the locks have for the query. If the store does not answer, recorded
// reports that and continues. Then a missing atom is no error, as the store may have it.
func (q *query) recorded(verb string) (r recorded, err error) {
	tellHost(verb)
	r.dir, r.entries, err = sources()
	r.state = stateIn(r.entries)
	r.chosen = q.choose(r.entries, history.Read(r.dir))
	if err != nil && store() != "" && fault.KindOf(err) == fault.Unavailable {
		fault.Report(err)
		r.state, q.named, err = nil, false, nil
	}
	return r, err
}

// stateIn returns a function that finds the state of a run by the lock with its token; Lost if there is no such lock.
func stateIn(entries []locker.Entry) func(token string) history.Outcome {
	states := map[policy.Owner]history.Outcome{policy.Gone: history.Orphaned, policy.Orphaned: history.Orphaned}
	tokens := map[string]history.Outcome{}
	for i := range entries {
		for _, lock := range append([]locker.View{entries[i].View}, entries[i].Readers...) {
			if lock.Active.Held {
				tokens[lock.Record.Token] = states[lock.Active.Owner]
			}
		}
	}
	return func(token string) history.Outcome {
		if state, held := tokens[token]; held {
			return state
		}
		return history.Lost
	}
}

type query struct {
	now          time.Time
	since, until runlog.Opt[time.Time]
	atom         string
	kinds        []runlog.Kind // the kinds of events to show; none: all
	reset        string        // the atom whose learned limits are to be forgotten
	why          string        // the reason of a pause
	check        string        // the file of --check
	output       string        // the file of --output
	svg, html    string
	limit        string // ExpireAfter of the jobs to be wrapped

	json, csv              bool
	explain, follow, watch bool
	failed                 bool // --failed of status: only atoms whose last run failed or was ended by force, or that are in trouble
	named                  bool // the atom is an argument: if it does not exist, that is an error
	exitCode               bool // --exit-code of status

	userColumn, diff, unwrap, guard, flock bool // options of check and wrap
	system                                 bool // the crontabs of the machine are to be checked
	allUsers                               bool

	lines int // how many lines of the log are shown at most

	remembers func(user string) bool // reports whether to show a user who has no lock directory; nil: never

	all      bool          // --all: all atoms of the host, or of the user
	pauseFor time.Duration // 0: not given

	args []string // the words after the options
}

func (q *query) sinceOption(otherwise string) config.Option {
	return config.Option{
		Name: "since", Arg: "WHEN", Default: otherwise, Set: q.moment(&q.since),
		Help: "the first moment: " + timeForms + "; 16:00 is the latest one",
	}
}

func (q *query) untilOption(otherwise string) config.Option {
	return config.Option{Name: "until", Arg: "WHEN", Default: otherwise, Help: "the last moment, in the forms of --since", Set: q.moment(&q.until)}
}

func (q *query) atomOption() config.Option {
	return config.Option{
		Name: "atom", Arg: "TEXT", Set: config.AnyText(&q.atom),
		Help: "only atoms with TEXT in \"program operator operand\", or with this NAME",
	}
}

func (q *query) nameAtom() error {
	if q.atom != "" || q.reset != "" {
		return fault.New(fault.Usage, q.args[0], "the atom was named already")
	}
	q.atom, q.named = strings.Join(q.args, " "), true
	return nil
}

func (q *query) noAtom(verb string) error {
	words := []string{q.atom}
	if q.named {
		words = q.args
	}
	return &fault.Error{Kind: fault.Usage, Object: verb, Err: atom.ErrNone(words...)}
}

func matches(text string, a atom.Atom) bool {
	return text == "" || strings.Contains(a.Words(), text) || string(a.Name()) == text
}

// choice selects the atoms that have text in their words or, if whole, those whose whole name is text.
type choice struct {
	text  string
	whole bool
}

// choose selects by the whole name if NAME is an argument, and an entry or event has an atom with that name.
func (q *query) choose(entries []locker.Entry, events iter.Seq2[runlog.Event, error]) choice {
	c := choice{text: q.atom, whole: q.named}
	if !q.named || slices.ContainsFunc(entries, c.hasEntry) {
		return c
	}
	for e, err := range events {
		if err == nil && c.has(e.Atom()) {
			return c
		}
	}
	c.whole = false
	return c
}

func (c choice) has(a atom.Atom) bool {
	if c.whole {
		return atom.Called{Name: a.Name(), Atom: a}.IsExactly(c.text)
	}
	return matches(c.text, a)
}

func (c choice) hasEntry(e locker.Entry) bool {
	called := e.Called()
	if c.whole {
		return called.IsExactly(c.text)
	}
	return string(e.Name) == c.text || matches(c.text, called.Atom)
}

// failures keeps the last error of a verb that continues after errors. add reports the error that a new one replaces.
type failures struct{ last error }

func (f *failures) add(err error) {
	if err != nil && f.last != nil {
		fault.Report(f.last)
	}
	f.last = cmp.Or(err, f.last)
}

func write(text []byte) error {
	_, err := os.Stdout.Write(text)
	return fault.Wrap("standard output", err)
}

// save replaces a file by one with this text, whole or not at all; "-" is standard output. It writes to a device or a
// pipe without replacing it. A link stays: its target is replaced.
func save(path string, text []byte, options ...renameio.Option) error {
	if path == "-" {
		return write(text)
	}
	if err := mayReplace(path); err != nil {
		return err
	}
	if there, err := os.Stat(path); err == nil && !there.Mode().IsRegular() {
		return fault.Wrap(path, os.WriteFile(path, text, 0))
	}
	file, err := way.Follow(path)
	if err == nil {
		err = renameio.WriteFile(file, text, 0o644, options...)
	}
	return fault.Wrap(path, err)
}

// mayReplace returns an error if path is a directory: the error of rename(2) would name a temporary file.
func mayReplace(path string) error {
	if there, err := os.Stat(path); err == nil && there.IsDir() {
		return fault.New(fault.CannotCreate, path, "is a directory: want the name of a file")
	}
	return nil
}

// tellNone reports that nothing is recorded of the atom: as an error if the atom is an argument and does not exist.
func (q *query) tellNone(verb, dir string, entries []locker.Entry) error {
	known := !q.named || slices.ContainsFunc(entries, choice{text: q.atom}.hasEntry)
	_, _ = history.Each(history.Read(dir), func(e *runlog.Event) { known = known || matches(q.atom, e.Atom()) })
	if !known {
		return q.noAtom(verb)
	}
	fault.Warn(dir, "nothing is recorded there for this query of an atom that matches "+strconv.Quote(q.atom))
	return nil
}

func nothingIn(dir string) string {
	return "nothing is recorded of this period in " + terminal.Clean(dir) + "\n"
}

func tellDamage(lines int, dir, command string) {
	if lines > 0 {
		fault.Warn(dir, strconv.Itoa(lines)+" damaged lines of the runlog passed over ("+command+" shows them)")
	}
}
