package lease

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"adlock/lib/fault"
	"adlock/lib/record"
)

// Record is the record of an active lock: that of a lock directory, and what matters only between machines.
type Record struct {
	record.Record
	Node  string        // the machine's own name; the atom's host may be shared by several
	Taken time.Time     // when its process came to own the atom; zero: it waits, or has just come to own the atom
	Lease time.Duration // how long the owner may send no heartbeat
	Stuck string        // why the owner could not end its job when a newcomer asked; "": it did not fail
	Idle  time.Duration // how long the job was seen idle after a learned limit had passed; 0: it was not
	Held  time.Duration // on FTP: how long the owner had had the atom when the record was written
	Work  string        // what the job was seen to do, in words; "": it was idle, or was not watched
}

// Bytes returns the record as it is kept in the store: the lines of a directory's lock, then the store's.
func (r Record) Bytes() []byte {
	var text strings.Builder
	text.Write(r.Record.Bytes())
	line := func(key, value string) { text.WriteString(key + "=" + value + "\n") }
	line(nodeKey, strconv.Quote(r.Node))
	if !r.Taken.IsZero() {
		line("taken", r.Taken.UTC().Format(time.RFC3339Nano))
	}
	line("lease", r.Lease.String())
	if r.Stuck != "" {
		line("stuck", strconv.Quote(r.Stuck))
	}
	if r.Idle != 0 {
		line("idle", r.Idle.String())
	}
	if r.Held != 0 {
		line("held", r.Held.String())
	}
	if r.Work != "" {
		line("work", strconv.Quote(r.Work))
	}
	return []byte(text.String())
}

// ParseRecord reads what Bytes wrote; object names it in the error (fault.IO).
func ParseRecord(object string, content []byte) (Record, error) {
	head, rest := record.Split(content)
	inDirectory, found := record.Parse(head)
	r := Record{Record: inDirectory}
	var err error
	for line := range strings.Lines(string(rest)) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		var wrong error
		switch key {
		case nodeKey:
			r.Node, wrong = strconv.Unquote(value)
		case "taken":
			r.Taken, wrong = time.Parse(time.RFC3339Nano, value)
		case "lease":
			r.Lease, wrong = time.ParseDuration(value)
		case "stuck":
			r.Stuck, wrong = strconv.Unquote(value)
		case "idle":
			r.Idle, wrong = time.ParseDuration(value)
		case "held":
			r.Held, wrong = time.ParseDuration(value)
		case "work":
			r.Work, wrong = strconv.Unquote(value)
		}
		if wrong != nil {
			err = wrong
		}
	}
	if err == nil && found == record.Full && r.Lease > 0 && IsWhole(content) {
		return r, nil
	}
	if IsWhole(content) {
		return Record{}, fault.New(fault.IO, object, "is of an unknown format: a store is used by one version of adlock at a time")
	}
	return Record{}, unknownFormat(object)
}

// IsWhole reports whether a record that ParseRecord rejects is complete: then it is another version's, or not
// adlock's, and its writer may hold the atom. A job begins only once its owner's record is whole.
func IsWhole(content []byte) bool {
	_, rest := record.Split(content)
	return bytes.Contains(rest, []byte("\nlease=")) && rest[len(rest)-1] == '\n'
}

// Bytes returns the last lock as it is kept in the store: the time of the stamp (not every store has a clock
// to ask), Token, Node and Kept, and the lines of a last lock in a directory.
func (l Last) Bytes() []byte {
	head := completedKey + "=" + l.Completed.UTC().Format(time.RFC3339Nano) + "\n" + tokenKey + "=" + l.Token + "\n"
	if l.Node != "" {
		head += nodeKey + "=" + strconv.Quote(l.Node) + "\n"
	}
	if l.Kept {
		head += keptKey + "=yes\n"
	}
	return append([]byte(head), l.Memory.Bytes()...)
}

const nodeKey = "node" // in the active and in the last lock

// These keys are only in a store's last lock.
const (
	completedKey = "completed"
	tokenKey     = "token"
	keptKey      = "kept"
)

// ParseLast reads what Bytes wrote, with its lines in any order; object names it in the error (fault.IO).
func ParseLast(object string, content []byte) (l Last, err error) {
	var memory []byte
	for line := range strings.Lines(string(content)) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		switch key {
		case completedKey:
			if l.Completed, err = time.Parse(time.RFC3339Nano, value); err != nil {
				return Last{}, unknownFormat(object)
			}
		case tokenKey:
			l.Token = value
		case nodeKey:
			if l.Node, err = strconv.Unquote(value); err != nil {
				return Last{}, unknownFormat(object)
			}
		case keptKey:
			l.Kept = value == "yes"
		default:
			memory = append(memory, line...)
		}
	}
	if l.Memory, err = record.ParseMemory(memory); err != nil {
		return Last{}, unknownFormat(object)
	}
	return l, nil
}

func unknownFormat(object string) error {
	return fault.New(fault.IO, object, "is cut short or of an unknown format")
}
