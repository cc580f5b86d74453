package record

import (
	"strconv"
	"strings"
	"time"

	"adlock/lib/atom"
	"adlock/lib/limit"
	"adlock/lib/process"
)

// lines are the key=value lines of a file. For each kind of content, one method names its keys in their
// order, and either writes the lines or reads them.
type lines struct {
	written strings.Builder
	read    map[string]string // nil: they are being written
	failed  bool              // a line is missing or bad
}

func parseLines(text string) (*lines, bool) {
	l := &lines{read: make(map[string]string, 24)}
	for text != "" {
		line, rest, whole := strings.Cut(text, "\n")
		key, value, found := strings.Cut(line, "=")
		if _, twice := l.read[key]; !whole || !found || twice {
			return nil, false
		}
		l.read[key] = value
		text = rest
	}
	return l, true
}

func (l *lines) has(key string, write bool) bool {
	if l.read == nil {
		return write
	}
	_, there := l.read[key]
	return there
}

// line writes a line, or removes it from l.read (failed if it is missing), and returns its value.
func (l *lines) line(key, value string) string {
	if l.read == nil {
		l.written.WriteString(key + "=" + value + "\n")
		return value
	}
	value, there := l.read[key]
	l.failed = l.failed || !there
	delete(l.read, key)
	return value
}

func (l *lines) text(key string, v *string) { *v = l.line(key, *v) }

func (l *lines) flag(key string, v *bool) {
	if l.has(key, *v) {
		*v = l.line(key, "yes") == "yes"
	}
}

func value[T any](l *lines, key string, v *T, format func(T) string, parse func(string) (T, error)) {
	read, err := parse(l.line(key, format(*v)))
	*v, l.failed = read, l.failed || err != nil
}

func (l *lines) quoted(key string, v *string) { value(l, key, v, strconv.Quote, strconv.Unquote) }

func (l *lines) duration(key string, v *time.Duration) {
	value(l, key, v, limit.Exact, time.ParseDuration)
}

func (l *lines) limit(key string, v *time.Duration) { value(l, key, v, limit.Format, limit.Parse) }

func (l *lines) instant(key string, v *time.Time) {
	value(l, key, v, limit.Instant, func(text string) (time.Time, error) { return time.Parse(time.RFC3339Nano, text) })
}

func number[T int | uint64](l *lines, key string, v *T, bits int) {
	n, err := strconv.ParseUint(l.line(key, strconv.FormatUint(uint64(*v), 10)), 10, bits)
	*v, l.failed = T(n), l.failed || err != nil
}

func (l *lines) atom(a *atom.Atom) {
	if !l.has("program", *a != atom.Atom{}) {
		return
	}
	l.quoted("program", &a.Program)
	l.quoted("host", &a.Host)
	l.quoted("operator", &a.Operator)
	l.quoted("operand", &a.Operand)
	if l.has("command", a.Command != "") {
		l.quoted("command", &a.Command)
	}
	l.failed = l.failed || a.Check() != nil
}

func (l *lines) identity(prefix string, id *process.Identity) {
	number(l, prefix+"uid", &id.UID, 32)
	number(l, prefix+"pgid", &id.PGID, 31)
	number(l, prefix+"start", &id.Start, 64)
	id.Boot = l.line(prefix+"boot", id.BootID())
	l.text(prefix+"machine", &id.Machine)
	number(l, prefix+"pidns", &id.PIDNS, 64)
	number(l, prefix+"timens", &id.TimeNS, 64)
	if l.has(prefix+"session", id.SID != process.Unrecorded) {
		number(l, prefix+"session", &id.SID, 31)
	} else {
		id.SID = process.Unrecorded
	}
	number(l, prefix+"inode", &id.Inode, 64)
}
