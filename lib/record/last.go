package record

import (
	"errors"
	"strings"
	"time"

	"adlock/lib/atom"
	"adlock/lib/learn"
)

var errFormat = errors.New("unknown format")

// Memory is the content of a last lock. Lines with unknown keys are kept.
type Memory struct {
	Atom    atom.Atom // set if the file's name contains a checksum and so does not determine the atom
	Started time.Time // when the last run was asked for; zero: not recorded
	Newest  Start     // when the newest run that replaced another was asked for; zero: not recorded
	Learned learn.State
	Pause   Pause
	other   []string // lines with unknown keys, unchanged, each with its newline
}

func (m Memory) Bytes() []byte {
	text := Write(m.lines)
	for _, line := range m.other {
		text = append(text, line...)
	}
	return text
}

func (m Memory) MarshalText() ([]byte, error) { return m.Bytes(), nil }

func (m *Memory) UnmarshalText(text []byte) (err error) {
	*m, err = ParseMemory(text)
	return err
}

func (m *Memory) lines(l *Lines) {
	l.atom(&m.Atom)
	l.Instant("started", &m.Started)
	if l.has("newest", m.Newest != Start{}) {
		value(l, "newest", &m.Newest, Start.String, parseStart)
	}
	if l.has("paused", !m.Pause.Since.IsZero()) {
		m.Pause.lines(l)
	}
	l.learned(&m.Learned)
}

// ParseMemory reads lines as Bytes writes them, and lets the methods in more read theirs. Lines with unknown keys are
// kept; content of another form is an error.
func ParseMemory(content []byte, more ...func(*Lines)) (m Memory, err error) {
	others, ok := Read(content, append(more, m.lines)...)
	if !ok {
		return Memory{}, errFormat
	}
	for line := range strings.Lines(string(content)) {
		key, _, _ := strings.Cut(line, "=")
		if _, left := others[key]; left {
			m.other = append(m.other, line)
		}
	}
	return m, nil
}

// Last is a last lock as it was found: when the atom last completed, and what is remembered.
type Last struct {
	Completed time.Time     // zero: never
	Cut       time.Duration // Completed and Memory.Started were rounded down by less than this
	Damaged   bool          // its content cannot be read, as after a loss of power: all other fields are zero
	Memory    Memory
}
