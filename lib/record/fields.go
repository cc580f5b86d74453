package record

import (
	"strconv"
	"strings"
	"time"

	"adlock/lib/atom"
	"adlock/lib/learn"
	"adlock/lib/limit"
	"adlock/lib/process"
)

// Lines are the key=value lines of a file. For each kind of content, one method names its keys in their
// order, and either writes the lines or reads them.
type Lines struct {
	written []byte
	read    map[string]string // nil: the lines are being written
	failed  bool              // a line is missing or bad
}

// Write returns the lines that the methods write, in the order of the methods.
func Write(methods ...func(*Lines)) []byte {
	var l Lines
	for _, name := range methods {
		name(&l)
	}
	return l.written
}

// Read lets the methods read their lines from text, and returns the other lines by their keys. ok is false if text
// is not made of lines, has a key twice or lacks a line, or if a value is bad.
func Read(text []byte, methods ...func(*Lines)) (others map[string]string, ok bool) {
	l := Lines{read: make(map[string]string, 24)}
	for line := range strings.Lines(string(text)) {
		key, value, found := strings.Cut(line, "=")
		value, whole := strings.CutSuffix(value, "\n")
		if _, twice := l.read[key]; !whole || !found || twice {
			return nil, false
		}
		l.read[key] = value
	}
	for _, name := range methods {
		name(&l)
	}
	return l.read, !l.failed
}

func (l *Lines) has(key string, write bool) bool {
	if l.read == nil {
		return write
	}
	_, there := l.read[key]
	return there
}

// Optional writes or reads a line with name, the method for its kind of value. A missing line means the zero value.
func Optional[T comparable](l *Lines, key string, v *T, name func(string, *T)) {
	if l.has(key, *v != *new(T)) {
		name(key, v)
	}
}

// line writes a line, or removes it from l.read, and returns its value. It sets l.failed if the line is missing there.
func (l *Lines) line(key, value string) string {
	if l.read == nil {
		l.written = append(l.written, key+"="+value+"\n"...)
		return value
	}
	value, there := l.read[key]
	l.failed = l.failed || !there
	delete(l.read, key)
	return value
}

func (l *Lines) Text(key string, v *string) { *v = l.line(key, *v) }

// Flag and Instant leave out the line of a zero value.
func (l *Lines) Flag(key string, v *bool) {
	if l.has(key, *v) {
		*v = l.line(key, "yes") == "yes"
		l.failed = l.failed || !*v
	}
}

func value[T any](l *Lines, key string, v *T, format func(T) string, parse func(string) (T, error)) {
	read, err := parse(l.line(key, format(*v)))
	*v, l.failed = read, l.failed || err != nil
}

func (l *Lines) Quoted(key string, v *string) { value(l, key, v, strconv.Quote, strconv.Unquote) }

func (l *Lines) Duration(key string, v *time.Duration) {
	value(l, key, v, limit.Exact, time.ParseDuration)
}

func (l *Lines) limit(key string, v *time.Duration) { value(l, key, v, limit.Format, limit.Parse) }

func (l *Lines) Instant(key string, v *time.Time) {
	if l.has(key, !v.IsZero()) {
		value(l, key, v, limit.Instant, func(text string) (time.Time, error) { return time.Parse(time.RFC3339Nano, text) })
	}
}

func number[T int | uint64](l *Lines, key string, v *T, bits int) {
	n, err := strconv.ParseUint(l.line(key, strconv.FormatUint(uint64(*v)&(1<<bits-1), 10)), 10, bits)
	*v, l.failed = T(n), l.failed || err != nil
}

func (l *Lines) int(key string, v *int) { number(l, key, v, 31) }

func (l *Lines) uint(key string, v *uint64) { number(l, key, v, 64) }

func (l *Lines) float(key string, v *float64) {
	value(l, key, v, func(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }, func(text string) (float64, error) { return strconv.ParseFloat(text, 64) })
}

// learned writes or reads what was learned. A bad value does not damage the file, but then everything is learned anew.
func (l *Lines) learned(s *learn.State) {
	failed := l.failed
	for _, f := range s.Fields() {
		switch v := f.Value.(type) {
		case *int:
			Optional(l, f.Key, v, l.int)
		case *float64:
			Optional(l, f.Key, v, l.float)
		case *time.Duration:
			Optional(l, f.Key, v, l.Duration)
		case *bool:
			l.Flag(f.Key, v)
		}
	}
	if l.failed || !s.IsValid() {
		*s, l.failed = learn.State{}, failed
	}
}

func (l *Lines) atom(a *atom.Atom) {
	if !l.has("program", *a != atom.Atom{}) {
		return
	}
	l.Quoted("program", &a.Program)
	l.Quoted("host", &a.Host)
	l.Quoted("operator", &a.Operator)
	l.Quoted("operand", &a.Operand)
	Optional(l, "command", &a.Command, l.Quoted)
	l.failed = l.failed || a.Check() != nil
}

func (l *Lines) identity(prefix string, id *process.Identity) {
	number(l, prefix+"uid", &id.UID, 32)
	l.int(prefix+"pgid", &id.PGID)
	l.uint(prefix+"start", &id.Start)
	id.Boot = l.line(prefix+"boot", id.BootID())
	l.Text(prefix+"machine", &id.Machine)
	l.uint(prefix+"pidns", &id.PIDNS)
	l.uint(prefix+"timens", &id.TimeNS)
	if l.has(prefix+"session", id.SID != process.Unrecorded) {
		l.int(prefix+"session", &id.SID)
	} else {
		id.SID = process.Unrecorded
	}
	l.uint(prefix+"inode", &id.Inode)
}
