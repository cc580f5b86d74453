package history

import (
	"errors"
	"io/fs"
	"iter"
	"slices"

	"adlock/lib/runlog"
)

// Follow yields recent events of the runlogs in dir, as many as runlog.Follow reads. Then it calls present, and yields
// new events as they are written. An error other than a *runlog.DamagedLine ends the sequence. Follow does not merge
// the runlogs by time. It waits for a runlog that does not exist yet only if the runlog is that of host.
func Follow(dir, host string, present func()) iter.Seq2[runlog.Event, error] {
	return func(yield func(runlog.Event, error) bool) {
		hosts, err := runlog.Hosts(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			yield(runlog.Event{}, err)
			return
		}
		if !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
		stop, arriving := make(chan struct{}), make(chan news)
		defer close(stop)
		for _, host := range hosts {
			go send(stop, arriving, runlog.Follow(stop, dir, host))
		}
		unread := len(hosts)
		for n := range arriving {
			if errors.Is(n.err, runlog.ErrPresent) {
				if unread--; unread == 0 {
					present()
				}
				continue
			}
			if !yield(n.event, n.err) {
				return
			}
			if damaged := (*runlog.DamagedLine)(nil); n.err != nil && !errors.As(n.err, &damaged) {
				return
			}
		}
	}
}

type news struct {
	event runlog.Event
	err   error
}

func send(stop <-chan struct{}, to chan<- news, events iter.Seq2[runlog.Event, error]) {
	for e, err := range events {
		select {
		case to <- news{e, err}:
		case <-stop:
			return
		}
	}
}
