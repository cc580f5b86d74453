package main

import (
	"slices"

	"adlock/lib/atom"
	"adlock/lib/config"
	"adlock/lib/fault"
	"adlock/lib/locker"
)

// clear is `adlock clear` if the locks are in a store. The program adlock has parsed the options.
func clear(words []string) (int, error) {
	fault.OnQuit()
	smith, err := askStore()
	if err != nil {
		return 0, err
	}
	entries, slots, err := smith.List()
	if err != nil {
		return 0, err
	}
	lock, err := locker.LockMeant("clear", words, func() ([]locker.Entry, error) { return entries, nil })
	if err != nil {
		return 0, err
	}
	found, err := lockFound(lock, entries, slots)
	if err != nil {
		return 0, err
	}
	path, err := config.Dir()
	if err != nil {
		return 0, err
	}
	if smith.Recorder, err = recorderIn(path, lock.Name.Host(), nil); err != nil {
		return 0, err
	}
	smith.Log.Store = smith.Store.String()
	return 0, smith.Clear(lock.Name, found)
}

// lockFound returns the lock's view: the first reader's if only readers hold the lock, an empty one if there is none.
func lockFound(lock atom.File, entries []locker.Entry, slots []locker.Slot) (*locker.View, error) {
	for _, s := range slots {
		if s.Name == lock.Name {
			return &s.View, nil
		}
	}
	i := slices.IndexFunc(entries, func(e locker.Entry) bool { return e.Name == lock.Name })
	if i < 0 {
		return &locker.View{}, nil
	}
	e := &entries[i]
	if lock.Kind == atom.ActiveLock && (len(e.Readers) == 0 || e.Active.Held) {
		return &e.View, e.Err
	}
	for r := range e.Readers {
		if lock.Kind == atom.ActiveLock || e.Readers[r].Record.Owner.PID == lock.Number {
			return &e.Readers[r], e.Err
		}
	}
	return &locker.View{}, e.Err
}

// forget is `adlock tune --reset` if the locks are in a store. adlock-report passes the atom's NAME.
func forget(words []string) (int, error) {
	lock := atom.File{}
	if len(words) == 1 {
		lock, _ = atom.LockCalled(words[0])
	}
	if lock.Kind != atom.ActiveLock {
		return 0, fault.New(fault.Usage, "forget", "is called by "+config.Reporter+" only")
	}
	smith, err := askStore()
	if err != nil {
		return 0, err
	}
	return 0, smith.Forget(lock.Name)
}
