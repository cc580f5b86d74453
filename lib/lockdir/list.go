package lockdir

import (
	"errors"
	"io/fs"
	"slices"
	"time"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/lockdir/lockfile"
	"adlock/lib/locker"
	"adlock/lib/policy"
	"adlock/lib/process"
	"adlock/lib/record"
	"adlock/lib/sysfile"
)

// List returns every atom of the directory, sorted by name, and writes nothing. Slots are not atoms.
func (l *Locker) List() ([]locker.Entry, error) {
	names, err := l.namesOf(func(n atom.Name) bool { return !n.IsSlot() }, atom.ActiveLock, atom.LastLock)
	if err != nil {
		return nil, err
	}
	entries := make([]locker.Entry, len(names))
	for i, name := range names {
		entries[i].Name = name
		entries[i].Err = l.lookAtOwner(&entries[i])
	}
	// Read the readers' locks last: otherwise a reader that moves from the active lock to its own could be missed.
	files, err := l.Dir.Files(atom.ReaderLock, atom.Tick)
	if err != nil {
		return nil, err
	}
	of := map[atom.File][]atom.File{} // by kind and name
	for _, f := range files {
		of[atom.File{Kind: f.Kind, Name: f.Name}] = append(of[atom.File{Kind: f.Kind, Name: f.Name}], f)
	}
	for i := range entries {
		entries[i].Ticks = of[atom.File{Kind: atom.Tick, Name: entries[i].Name}]
		l.lookAtRest(&entries[i], of[atom.File{Kind: atom.ReaderLock, Name: entries[i].Name}])
	}
	return slices.DeleteFunc(entries, func(e locker.Entry) bool { return errors.Is(e.Err, fs.ErrNotExist) }), nil // gone by now
}

func (l *Locker) namesOf(wanted func(atom.Name) bool, kinds ...atom.Kind) ([]atom.Name, error) {
	files, err := l.Dir.Files(kinds...)
	var names []atom.Name
	for _, f := range files {
		if wanted(f.Name) {
			names = append(names, f.Name)
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(names))), err
}

// Slots returns every slot of the directory that can be read.
func (l *Locker) Slots() ([]locker.Slot, error) {
	names, err := l.namesOf(atom.Name.IsSlot, atom.ActiveLock)
	var slots []locker.Slot
	for _, name := range names {
		if lock, err := l.Dir.Active(name); err == nil {
			slots = append(slots, locker.Slot{Name: name, Number: name.SlotNumber(), View: seen(lock)})
			lock.Close()
		}
	}
	return slots, err
}

func seen(lock *lockfile.Active) locker.View {
	v := view{active: lock}
	v.setActive(locker.Moment{Real: time.Now()})
	v.seeChanger(policy.DefaultPause)
	return v.View
}

func (l *Locker) lookAtOwner(entry *locker.Entry) error {
	if err := process.Passing(); err != nil {
		return fault.Wrap(l.Dir.Path(entry.Name.ActiveLock()), err)
	}
	active, err := l.Dir.Active(entry.Name)
	if err != nil {
		return sysfile.IgnoreMissing(err)
	}
	defer active.Close()
	if active.Content == record.Damaged {
		return damaged(active)
	}
	entry.View = seen(active)
	entry.Watcher = l.Dir.Watcher(entry.Name).PID
	return nil
}

// lookAtRest adds the readers and the last lock to the entry. The last lock's age counts from the start of
// the last run if that is how the holder counts it (FromStart).
func (l *Locker) lookAtRest(entry *locker.Entry, readers []atom.File) {
	for _, lock := range readers {
		if err := l.addReader(entry, lock); entry.Err == nil {
			entry.Err = err
		}
	}
	last, err := l.Dir.Last(entry.Name)
	if err == nil {
		entry.Completed, entry.Memory, entry.Pause = last.Completed, last.Memory, last.Memory.Pause.Policy()
		entry.Last = locker.LastView(last, entry.Holder().Record.FromStart, locker.Moment{Real: time.Now()})
	} else if !errors.Is(err, fs.ErrNotExist) || entry.Err == nil && !entry.Holder().Active.Held {
		entry.Err = err // if the last lock is missing, the atom has just been removed
	}
}

func (l *Locker) addReader(entry *locker.Entry, lock atom.File) error {
	reader, err := l.Dir.Lock(lock)
	if err != nil {
		return sysfile.IgnoreMissing(err)
	}
	defer reader.Close()
	if err := readable(reader); err != nil {
		return err
	}
	entry.Readers = append(entry.Readers, seen(reader))
	return nil
}
