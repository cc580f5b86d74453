package lockdir

import (
	"cmp"
	"errors"
	"io/fs"
	"slices"
	"time"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/locker"
	"adlock/lib/policy"
	"adlock/lib/process"
	"adlock/lib/record"
)

// List looks at every atom of the directory, in the order of their names, and writes nothing. It
// checks the state of each owner anew. Slots are no atoms.
func (l *Locker) List() ([]locker.Entry, error) {
	names, err := l.names()
	if err != nil {
		return nil, err
	}
	var entries []locker.Entry
	for _, name := range names {
		entry := l.entry(name)
		if errors.Is(entry.Err, fs.ErrNotExist) {
			continue // gone since
		}
		entries = append(entries, entry)
	}
	return entries, nil
}

func (l *Locker) names() ([]atom.Name, error) {
	files, err := l.Dir.Files(atom.ActiveLock, atom.LastLock)
	var names []atom.Name
	for _, f := range files {
		if !f.Name.IsSlot() {
			names = append(names, f.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), err
}

// Slots looks at every slot of the directory, as List does at the atoms, and leaves out those it
// cannot read.
func (l *Locker) Slots() ([]locker.Slot, error) {
	files, err := l.Dir.Files(atom.ActiveLock)
	if err != nil {
		return nil, err
	}
	var slots []locker.Slot
	for _, f := range files {
		if !f.Name.IsSlot() {
			continue
		}
		if lock, err := l.Dir.Active(f.Name); err == nil {
			slots = append(slots, locker.Slot{Name: f.Name, Number: f.Name.SlotNumber(), View: seen(lock, locker.Moment{Real: time.Now()}, policy.DefaultPause)})
			lock.Close()
		}
	}
	slices.SortFunc(slots, func(a, b locker.Slot) int { return cmp.Compare(a.Name, b.Name) })
	return slots, nil
}

func (l *Locker) entry(name atom.Name) locker.Entry {
	entry := locker.Entry{Name: name}
	now := locker.Moment{Real: time.Now()}
	err := l.lookAtHolders(&entry, now)
	missing := l.lookAtCompletion(&entry, now)
	switch {
	case ignoreMissing(missing) != nil:
		entry.Err = missing
	case err != nil:
		entry.Err = err
	case !entry.Holder().Active.Held:
		entry.Err = missing // the atom is free, or was removed meanwhile
	}
	return entry
}

// lookAtHolders looks at the locks that hold the atom, the active lock and the readers'.
func (l *Locker) lookAtHolders(entry *locker.Entry, now locker.Moment) (err error) {
	if err := process.Passing(); err != nil {
		return fault.Wrap(l.Dir.Path(entry.Name.ActiveLock()), err)
	}
	if entry.Readers, err = l.readersOf(entry.Name, now, policy.DefaultPause); err != nil {
		return err
	}
	active, err := l.Dir.Active(entry.Name)
	if err != nil {
		return ignoreMissing(err)
	}
	defer active.Close()
	if active.Content == record.Damaged {
		return damaged(active)
	}
	entry.View = seen(active, now, policy.DefaultPause)
	return nil
}

// lookAtCompletion reads the last lock, and counts IfElapsed from the start where the holder
// does.
func (l *Locker) lookAtCompletion(entry *locker.Entry, now locker.Moment) error {
	last, err := l.Dir.Last(entry.Name)
	if err != nil {
		return err
	}
	entry.Completed, entry.Memory = last.Completed, last.Memory
	entry.Last = locker.LastView(last, entry.Holder().Record.FromStart, now)
	return nil
}
