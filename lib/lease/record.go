package lease

import (
	"bytes"
	"time"

	"adlock/lib/fault"
	"adlock/lib/record"
)

// Record is the record of an active lock: that of a lock directory, and what matters only between machines.
type Record struct {
	record.Record
	Node  string        // the machine's own name; the atom's host may be shared by several
	Taken time.Time     // when its process became the owner; zero while it waits, and until it has recorded that
	Lease time.Duration // how long the owner may send no heartbeat
	Stuck string        // why the owner could not end its job when a newcomer asked; "": it did not fail
	Idle  time.Duration // how long the job was seen idle after a learned limit had passed; 0: it was not
	Held  time.Duration // on FTP: how long the owner had had the atom when the record was written
	Work  string        // what the job was seen to do, in words; "": it was idle, or was not watched
}

// Bytes returns the record as it is kept in the store: the lines of a directory's lock, then the store's.
func (r Record) Bytes() []byte { return append(r.Record.Bytes(), record.Write(r.lines)...) }

func (r *Record) lines(l *record.Lines) {
	l.Quoted("node", &r.Node)
	l.Instant("taken", &r.Taken)
	l.Duration("lease", &r.Lease)
	record.Optional(l, "stuck", &r.Stuck, l.Quoted)
	record.Optional(l, "idle", &r.Idle, l.Duration)
	record.Optional(l, "held", &r.Held, l.Duration)
	record.Optional(l, "work", &r.Work, l.Quoted)
}

// ParseRecord reads what Bytes wrote; object names it in the error (fault.IO).
func ParseRecord(object string, content []byte) (Record, error) {
	head, rest := record.Split(content)
	inDirectory, _, found := record.ParseAll(head)
	r := Record{Record: inDirectory}
	if _, ok := record.Read(rest, r.lines); ok && found == record.Full && r.Lease > 0 && IsWhole(content) {
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
func (l Last) Bytes() []byte { return append(record.Write(l.lines), l.Memory.Bytes()...) }

func (l *Last) lines(lines *record.Lines) {
	lines.Instant("completed", &l.Completed)
	record.Optional(lines, "token", &l.Token, lines.Text)
	record.Optional(lines, "node", &l.Node, lines.Quoted)
	lines.Flag("kept", &l.Kept)
}

// ParseLast reads what Bytes wrote, with its lines in any order; object names it in the error (fault.IO).
func ParseLast(object string, content []byte) (l Last, err error) {
	if l.Memory, err = record.ParseMemory(content, l.lines); err != nil {
		return Last{}, unknownFormat(object)
	}
	return l, nil
}

func unknownFormat(object string) error {
	return fault.New(fault.IO, object, "is cut short or of an unknown format")
}
