package locker

import (
	"errors"
	"strings"
	"testing"

	"adlock/lib/atom"
)

// found is an atom of `adlock run --name`, held or not, that runs the command.
func found(operand, command string, held bool) Entry {
	a := atom.Atom{Program: "adlock", Host: "dax", Operator: "run", Operand: operand, Command: command}
	e := Entry{Name: a.Name()}
	e.Memory.Atom, e.Active.Held = a, held
	return e
}

func TestStopAndClearAcceptOnlyWholeNames(t *testing.T) {
	entries := []Entry{
		found("db", "", false), found("db2", "", true), found("backup", "", false),
		found("mirror", "rsync; echo backup done", true), found("idle", "", false),
	}
	list := func() ([]Entry, error) { return entries, nil }
	for text, want := range map[string]string{
		"db2": "lock.adlock.dax.run.db2", "adlock run db2": "lock.adlock.dax.run.db2",
		"adlock.dax.run.mirror": "lock.adlock.dax.run.mirror", "mirror": "lock.adlock.dax.run.mirror",
	} {
		if lock, err := LockMeant("stop", []string{text}, list); err != nil || lock.String() != want {
			t.Errorf("%q: %s, %v", text, lock, err)
		}
	}
	for _, text := range []string{"db", "adlock run db", "adlock.dax.run.db", "backup", "idle"} {
		if lock, err := LockMeant("stop", []string{text}, list); !errors.Is(err, ErrNotHeld) {
			t.Errorf("%q: %s, %v", text, lock, err)
		}
	}
	for _, path := range []string{"./adlock.dax.run.db2", "/opt/adlock.dax.run.mirror"} { // of guarded scripts, say
		if lock, err := LockMeant("stop", []string{path}, list); err == nil {
			t.Errorf("%q: %s", path, lock)
		}
	}
	for text, want := range map[string]string{
		"run db": "only part of a name", "b2": "type the whole name: adlock run db2", "done": "only part of a name",
		"none": "no atom matches",
	} {
		if lock, err := LockMeant("clear", []string{text}, list); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %s, %v", text, lock, err)
		}
	}
}
