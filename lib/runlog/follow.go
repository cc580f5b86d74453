package runlog

import (
	"errors"
	"io"
	"iter"
	"os"
	"slices"
	"time"
)

var followEvery = 200 * time.Millisecond // shorter in tests

// ErrPresent is yielded by Follow once, between the events already written and those that are written from then on.
var ErrPresent = errors.New("all that was there has been read")

// Follow yields the events in .1 and the current file, as Read does, and then those that follow. It goes on
// across rotations, until stop is closed or an error ends it. It waits for a missing runlog. It misses lines only if
// the runlog is rotated three times between two checks. It may yield a line twice: a writer that could not lock the file
// in time writes without the lock, and writes again if a rotation has removed that file.
func Follow(stop <-chan struct{}, dir, host string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		var readers []*reader // of the runlog's files
		defer func() { closeReaders(readers) }()
		tick := time.Tick(followEvery)
		for first := true; ; first = false {
			files, err := openRunlog(dir, host)
			if err != nil {
				yield(Event{}, err)
				return
			}
			var left []*reader
			readers, left = readersOf(files, host, readers)
			ended := !more(append(left, readers...), yield) || first && !yield(Event{}, ErrPresent)
			closeReaders(left)
			if ended {
				return
			}
			select {
			case <-stop:
				return
			case <-tick:
			}
		}
	}
}

// readersOf returns a reader for each file, from known if possible, and in left the rest of known. A file stays open
// while it is part of the runlog: a writer without the lock may write into it even after the rotation.
func readersOf(files []*os.File, host string, known []*reader) (readers, left []*reader) {
	for _, file := range files {
		at := slices.IndexFunc(known, func(r *reader) bool { return areSame(r.file, file) })
		if at < 0 {
			r := &reader{host: host}
			r.start(file)
			readers = append(readers, r)
			continue
		}
		file.Close()
		readers, known = append(readers, known[at]), slices.Delete(known, at, at+1)
	}
	return readers, known
}

// more yields what is new in each file; false if yield wants no more or a read failed. All files are open before
// the first is read, so only writers without the lock may still add lines to a file that is not the newest.
func more(readers []*reader, yield func(Event, error) bool) bool {
	for i, r := range readers {
		if err := r.rewind(); err != nil {
			yield(Event{}, err)
			return false
		}
		if !r.events(yield) {
			return false
		}
		if i < len(readers)-1 && !r.passed {
			r.passed = true
			if !r.unfinished(yield) {
				return false
			}
		}
	}
	return true
}

// rewind goes back to the beginning of a file that has become shorter.
func (r *reader) rewind() error {
	info, err := r.file.Stat()
	if err != nil {
		return err
	}
	at, err := r.file.Seek(0, io.SeekCurrent)
	if err != nil || at <= info.Size() {
		return err
	}
	_, err = r.file.Seek(0, io.SeekStart)
	r.start(r.file)
	return err
}

func closeReaders(readers []*reader) {
	for _, r := range readers {
		r.file.Close() // only read from
	}
}

func areSame(a, b *os.File) bool {
	one, _ := a.Stat()
	other, _ := b.Stat()
	return os.SameFile(one, other)
}
