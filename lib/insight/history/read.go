package history

import (
	"errors"
	"io/fs"
	"iter"

	"adlock/lib/runlog"
)

// Read yields the events of every runlog in the directory dir in the order of their times,
// rotated files included. Damaged lines come as errors of type *runlog.DamagedLine, and reading
// continues; any other error is the last. No directory or no runlog means no events.
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
		if len(hosts) == 1 {
			runlog.Read(dir, hosts[0])(yield)
			return
		}
		merge(dir, hosts, yield)
	}
}

// source is a runlog that is read one event at a time.
type source struct {
	next  func() (runlog.Event, error, bool)
	event runlog.Event
	err   error
	more  bool
}

func (s *source) advance() { s.event, s.err, s.more = s.next() }

// merge takes, again and again, the earliest of what the runlogs have next.
// An error comes before any event.
func merge(dir string, hosts []string, yield func(runlog.Event, error) bool) {
	sources := make([]*source, len(hosts))
	for i, host := range hosts {
		next, stop := iter.Pull2(runlog.Read(dir, host))
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
			first = s // an error's event has the zero time
		}
	}
	return first
}

// Each calls do with every event of what Read returned. It tells how many lines
// were damaged, and the error that ended the reading early, if one did.
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
