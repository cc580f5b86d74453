package lock

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"time"

	"adlock/lib/limit"
	"adlock/lib/name"
	"adlock/lib/process"
)

// format is the version of the record: one with another number is not guessed at.
const format = "1"

// Record is the content of an active lock: who owns it, and on what terms.
type Record struct {
	Owner process.Identity // whose death frees the lock
	Job   process.Identity // on a terminal: the job, held at a gate until it was recorded; PID 0: none
	Token string           // names this acquisition
	Atom  name.Atom        // zero: not known to who holds the lock to prune or forget what it stands for

	Boottime    time.Duration // when the lock was made, on the clock that counts suspend and takes no steps
	IfElapsed   time.Duration // what the owner asked for, for those who ask what runs
	ExpireAfter time.Duration // what the owner asked for

	Supervised bool          // the owner is `adlock run`, which passes signals on to its job
	Patience   time.Duration // the owner ends its job at ExpireAfter itself: newcomers leave it this much longer
	FromStart  bool          // the start of this run is to be remembered
	Learn      bool          // its end is to teach the atom's limits
	Shared     bool          // the owner reads: others may read at the same time
	Slots      int           // the limit under which the owner took a slot too; 0: none
}

// ErrFormat says that a last lock's content is none we know.
var ErrFormat = errors.New("unknown format")

// Bytes returns the record as it stands in the file: the pid alone on line 1
// (as shlock and the 1997 paper have it), the token on line 2, where a shell
// reads it back, then key=value lines.
func (r Record) Bytes() []byte {
	var w writer
	w.line(strconv.Itoa(r.Owner.PID))
	w.text("token", r.Token)
	w.text("format", format)
	if r.Atom != (name.Atom{}) {
		w.atom(r.Atom)
	}
	w.identity("", r.Owner)
	if r.Job.PID != 0 {
		w.number("job.pid", uint64(r.Job.PID))
		w.identity("job.", r.Job)
	}
	w.text("boottime", r.Boottime.String())
	w.text("if_elapsed", limit.Format(r.IfElapsed))
	w.text("expire_after", limit.Format(r.ExpireAfter))
	if r.Supervised {
		w.text("supervised", "yes")
	}
	if r.FromStart {
		w.text("from_start", "yes")
	}
	if r.Shared {
		w.text("shared", "yes")
	}
	if r.Learn {
		w.text("learn", "yes")
	}
	if r.Patience > 0 {
		w.text("patience", r.Patience.String())
	}
	if r.Slots > 0 {
		w.number("slots", uint64(r.Slots))
	}
	w.text("end", "")
	return []byte(w.String())
}

type writer struct{ strings.Builder }

func (w *writer) line(text string)            { w.WriteString(text + "\n") }
func (w *writer) text(key, value string)      { w.line(key + "=" + value) }
func (w *writer) quoted(key, value string)    { w.text(key, strconv.Quote(value)) }
func (w *writer) number(key string, n uint64) { w.text(key, strconv.FormatUint(n, 10)) }

func (w *writer) atom(a name.Atom) {
	w.quoted("program", a.Program)
	w.quoted("host", a.Host)
	w.quoted("operator", a.Operator)
	w.quoted("operand", a.Operand)
}

func (w *writer) identity(prefix string, id process.Identity) {
	w.number(prefix+"uid", uint64(id.UID))
	w.number(prefix+"pgid", uint64(id.PGID))
	w.number(prefix+"start", id.Start)
	w.text(prefix+"boot", id.Boot)
	w.text(prefix+"machine", id.Machine)
	w.number(prefix+"pidns", id.PIDNS)
	w.number(prefix+"timens", id.TimeNS)
	if id.SID != process.Unrecorded {
		w.number(prefix+"session", uint64(id.SID))
	}
	w.number(prefix+"inode", id.Inode)
}

// Content is what an active lock turned out to hold.
type Content int

// What may stand in an active lock.
const (
	Full    Content = iota // a record of ours
	PIDOnly                // a pid and nothing else (shlock's)
	Empty                  // nothing: another tool's, or a full disk's
	Damaged                // none of these, or cut short: never replaced
)

// Parse reads the content of an active lock. A record that is cut short anywhere,
// or to which something unknown was appended, is Damaged: half a pid would be
// somebody else's.
func Parse(content []byte) (Record, Content) {
	record, _, kind := parse(content)
	return record, kind
}

// parse reads the content of an active lock: the record, and what was appended.
func parse(content []byte) (Record, Appended, Content) {
	head, tail := Split(content)
	record, kind := parseRecord(head)
	appended, ok := parseAppended(tail, record.Owner)
	if !ok {
		return Record{}, Appended{}, Damaged
	}
	return record, appended, kind
}

// Split divides the content of a lock behind the line that ends the record.
func Split(content []byte) (record, rest []byte) {
	const end = "\nend=\n"
	if at := bytes.Index(content, []byte(end)); at >= 0 {
		return content[:at+len(end)], content[at+len(end):]
	}
	return content, nil
}

func parseRecord(content []byte) (Record, Content) {
	if len(content) == 0 {
		return Record{}, Empty
	}
	first, rest, whole := strings.Cut(string(content), "\n")
	pid, err := strconv.ParseInt(strings.Trim(first, " \t"), 10, 32)
	if err != nil || pid <= 0 || !whole {
		return Record{}, Damaged
	}
	if rest == "" {
		return Record{Owner: process.Identity{PID: int(pid)}}, PIDOnly
	}
	fields, ok := parseFields(rest)
	if !ok || fields["format"] != format {
		return Record{}, Damaged
	}
	r := reader{fields: fields}
	record := Record{
		Owner:       r.identity("", int(pid)),
		Token:       r.text("token"),
		Boottime:    r.duration("boottime"),
		IfElapsed:   r.limit("if_elapsed"),
		ExpireAfter: r.limit("expire_after"),
		Supervised:  fields["supervised"] == "yes",
		FromStart:   fields["from_start"] == "yes",
		Shared:      fields["shared"] == "yes",
		Learn:       fields["learn"] == "yes",
	}
	if _, there := fields["program"]; there {
		record.Atom = r.atom()
	}
	if _, there := fields["job.pid"]; there {
		record.Job = r.identity("job.", int(r.number("job.pid", 31)))
	}
	if _, there := fields["patience"]; there {
		record.Patience = r.duration("patience")
	}
	if _, there := fields["slots"]; there {
		record.Slots = int(r.number("slots", 31))
	}
	r.text("end")
	if r.failed {
		return Record{}, Damaged
	}
	return record, Full
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

// Records of earlier versions have neither session nor inode.
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

func (r *reader) atom() name.Atom {
	a := name.Atom{Program: r.quoted("program"), Host: r.quoted("host"), Operator: r.quoted("operator"), Operand: r.quoted("operand")}
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
