package main

import (
	"bufio"
	"errors"
	"iter"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/atom"
	"adlock/lib/config"
	"adlock/lib/fault"
	"adlock/lib/insight/history"
	"adlock/lib/insight/terminal"
	"adlock/lib/runlog"
	"adlock/lib/sysfile"
)

var logVerb = verb{
	options: func(q *query) []config.Option {
		q.lines = allLines
		return []config.Option{
			q.sinceOption("all that is recorded"), q.untilOption("the last event"), q.atomOption(), q.allUsersOption(),
			{Name: "event", Arg: "KIND,...", Help: "only events of these kinds: " + strings.Join(kindList(), ", "), Set: q.setKinds},
			{Name: "lines", Alias: "n", Arg: "N", Help: "only the last N events of these", Set: config.Number(&q.lines, 0, 1<<30)},
			{Name: "follow", Alias: "f", Help: "go on with what is added", Set: config.Toggle(&q.follow)},
			{Name: "json", Help: "as JSON, one object a line; durations are seconds", Set: config.Toggle(&q.json)},
		}
	},
	exclusive: [][]string{{"until", "follow"}, {"all-users", "follow"}},
	named:     true,
	show:      showLog,
}

func showLog(q *query) error {
	since, until := q.since.Value, q.until.Value
	if !until.IsZero() && !since.Before(until) {
		return errNoPeriod
	}
	host, unknown := thisHost() // if it is unknown, each line names its host
	l := logView{since: since, until: until, kinds: q.kinds, json: q.json, host: atom.Canonify(host), paint: terminal.Colours(os.Stdout)}
	if q.allUsers {
		return q.showLogOfAll(&l)
	}
	dir, err := config.RunlogDir()
	if err != nil {
		return err
	}
	tellHost("log")
	events := history.Read(dir)
	if l.atom = (choice{text: q.atom}); q.named {
		entries, _, _ := inDirectory() // if they cannot be read, only the atoms in the runlog count
		l.atom = q.choose(entries, events)
	}
	var failed error
	if q.lines < allLines {
		var last []runlog.Event
		last, failed = l.last(events, q.lines, dir)
		events, l.since = all(last), q.now
		if len(last) > 0 {
			l.since = last[0].Time
		}
	}
	if !q.follow {
		if err := errors.Join(l.show(events, dir, false), failed); err != nil {
			return err
		}
		return q.tellEmpty(&l, dir)
	}
	go endWithReader()
	if unknown != nil {
		return unknown
	}
	return l.show(history.Follow(dir, l.host, func() { l.since = since }), dir, true)
}

const allLines = math.MaxInt

type logged struct {
	time time.Time
	text string
}

func (q *query) showLogOfAll(l *logView) error {
	users, failed := everyone(q, func(a *account) ([]logged, error) {
		var lines []logged
		l := *l
		l.user, l.atom = a.user, a.chosen
		damaged, err := history.Each(a.events, func(e *runlog.Event) {
			if l.wants(e) {
				lines = append(lines, logged{e.Time, l.line(e)})
			}
		})
		tellDamage(damaged+a.damaged, "the runlog of "+a.user, "adlock log as that user")
		if len(lines) < q.lines {
			a.tellCut(l.since)
		}
		return lines[max(0, len(lines)-q.lines):], err
	})
	if users == nil {
		return failed
	}
	var lines []logged
	for _, of := range users {
		lines = append(lines, of.value...)
	}
	slices.SortStableFunc(lines, func(a, b logged) int { return a.time.Compare(b.time) })
	lines = lines[max(0, len(lines)-q.lines):]
	if len(lines) == 0 && q.named {
		return errors.Join(failed, q.noAtom("log"))
	}
	var text []byte
	for _, line := range lines {
		text = append(text, line.text...)
	}
	return errors.Join(write(text), failed)
}

// endWithReader ends this process as soon as no process reads its output. The next write would end it too, but may
// come hours later, while the shell waits for the pipeline (`| grep -m 1`).
func endWithReader() {
	gone := []unix.PollFd{{Fd: 1}} // poll(2) always reports POLLERR and POLLHUP
	n, err := sysfile.RetryN(func() (int, error) { return unix.Poll(gone, -1) })
	if n > 0 && err == nil && gone[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0 {
		sysfile.DieOf(unix.SIGPIPE)
	}
}

func (l *logView) last(events iter.Seq2[runlog.Event, error], n int, dir string) (last []runlog.Event, err error) {
	damaged, err := history.Each(events, func(e *runlog.Event) {
		if l.wants(e) {
			last = append(last, *e)
		}
		if len(last)-n > n { // not at each event, as this moves n events
			last = append(last[:0], last[len(last)-n:]...)
		}
	})
	tellDamage(damaged, dir, "adlock log without -n")
	return last[max(0, len(last)-n):], fault.Wrap(dir, err)
}

func all(events []runlog.Event) iter.Seq2[runlog.Event, error] {
	return func(yield func(runlog.Event, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
	}
}

func (q *query) setKinds(list string) error {
	if q.kinds = nil; list == "" {
		return nil
	}
	for text := range strings.SplitSeq(list, ",") {
		kind := runlog.Kind(text)
		if !slices.Contains(runlog.Kinds(), kind) {
			reason := config.Unknown("event "+strconv.Quote(text), text, "", kindList())
			return errors.New(reason.Error() + " (there are " + strings.Join(kindList(), ", ") + ")")
		}
		q.kinds = append(q.kinds, kind)
	}
	return nil
}

func kindList() []string {
	var names []string
	for _, kind := range runlog.Kinds() {
		names = append(names, string(kind))
	}
	return names
}

type logView struct {
	shown bool // an event was printed
	since time.Time
	until time.Time // zero: no end
	atom  choice
	user  string // whose events they are; "": those of only one user are shown
	kinds []runlog.Kind
	json  bool
	host  string // of this machine, canonical: events of others name theirs
	paint terminal.Paint
}

// show prints the selected events; with atOnce, it prints each before it waits for the next. It reports damaged lines.
func (l *logView) show(events iter.Seq2[runlog.Event, error], dir string, atOnce bool) error {
	out := bufio.NewWriterSize(os.Stdout, 64<<10) // the Writer keeps its first error
	var unread failures
	for e, err := range events {
		var damaged *runlog.DamagedLine
		switch {
		case errors.As(err, &damaged):
			_ = out.Flush()
			fault.Warn(damaged.File+":"+strconv.Itoa(damaged.Line),
				"damaged line: "+damaged.Reason+": "+terminal.Cut(damaged.Text, 200, "..."))
		case err != nil:
			unread.add(fault.Wrap(dir, err)) // the other runlogs may be read
		case l.wants(&e):
			_, failed := out.WriteString(l.line(&e))
			if l.shown = true; atOnce {
				failed = out.Flush()
			}
			if failed != nil {
				return fault.Wrap("standard output", failed)
			}
		}
	}
	return errors.Join(fault.Wrap("standard output", out.Flush()), unread.last)
}

func (q *query) tellEmpty(l *logView, dir string) error {
	switch {
	case l.shown:
	case q.atom != "":
		_, entries, err := sources()
		q.named = q.named && err == nil // with an error, the atom may exist
		return q.tellNone("log", dir, entries)
	case terminal.Is(os.Stdout):
		fault.Warn(dir, "nothing is recorded there for this query")
	}
	return nil
}

func (l *logView) wants(e *runlog.Event) bool {
	return !e.Time.Before(l.since) && (l.until.IsZero() || e.Time.Before(l.until)) && (l.kinds == nil || slices.Contains(l.kinds, e.Kind)) &&
		(l.atom.text == "" || l.atom.has(e.Atom()))
}

var kindStyles = map[runlog.Kind]terminal.Style{
	runlog.Acquire: terminal.Green,
	runlog.Expire:  terminal.Red, runlog.Stop: terminal.Red, runlog.Takeover: terminal.Red, runlog.Stuck: terminal.Red,
	runlog.Lost: terminal.Red, runlog.Missing: terminal.Red, runlog.NotRun: terminal.Red,
	runlog.Reclaim: terminal.Yellow, runlog.Starved: terminal.Yellow, runlog.Overdue: terminal.Yellow, runlog.Pause: terminal.Yellow,
	runlog.Resume: terminal.Yellow, runlog.Paused: terminal.Yellow, runlog.Clock: terminal.Yellow, runlog.Clear: terminal.Yellow,
	runlog.Empty: terminal.Yellow, runlog.Cancel: terminal.Yellow,
	runlog.Deny: terminal.Dim, runlog.Signal: terminal.Dim, runlog.Wait: terminal.Dim,
}

func (l *logView) line(e *runlog.Event) string {
	if l.json {
		var text strings.Builder
		_ = encoderOf(&text).Encode(eventObject{e, l.user}) // neither the encoding of an event nor a write to memory can fail
		return text.String()
	}
	text := strings.TrimRight(e.Program+" "+e.Operator+" "+e.Operand, " ")
	if text == "" && (e.Kind == runlog.Pause || e.Kind == runlog.Resume) {
		text = "all jobs of this host"
	}
	if e.Host != l.host && atom.Canonify(e.Host) != l.host { // an event without an atom has the canonical host
		text += " on " + e.Host
	}
	if l.user != "" {
		text = l.user + ": " + text
	}
	return e.Time.Local().Format("2006-01-02 15:04:05.000") + "  " + l.paint.Text(kindStyles[e.Kind], terminal.Pad(string(e.Kind), 8)) +
		"  " + terminal.Clean(text) + ": " + terminal.Clean(details(e)) + "\n"
}
