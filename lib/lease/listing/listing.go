// Package listing passes the content of a store beyond this machine from one program to another: the locksmith, which
// links the stores' clients, writes the content to a pipe; adlock-report reads and shows it as it does a lock
// directory. Each line is one JSON object. The last line says that nothing is missing, or what went wrong.
package listing

import (
	"encoding/json"
	"errors"
	"io"
	"time"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/locker"
	"adlock/lib/policy"
	"adlock/lib/record"
)

// line is one line of the listing; exactly one of its fields is set.
type line struct {
	Entry *entry   `json:",omitempty"`
	Slot  *entry   `json:",omitempty"`
	Error *Failure `json:",omitempty"`
	End   bool     `json:",omitempty"`
}

type entry struct {
	Name        atom.Name
	Completed   time.Time
	CompletedOn string `json:",omitempty"`
	Last        policy.Last
	Memory      []byte `json:",omitempty"`
	Lock        lock
	Readers     []lock      `json:",omitempty"`
	Waiting     []lock      `json:",omitempty"`
	Ticks       []atom.File `json:",omitempty"`
	Error       *Failure    `json:",omitempty"`
}

type lock struct {
	Active policy.Active
	Record []byte `json:",omitempty"` // as in a file; nil: nothing is locked, or the lock has no record
	Node   string `json:",omitempty"`
	Silent bool   `json:",omitempty"`
}

// Failure is an error in a message. If Object is empty, Reason is the whole text of the error.
type Failure struct {
	Kind           fault.Kind
	Object, Reason string
}

// Write writes the listing or, if failed is not nil, only that error.
func Write(to io.Writer, entries []locker.Entry, slots []locker.Slot, failed error) error {
	out := json.NewEncoder(to)
	if failed != nil {
		return out.Encode(line{Error: FailureOf(failed)})
	}
	for i := range entries {
		e := &entries[i]
		text := entry{
			Name: e.Name, Completed: e.Completed, CompletedOn: e.CompletedOn, Last: e.Last, Memory: e.Memory.Bytes(), Lock: lockOf(e.View),
			Readers: locksOf(e.Readers), Waiting: locksOf(e.Waiting), Ticks: e.Ticks, Error: FailureOf(e.Err),
		}
		if err := out.Encode(line{Entry: &text}); err != nil {
			return err
		}
	}
	for _, s := range slots {
		if err := out.Encode(line{Slot: &entry{Name: s.Name, Lock: lockOf(s.View)}}); err != nil {
			return err
		}
	}
	return out.Encode(line{End: true})
}

// Read reads what Write wrote. If Write wrote an error, Read returns it. A listing that is cut short is an error.
func Read(from io.Reader) (entries []locker.Entry, slots []locker.Slot, err error) {
	for in := json.NewDecoder(from); ; {
		var l line
		if err := in.Decode(&l); err != nil {
			return nil, nil, errCut
		}
		switch {
		case l.Error != nil:
			return nil, nil, l.Error.Err()
		case l.Entry != nil:
			e, err := l.Entry.read()
			if err != nil {
				return nil, nil, err
			}
			entries = append(entries, e)
		case l.Slot != nil:
			v, err := l.Slot.Lock.view()
			if err != nil {
				return nil, nil, err
			}
			slots = append(slots, locker.Slot{Name: l.Slot.Name, Number: l.Slot.Name.SlotNumber(), View: v})
		case l.End:
			return entries, slots, nil
		}
	}
}

// errCut is the error if the writing program has died, or is of another version.
var errCut = errors.New("the listing of the store is cut short or of an unknown format")

func (e *entry) read() (locker.Entry, error) {
	memory, err := record.ParseMemory(e.Memory)
	if err != nil {
		return locker.Entry{}, errCut
	}
	v, err := e.Lock.view()
	if err != nil {
		return locker.Entry{}, err
	}
	v.Last, v.Memory = e.Last, memory
	found := locker.Entry{Name: e.Name, Completed: e.Completed, CompletedOn: e.CompletedOn, Ticks: e.Ticks, View: v, Err: e.Error.Err()}
	if found.Readers, err = views(e.Readers); err == nil {
		found.Waiting, err = views(e.Waiting)
	}
	return found, err
}

func lockOf(v locker.View) lock {
	l := lock{Active: v.Active, Node: v.Node, Silent: v.Silent}
	if v.Active.Held && !v.Active.Empty {
		l.Record = v.Record.Bytes()
	}
	return l
}

func locksOf(views []locker.View) (all []lock) {
	for _, v := range views {
		all = append(all, lockOf(v))
	}
	return all
}

func (l lock) view() (locker.View, error) {
	v := locker.View{Active: l.Active, Node: l.Node, Silent: l.Silent}
	if l.Record == nil {
		return v, nil
	}
	var content record.Content
	if v.Record, content = record.Parse(l.Record); content != record.Full {
		return v, errCut
	}
	return v, nil
}

func views(locks []lock) (all []locker.View, err error) {
	for _, l := range locks {
		v, err := l.view()
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

// FailureOf returns the message for an error, and nil for nil.
func FailureOf(err error) *Failure {
	if err == nil {
		return nil
	}
	if known, is := err.(*fault.Error); is {
		return &Failure{known.Kind, known.Object, known.Err.Error()}
	}
	var within *fault.Error
	if errors.As(err, &within) {
		return &Failure{Kind: within.Kind, Reason: fault.OneLine(err.Error())} // the text names the object
	}
	return &Failure{fault.KindOf(err), "store", err.Error()}
}

func (f *Failure) Err() error {
	switch {
	case f == nil:
		return nil
	case f.Object == "":
		return textError{f.Reason, fault.New(f.Kind, "", "")}
	}
	return fault.New(f.Kind, f.Object, f.Reason)
}

// textError is an error of which only the text and the kind are known.
type textError struct {
	text string
	kind error
}

func (t textError) Error() string { return t.text }
func (t textError) Unwrap() error { return t.kind }
