package atom

import (
	"errors"
	"io/fs"
	"sort"
	"strings"
	"time"

	"adlock/lib/lock"
	"adlock/lib/name"
	"adlock/lib/policy"
)

// Entry is one atom of a lock directory as it was found.
type Entry struct {
	Files     string    // NAME of its locks
	Completed time.Time // zero: never
	View
	Err error // why its locks could not be read
}

// List looks at every atom of the directory, in the order of their names, and
// writes nothing. The state of an owner is always looked up, never remembered.
// Slots are no atoms.
func (k *Keeper) List() ([]Entry, error) {
	names, err := k.names()
	if err != nil {
		return nil, err
	}
	var entries []Entry
	for _, files := range names {
		entry := k.entry(files)
		if errors.Is(entry.Err, fs.ErrNotExist) {
			continue // gone since
		}
		entries = append(entries, entry)
	}
	return entries, nil
}

func (k *Keeper) names() ([]string, error) {
	seen := map[string]bool{}
	for _, prefix := range []string{lock.ActivePrefix, lock.LastPrefix} {
		names, err := k.Dir.Names(prefix)
		if err != nil {
			return nil, err
		}
		for _, files := range names {
			if name.IsName(files) && !isSlot(files) {
				seen[files] = true
			}
		}
	}
	var all []string
	for files := range seen {
		all = append(all, files)
	}
	sort.Strings(all)
	return all, nil
}

// isSlot: a slot's name has three parts, an atom's four.
func isSlot(files string) bool { return strings.Count(files, ".") == 2 }

func (k *Keeper) entry(files string) Entry {
	entry := Entry{Files: files}
	now := moment{real: time.Now()}
	last, err := k.Dir.Last(files)
	switch {
	case err == nil:
		entry.Completed, entry.Memory = last.Completed, last.Memory
		entry.Last = lastView(last, false, now)
	case !errors.Is(err, fs.ErrNotExist):
		entry.Err = err
		return entry
	}
	active, err := k.Dir.Active(files)
	if err != nil {
		entry.Err = ignoreMissing(err)
		return entry
	}
	defer active.Close()
	if active.Content == lock.Damaged {
		entry.Err = damaged(active)
		return entry
	}
	entry.Record = active.Record
	entry.Active = activeView(active, now)
	return entry
}

// Step is what a newcomer with these limits would do about the atom.
func (e *Entry) Step(limits policy.Limits) policy.Step {
	return policy.Decide(limits, e.Last, e.Active)
}
