package lock

import (
	"errors"
	"io/fs"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/exit"
	"adlock/lib/learn"
	"adlock/lib/name"
)

// Last is a last lock as it was found: when the atom last completed, and what
// is remembered of it.
type Last struct {
	Completed time.Time     // zero: never
	Cut       time.Duration // less than this may be missing from it, and from Memory.Started
	Memory    Memory
}

// Memory is the content of a last lock. Fields that are not known here are kept.
type Memory struct {
	Atom    name.Atom // the identity, where the name tells it by a checksum only
	Started time.Time // the start of the last run; zero: not recorded
	Learned learn.State
	other   []string // lines of other keys, as they were
}

// Empty reports whether there is nothing to remember.
func (m Memory) Empty() bool {
	return m.Atom == name.Atom{} && m.Started.IsZero() && m.Learned == learn.State{} && len(m.other) == 0
}

func (m Memory) bytes() []byte {
	var w writer
	if m.Atom != (name.Atom{}) {
		w.atom(m.Atom)
	}
	if !m.Started.IsZero() {
		w.text("started", m.Started.UTC().Format(time.RFC3339Nano))
	}
	for _, line := range m.Learned.Lines() {
		w.line(line)
	}
	for _, line := range m.other {
		w.line(line)
	}
	return []byte(w.String())
}

func parseMemory(content []byte) (Memory, error) {
	fields, ok := parseFields(string(content))
	if !ok {
		return Memory{}, ErrFormat
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
	m.Learned = learn.Parse(fields)
	for line := range strings.Lines(string(content)) {
		if key, _, _ := strings.Cut(line, "="); !isKnown(key) {
			m.other = append(m.other, strings.TrimSuffix(line, "\n"))
		}
	}
	if r.failed {
		return Memory{}, ErrFormat
	}
	return m, nil
}

func isKnown(key string) bool {
	switch key {
	case "program", "host", "operator", "operand", "started":
		return true
	}
	return learn.Is(key)
}

// Last reads the last lock last.NAME; fs.ErrNotExist where there is none.
func (d *Dir) Last(name string) (Last, error) {
	f, err := d.openFile(LastPrefix+name, unix.O_RDONLY)
	if err != nil {
		return Last{}, err
	}
	defer f.Close()
	last := Last{}
	if f.st.Mtim.Nano() != 0 {
		last.Completed, last.Cut = f.modified(), cutOff(f.st.Mtim, f.st.Ctim)
	}
	if f.st.Size == 0 {
		return last, nil
	}
	content, err := f.read()
	if err != nil {
		return Last{}, err
	}
	if last.Memory, err = parseMemory(content); err != nil {
		return Last{}, &exit.Error{Code: exit.IO, Object: d.Path(f.name), Err: err}
	}
	return last, nil
}

// cutOff is less than what a file system has cut off a time of change: a second
// where it keeps whole ones (ext3, HFS+, a server of such). One that keeps
// fractions shows one at least in the ctime, which nobody can set.
func cutOff(mtime, ctime unix.Timespec) time.Duration {
	if mtime.Nsec == 0 && ctime.Nsec == 0 {
		return time.Second
	}
	return 0
}

// MakeLast creates the last lock of an atom that never completed: mtime 0. It
// must exist before the atom is first taken, or circular waiting could not be
// broken (the paper's deadlock rule). One that is there already is left alone.
func (d *Dir) MakeLast(name string, memory Memory) error {
	return d.placeLast(name, memory, time.Time{}, (*Draft).Link)
}

// Remember changes what the last lock holds and keeps its mtime: remembering is
// no completion. Only under the active lock, and where there may be readers Marked.
func (d *Dir) Remember(name string, completed time.Time, memory Memory) error {
	return d.placeLast(name, memory, completed, (*Draft).Replace)
}

func (d *Dir) placeLast(name string, memory Memory, completed time.Time, place func(*Draft, string) error) error {
	draft, err := d.Draft(memory.bytes())
	if err != nil {
		return err
	}
	defer draft.Discard()
	if err := draft.setModified(completed); err != nil {
		return err
	}
	if err := place(draft, LastPrefix+name); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// Stamp records that the atom completes now: the last lock's mtime. One that an
// administrator deleted meanwhile is made again, with the memory.
func (d *Dir) Stamp(name string, memory Memory) error {
	f, err := d.openFile(LastPrefix+name, unix.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return d.stampAnew(name, memory)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	return f.touch()
}

func (d *Dir) stampAnew(name string, memory Memory) error {
	draft, err := d.Draft(memory.bytes())
	if err != nil {
		return err
	}
	defer draft.Discard()
	if err := draft.Link(LastPrefix + name); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// RemoveLast prunes a last lock; nothing happens where there is none.
func (d *Dir) RemoveLast(name string) error {
	err := retry(func() error { return unix.Unlinkat(d.fd, LastPrefix+name, 0) })
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return exit.Wrap(d.Path(LastPrefix+name), err)
}

// LastChanged is when the last lock was last stamped, made or remembered in:
// its ctime, as the mtime of one that never completed is the epoch.
func (d *Dir) LastChanged(name string) (time.Time, error) {
	f, err := d.openFile(LastPrefix+name, unix.O_RDONLY)
	if err != nil {
		return time.Time{}, err
	}
	defer f.Close()
	return time.Unix(f.st.Ctim.Unix()), nil
}
