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
	other   []string // lines of other keys, as they were
}

func (m Memory) Bytes() []byte {
	var l lines
	m.lines(&l)
	for _, line := range append(m.Learned.Lines(), m.other...) {
		l.written.WriteString(line + "\n")
	}
	return []byte(l.written.String())
}

func (m *Memory) lines(l *lines) {
	l.atom(&m.Atom)
	if l.has("started", !m.Started.IsZero()) {
		l.instant("started", &m.Started)
	}
	if l.has("newest", m.Newest != Start{}) {
		value(l, "newest", &m.Newest, Start.String, parseStart)
	}
	if l.has("paused", !m.Pause.Since.IsZero()) {
		m.Pause.lines(l)
	}
}

// ParseMemory reads lines as Bytes writes them, also with unknown keys; content of another form is an error.
func ParseMemory(content []byte) (m Memory, err error) {
	l, ok := parseLines(string(content))
	if !ok {
		return Memory{}, errFormat
	}
	if m.lines(l); l.failed {
		return Memory{}, errFormat
	}
	m.Learned = learn.Parse(l.read)
	for line := range strings.Lines(string(content)) {
		key, _, _ := strings.Cut(line, "=")
		if _, left := l.read[key]; left && !learn.Is(key) {
			m.other = append(m.other, strings.TrimSuffix(line, "\n"))
		}
	}
	return m, nil
}

// Last is a last lock as it was found: when the atom last completed, and what is remembered.
type Last struct {
	Completed time.Time     // zero: never
	Cut       time.Duration // Completed and Memory.Started were rounded down by less than this
	Damaged   bool          // its content cannot be read, as after a loss of power: all else is zero
	Memory    Memory
}
