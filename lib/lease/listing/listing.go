// Package listing passes the content of a store beyond this machine from one program to another. The locksmith, which
// links the stores' clients, writes the content to a pipe. adlock-report reads the pipe, and shows the content as it
// shows a lock directory. Each line is one JSON object. The last says that nothing is missing, or what went wrong.
package listing

import (
	"encoding/json"
	"errors"
	"io"

	"adlock/lib/fault"
	"adlock/lib/locker"
)

// line is one line of the listing; exactly one of its fields is set.
type line struct {
	Entry *entry       `json:",omitempty"`
	Slot  *locker.Slot `json:",omitempty"`
	Error *Failure     `json:",omitempty"`
	End   bool         `json:",omitempty"`
}

type entry struct {
	locker.Entry
	Err *Failure `json:",omitempty"` // in place of Entry.Err
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
	for _, e := range entries {
		if err := out.Encode(line{Entry: &entry{e, FailureOf(e.Err)}}); err != nil {
			return err
		}
	}
	for _, s := range slots {
		if err := out.Encode(line{Slot: &s}); err != nil {
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
			l.Entry.Entry.Err = l.Entry.Err.Err()
			entries = append(entries, l.Entry.Entry)
		case l.Slot != nil:
			slots = append(slots, *l.Slot)
		case l.End:
			return entries, slots, nil
		}
	}
}

// errCut is the error if the writing program has died, or is of another version.
var errCut = errors.New("the listing of the store is cut short or of an unknown format")

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
