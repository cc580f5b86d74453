package record

import (
	"strconv"
	"strings"
	"time"

	"adlock/lib/atom"
	"adlock/lib/limit"
	"adlock/lib/process"
)

// writer puts key=value lines together.
type writer struct{ strings.Builder }

func (w *writer) line(text string)            { w.WriteString(text + "\n") }
func (w *writer) text(key, value string)      { w.line(key + "=" + value) }
func (w *writer) quoted(key, value string)    { w.text(key, strconv.Quote(value)) }
func (w *writer) number(key string, n uint64) { w.text(key, strconv.FormatUint(n, 10)) }

func (w *writer) atom(a atom.Atom) {
	w.quoted("program", a.Program)
	w.quoted("host", a.Host)
	w.quoted("operator", a.Operator)
	w.quoted("operand", a.Operand)
	if a.Command != "" {
		w.quoted("command", a.Command)
	}
}

func (w *writer) identity(prefix string, id process.Identity) {
	w.number(prefix+"uid", uint64(id.UID))
	w.number(prefix+"pgid", uint64(id.PGID))
	w.number(prefix+"start", id.Start)
	w.text(prefix+"boot", id.BootID())
	w.text(prefix+"machine", id.Machine)
	w.number(prefix+"pidns", id.PIDNS)
	w.number(prefix+"timens", id.TimeNS)
	if id.SID != process.Unrecorded {
		w.number(prefix+"session", uint64(id.SID))
	}
	w.number(prefix+"inode", id.Inode)
}

// parseFields reads key=value lines; every line must be whole.
func parseFields(text string) (map[string]string, bool) {
	fields := make(map[string]string, 24)
	for text != "" {
		line, rest, whole := strings.Cut(text, "\n")
		key, value, found := strings.Cut(line, "=")
		if _, twice := fields[key]; !whole || !found || twice {
			return nil, false
		}
		fields[key] = value
		text = rest
	}
	return fields, true
}

// reader takes values out of fields and remembers whether one was missing or bad.
type reader struct {
	fields map[string]string
	failed bool
}

func (r *reader) text(key string) string {
	value, there := r.fields[key]
	r.failed = r.failed || !there
	return value
}

func (r *reader) quoted(key string) string {
	value, err := strconv.Unquote(r.text(key))
	r.failed = r.failed || err != nil
	return value
}

func (r *reader) number(key string, bits int) uint64 {
	n, err := strconv.ParseUint(r.text(key), 10, bits)
	r.failed = r.failed || err != nil
	return n
}

// session and inode accept a missing key: earlier versions did not write these two.
func (r *reader) session(key string) int {
	if _, there := r.fields[key]; !there {
		return process.Unrecorded
	}
	return int(r.number(key, 31))
}

func (r *reader) inode(key string) uint64 {
	if _, there := r.fields[key]; !there {
		return 0
	}
	return r.number(key, 64)
}

func (r *reader) duration(key string) time.Duration {
	d, err := time.ParseDuration(r.text(key))
	r.failed = r.failed || err != nil
	return d
}

func (r *reader) limit(key string) time.Duration {
	d, err := limit.Parse(r.text(key))
	r.failed = r.failed || err != nil
	return d
}

func (r *reader) atom() atom.Atom {
	a := atom.Atom{Program: r.quoted("program"), Host: r.quoted("host"), Operator: r.quoted("operator"), Operand: r.quoted("operand")}
	if _, there := r.fields["command"]; there {
		a.Command = r.quoted("command")
	}
	r.failed = r.failed || a.Check() != nil
	return a.Cut()
}

func (r *reader) identity(prefix string, pid int) process.Identity {
	return process.Identity{
		PID:     pid,
		UID:     int(r.number(prefix+"uid", 32)),
		PGID:    int(r.number(prefix+"pgid", 31)),
		Start:   r.number(prefix+"start", 64),
		Boot:    r.text(prefix + "boot"),
		Machine: r.text(prefix + "machine"),
		PIDNS:   r.number(prefix+"pidns", 64),
		TimeNS:  r.number(prefix+"timens", 64),
		SID:     r.session(prefix + "session"),
		Inode:   r.inode(prefix + "inode"),
	}
}
