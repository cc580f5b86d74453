package locker

import (
	"cmp"
	"errors"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/policy"
)

// Entry is an atom as it was found in a lock directory or a store.
type Entry struct {
	Name        atom.Name
	Completed   time.Time // when its last run completed; zero: never, or unknown
	CompletedOn string    // the machine on which it completed, if that may be another one
	View
	Readers []View      // the locks of its readers
	Waiting []View      // in a store: its waiters, in the order in which they came (only the runlog has those of a lock directory)
	Ticks   []atom.File // the ticks that were claimed
	Err     error       // why its locks could not be read
}

// Called returns NAME, and the atom as a lock or the last lock records it, else as it can be parsed from NAME.
func (e *Entry) Called() atom.Called {
	c := atom.Called{Name: e.Name, Atom: cmp.Or(e.Holder().Record.Atom, e.Memory.Atom)}
	if c.Atom == (atom.Atom{}) {
		if a, is := e.Name.Atom(); is {
			c.Atom = a
		}
	}
	return c
}

// Locks returns the lock files that hold the atom. If Err is set, the active lock is among them: it may be unreadable.
func (e *Entry) Locks() (locks []atom.File) {
	if e.Active.Held || e.Err != nil {
		locks = append(locks, atom.File{Kind: atom.ActiveLock, Name: e.Name})
	}
	for _, reader := range e.Readers {
		locks = append(locks, atom.File{Kind: atom.ReaderLock, Name: e.Name, Number: reader.Record.Owner.PID})
	}
	return locks
}

// Decide returns what a newcomer on these terms would do about the atom. It does not count slots.
func (e *Entry) Decide(terms policy.Terms) policy.Decision {
	claimed := atom.File{Kind: atom.Tick, Name: e.Name, Period: terms.Tick.Period, Number: terms.Tick.Number}
	s := policy.Situation{Last: e.Last, Active: e.Active, Pause: e.Pause, TickUsed: slices.Contains(e.Ticks, claimed)}
	for _, reader := range e.Readers {
		s.Readers = append(s.Readers, reader.Active)
	}
	d := policy.Decide(terms, s)
	if d.Reader >= 0 {
		return e.Readers[d.Reader].Foresee(d)
	}
	return e.View.Foresee(d)
}

// Holder returns the active lock or, if only readers hold the atom, a reader's: an orphaned one first, a dead one last.
func (e *Entry) Holder() *View {
	if e.Active.Held || len(e.Readers) == 0 {
		return &e.View
	}
	at := slices.IndexFunc(e.Readers, func(v View) bool { return v.Active.Owner == policy.Orphaned })
	if at < 0 {
		at = slices.IndexFunc(e.Readers, func(v View) bool { return v.Active.Owner != policy.Gone })
	}
	return &e.Readers[max(0, at)]
}

// InsideJob reports whether this process was started from inside a job that holds one of the atoms.
func InsideJob(entries []Entry) bool {
	return slices.ContainsFunc(entries, func(e Entry) bool {
		for _, v := range append(e.Readers, e.View) {
			if v.Active.Held && v.IsInsideJob() {
				return true
			}
		}
		return false
	})
}

func (e Entry) isSemaphore() bool {
	return slices.ContainsFunc(e.Readers, func(v View) bool { return v.Record.Slots > 0 && v.Record.Atom.IsNamed() })
}

// Slot is a slot that is held. Its record names the owner, and the atom for which it took the slot.
type Slot struct {
	Name   atom.Name
	Number int
	View
}

// ErrNotHeld says that the atom that a person named is known, but not held.
var ErrNotHeld = errors.New("is not locked")

// LockMeant returns the lock that the words name: as a file, or by the whole name of its atom (atom.Exact). A
// name of several locks is an error. The error contains ErrNotHeld if the atom is not held.
func LockMeant(verb string, words []string, list func() ([]Entry, error)) (atom.File, error) {
	locks, err := locksMeant(verb, words, list, false)
	if err != nil {
		return atom.File{}, err
	}
	return locks[0], nil
}

// locksMeant is LockMeant but, if all is set and the name is that of a semaphore, returns the locks of all its runs.
func locksMeant(verb string, words []string, list func() ([]Entry, error), all bool) ([]atom.File, error) {
	text := strings.Join(words, " ")
	if lock, is := lockFile(text); is {
		return []atom.File{lock}, nil
	}
	entries, err := list()
	if err != nil {
		return nil, err
	}
	fit, err := atom.Exact(CalledOf(entries), words)
	switch {
	case err != nil:
	case len(fit) > 1:
		err = atom.ErrNone(words...)
	default:
		e := &entries[fit[0]]
		switch locks := e.Locks(); {
		case len(locks) == 0:
			err = fault.Worded(strconv.Quote(text)+" "+ErrNotHeld.Error()+": nothing to "+verb, ErrNotHeld)
		case len(locks) == 1 || all && e.isSemaphore():
			return locks, nil
		default:
			var names []string
			for _, lock := range locks {
				names = append(names, lock.Called())
			}
			err = atom.ErrSeveral(text, names)
		}
	}
	return nil, &fault.Error{Kind: fault.Usage, Object: verb, Err: err}
}

func lockFile(text string) (lock atom.File, is bool) {
	file := path.Base(text)
	lock, is = atom.LockCalled(file)
	return lock, is && (lock.String() == file || lock.Name.IsSlot() && file == text)
}

func AreLockFiles(words []string) bool {
	return !slices.ContainsFunc(words, func(word string) bool { _, is := lockFile(word); return !is })
}

// LocksMeant is LockMeant for a verb that takes several names. The result maps each name, as it was typed, to its
// lock. The name of a semaphore has the locks of all its runs; the name of an atom that is not held has none.
func LocksMeant(verb string, words []string, list func() ([]Entry, error)) (map[string][]atom.File, error) {
	names := [][]string{words}
	if AreLockFiles(words) {
		names = slices.Collect(slices.Chunk(words, 1))
	} else if len(words) > 1 {
		entries, err := list()
		if err != nil {
			return nil, err
		}
		if fit, err := atom.Exact(CalledOf(entries), words); err == nil && len(fit) > 1 {
			names = slices.Collect(slices.Chunk(words, 1))
		}
	}
	locks := map[string][]atom.File{}
	for _, name := range names {
		meant, err := locksMeant(verb, name, list, true)
		if err != nil && !errors.Is(err, ErrNotHeld) {
			return nil, err
		}
		locks[strings.Join(name, " ")] = meant
	}
	return locks, nil
}

func CalledOf(entries []Entry) (all []atom.Called) {
	for i := range entries {
		all = append(all, entries[i].Called())
	}
	return all
}
