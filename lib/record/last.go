package record

import (
	"errors"
	"strings"
	"time"

	"adlock/lib/atom"
	"adlock/lib/learn"
)

// errFormat says that the format of a last lock's content is unknown.
var errFormat = errors.New("unknown format")

// Memory is the content of a last lock. Unknown fields are kept.
type Memory struct {
	Atom    atom.Atom // set if the file's name contains a checksum and so does not determine the atom
	Started time.Time // when the last run was asked for; zero: not recorded
	Newest  Start     // of the runs that replaced others, the one that was asked for last; zero: not recorded
	Learned learn.State
	Pause   Pause
	other   []string // lines of other keys, as they were
}

// Empty reports whether there is nothing to remember.
func (m Memory) Empty() bool {
	return m.Atom == atom.Atom{} && m.Started.IsZero() && m.Newest == Start{} && m.Learned == learn.State{} && m.Pause == Pause{} && len(m.other) == 0
}

// Bytes returns the memory as written in the file.
func (m Memory) Bytes() []byte {
	var w writer
	if m.Atom != (atom.Atom{}) {
		w.atom(m.Atom)
	}
	if !m.Started.IsZero() {
		w.text("started", m.Started.UTC().Format(time.RFC3339Nano))
	}
	if m.Newest != (Start{}) {
		w.text("newest", m.Newest.String())
	}
	w.pause(m.Pause)
	for _, line := range m.Learned.Lines() {
		w.line(line)
	}
	for _, line := range m.other {
		w.line(line)
	}
	return []byte(w.String())
}

// ParseMemory reads what Bytes wrote; anything else is an error.
func ParseMemory(content []byte) (Memory, error) {
	fields, ok := parseFields(string(content))
	if !ok {
		return Memory{}, errFormat
	}
	var m Memory
	r := reader{fields: fields}
	if _, there := fields["program"]; there {
		m.Atom = r.atom()
	}
	if text, there := fields["started"]; there {
		var err error
		m.Started, err = time.Parse(time.RFC3339Nano, text)
		r.failed = r.failed || err != nil
	}
	if text, there := fields["newest"]; there {
		var err error
		m.Newest, err = parseStart(text)
		r.failed = r.failed || err != nil
	}
	if _, there := fields["paused"]; there {
		m.Pause = r.pause()
	}
	m.Learned = learn.Parse(fields)
	for line := range strings.Lines(string(content)) {
		if key, _, _ := strings.Cut(line, "="); !isKnown(key) {
			m.other = append(m.other, strings.TrimSuffix(line, "\n"))
		}
	}
	if r.failed {
		return Memory{}, errFormat
	}
	return m, nil
}

func isKnown(key string) bool {
	switch key {
	case "program", "host", "operator", "operand", "command", "started", "newest",
		"paused", "paused_for", "paused_why", "paused_boot", "paused_machine", "paused_timens", "paused_boottime":
		return true
	}
	return learn.Is(key)
}

// Last is a last lock as it was found: when the atom last completed, and what is remembered.
type Last struct {
	Completed time.Time     // zero: never
	Cut       time.Duration // Completed and Memory.Started were rounded down by less than this
	Damaged   bool          // its content cannot be read, as after a loss of power: all else is zero
	Memory    Memory
}
