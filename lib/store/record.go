package store

import (
	"strconv"
	"strings"
	"time"

	"adlock/lib/exit"
	"adlock/lib/lock"
	"adlock/lib/name"
)

// Record is the content of an active lock in a store: that of one in a lock
// directory, and what only matters between machines.
type Record struct {
	lock.Record
	Node  string        // the machine's own name; the atom's host may be shared by several
	Taken time.Time     // when it came to own the atom; zero: it waits for it
	Lease time.Duration // how long it may keep silent
	Stuck string        // why its job cannot be ended, where that was asked for
}

// Bytes returns the record as it stands in the store: the lines of a lock in a
// directory, and more behind them.
func (r Record) Bytes() []byte {
	var text strings.Builder
	text.Write(r.Record.Bytes())
	line := func(key, value string) { text.WriteString(key + "=" + value + "\n") }
	line("node", strconv.Quote(r.Node))
	if !r.Taken.IsZero() {
		line("taken", r.Taken.UTC().Format(time.RFC3339Nano))
	}
	line("lease", r.Lease.String())
	if r.Stuck != "" {
		line("stuck", strconv.Quote(r.Stuck))
	}
	return []byte(text.String())
}

// ParseRecord reads what Bytes wrote; object names it in the error (74).
func ParseRecord(object string, content []byte) (Record, error) {
	head, rest := lock.Split(content)
	record, found := lock.Parse(head)
	r := Record{Record: record}
	var err error
	for line := range strings.Lines(string(rest)) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		var wrong error
		switch key {
		case "node":
			r.Node, wrong = strconv.Unquote(value)
		case "taken":
			r.Taken, wrong = time.Parse(time.RFC3339Nano, value)
		case "lease":
			r.Lease, wrong = time.ParseDuration(value)
		case "stuck":
			r.Stuck, wrong = strconv.Unquote(value)
		}
		if wrong != nil {
			err = wrong
		}
	}
	if err != nil || found != lock.Full {
		return Record{}, exit.New(exit.IO, object, "is cut short or of an unknown format")
	}
	return r, nil
}

// Bytes returns the last lock as it stands in the store. When it was stamped
// stands there too: not every store has a clock to ask.
func (l Last) Bytes() []byte {
	var text strings.Builder
	line := func(key, value string) { text.WriteString(key + "=" + value + "\n") }
	line("completed", l.Completed.UTC().Format(time.RFC3339Nano))
	line("token", l.Token)
	if !l.Memory.Started.IsZero() {
		line("started", l.Memory.Started.UTC().Format(time.RFC3339Nano))
	}
	if a := l.Memory.Atom; a != (name.Atom{}) {
		line("program", strconv.Quote(a.Program))
		line("host", strconv.Quote(a.Host))
		line("operator", strconv.Quote(a.Operator))
		line("operand", strconv.Quote(a.Operand))
	}
	return []byte(text.String())
}

// ParseLast reads what Bytes wrote; object names it in the error (74).
func ParseLast(object string, content []byte) (l Last, err error) {
	for line := range strings.Lines(string(content)) {
		key, value, whole := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		var wrong error
		switch key {
		case "completed":
			l.Completed, wrong = time.Parse(time.RFC3339Nano, value)
		case "token":
			l.Token = value
		case "started":
			l.Memory.Started, wrong = time.Parse(time.RFC3339Nano, value)
		case "program":
			l.Memory.Atom.Program, wrong = strconv.Unquote(value)
		case "host":
			l.Memory.Atom.Host, wrong = strconv.Unquote(value)
		case "operator":
			l.Memory.Atom.Operator, wrong = strconv.Unquote(value)
		case "operand":
			l.Memory.Atom.Operand, wrong = strconv.Unquote(value)
		}
		if !whole || wrong != nil {
			return Last{}, exit.New(exit.IO, object, "is cut short or of an unknown format")
		}
	}
	l.Memory.Atom = l.Memory.Atom.Cut()
	return l, nil
}
