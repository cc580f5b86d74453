package locker

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/policy"
)

// Entry is one atom as it was found, of a lock directory or of a store.
type Entry struct {
	Name        atom.Name
	Completed   time.Time // zero: never
	CompletedOn string    // the machine of that run, if it may be another one
	View
	Readers []View // the locks of its readers
	Waiting []View // its waiters, the first to come first; in a lock directory, from the runlog
	Err     error  // why its locks could not be read
}

// Called is the atom as its lock or last lock says, else as far as its name can be read back.
func (e *Entry) Called() atom.Called {
	c := atom.Called{Name: e.Name, Atom: cmp.Or(e.Holder().Record.Atom, e.Memory.Atom)}
	if c.Atom == (atom.Atom{}) {
		if a, is := e.Name.Atom(); is {
			c.Atom = a
		}
	}
	return c
}

// Locks are the files that hold the atom, or that cannot be read.
func (e *Entry) Locks() (locks []atom.File) {
	if e.Active.Held || e.Err != nil {
		locks = append(locks, atom.File{Kind: atom.ActiveLock, Name: e.Name})
	}
	for _, reader := range e.Readers {
		locks = append(locks, atom.File{Kind: atom.ReaderLock, Name: e.Name, Number: reader.Record.Owner.PID})
	}
	return locks
}

// Decide is what a newcomer on these terms would do about the atom.
func (e *Entry) Decide(terms policy.Terms) policy.Decision {
	d := policy.Decide(terms, policy.Situation{Last: e.Last, Active: e.Active, Readers: Actives(e.Readers)})
	return Foresee(d, &e.View, e.Readers)
}

// Holder is the lock that holds the atom: the active lock, else that of the first reader that
// lives as far as is known; Active.Held tells whether there is one.
func (e *Entry) Holder() View {
	for _, reader := range e.Readers {
		if !e.Active.Held && reader.Active.Owner != policy.Gone {
			return reader
		}
	}
	return e.View
}

// Actives are the active locks of the views.
func Actives(views []View) (all []policy.Active) {
	for _, v := range views {
		all = append(all, v.Active)
	}
	return all
}

// Slot is a held slot of a program. The record is of its owner, and of the atom that it was taken
// for.
type Slot struct {
	Name   atom.Name
	Number int
	View
}

// ErrNotHeld says that the atom which a person means is known, and not held.
var ErrNotHeld = errors.New("is not held")

// LockMeant is the lock that a person means by these words after the verb. They name its file, or
// NAME; or they are what status calls the atom, or a part of that which only one held atom
// contains. Several words were typed without quotes. The entries are listed only if needed. The
// error contains ErrNotHeld if there is nothing to do.
func LockMeant(verb string, words []string, list func() ([]Entry, error)) (atom.File, error) {
	text := strings.Join(words, " ")
	lock, exact := atom.LockCalled(path.Base(text))
	exact = exact && !strings.Contains(text, " ")
	if exact && (lock.Called() != text || lock.Kind != atom.ActiveLock || lock.Name.IsSlot()) {
		return lock, nil
	}
	entries, err := list()
	if err != nil {
		return atom.File{}, err
	}
	var known, held []atom.Called
	var locks []atom.File
	for i := range entries {
		if exact && entries[i].Name != lock.Name {
			continue // otherwise NAME might match a part of another's name
		}
		called := entries[i].Called()
		known = append(known, called)
		for _, lock := range entries[i].Locks() {
			held, locks = append(held, called), append(locks, lock)
		}
	}
	usage := func(err error) error { return &fault.Error{Kind: fault.Usage, Object: verb, Err: err} }
	meant := atom.Meant(held, text)
	switch {
	case len(meant) == 1:
		return locks[meant[0]], nil
	case len(meant) > 1:
		return atom.File{}, usage(atom.ErrSeveral(text, called(locks, meant)))
	case len(atom.Meant(known, text)) > 0:
		return atom.File{}, usage(fmt.Errorf("%q %w: there is nothing to %s", text, ErrNotHeld, verb))
	}
	return atom.File{}, usage(atom.ErrNone(text))
}

func called(locks []atom.File, meant []int) (names []string) {
	for _, i := range meant {
		names = append(names, locks[i].Called())
	}
	return names
}
