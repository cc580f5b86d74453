package history

import (
	"errors"
	"io/fs"
	"iter"
	"math"

	"adlock/lib/runlog"
)

// Read yields the events of every runlog in dir, including rotated files, merged by time. After an
// error other than a *runlog.DamagedLine, the other runlogs are read on. If dir does not exist, there are no events.
func Read(dir string) iter.Seq2[runlog.Event, error] {
	return func(yield func(runlog.Event, error) bool) {
		hosts, err := runlog.Hosts(dir)
		if errors.Is(err, fs.ErrNotExist) {
			return
		}
		if err != nil {
			yield(runlog.Event{}, err)
			return
		}
		ReadEnd(dir, hosts, math.MaxInt64)(yield)
	}
}

// ReadEnd is Read for the runlogs of these hosts (canonical), but reads only the end of each, as runlog.Read does with
// most. Where it leaves lines out, it yields runlog.ErrCut.
func ReadEnd(dir string, hosts []string, most int64) iter.Seq2[runlog.Event, error] {
	if len(hosts) == 1 {
		return runlog.Read(dir, hosts[0], most)
	}
	return func(yield func(runlog.Event, error) bool) { merge(dir, hosts, most, yield) }
}

type source struct {
	next  func() (runlog.Event, error, bool)
	event runlog.Event
	err   error
	more  bool
}

func (s *source) advance() { s.event, s.err, s.more = s.next() }

// merge yields the events of several runlogs, always the earliest of those that come next in each. An error other than
// runlog.ErrCut has no time and comes at once.
func merge(dir string, hosts []string, most int64, yield func(runlog.Event, error) bool) {
	sources := make([]*source, len(hosts))
	for i, host := range hosts {
		next, stop := iter.Pull2(runlog.Read(dir, host, most))
		defer stop()
		sources[i] = &source{next: next}
		sources[i].advance()
	}
	for s := earliest(sources); s != nil; s = earliest(sources) {
		if !yield(s.event, s.err) {
			return
		}
		s.advance()
	}
}

func earliest(sources []*source) *source {
	var first *source
	for _, s := range sources {
		if s.more && (first == nil || s.event.Time.Before(first.event.Time)) {
			first = s // an error comes with the zero time; runlog.ErrCut with that of the next event
		}
	}
	return first
}

// Each calls do with every event, counts the damaged lines, and returns the last of the other errors.
func Each(events iter.Seq2[runlog.Event, error], do func(*runlog.Event)) (damaged int, err error) {
	for e, failed := range events {
		var line *runlog.DamagedLine
		switch {
		case errors.As(failed, &line):
			damaged++
		case failed != nil:
			err = failed
		default:
			do(&e)
		}
	}
	return damaged, err
}
