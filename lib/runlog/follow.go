package runlog

import (
	"io"
	"iter"
	"os"
	"time"
)

const followEvery = 200 * time.Millisecond

// Follow yields the events in .1 and the current file, as Read does, and then those that are written, across
// rotations, until stop is closed or an error ends it. It waits for a missing runlog. It misses lines only if
// the runlog is rotated three times between two checks. A line comes twice if it was written without the lock
// into a file that had left the runlog, because its writer repeats it.
func Follow(stop <-chan struct{}, dir, host string) iter.Seq2[Event, error] {
	return follow(stop, dir, host, followEvery)
}

func follow(stop <-chan struct{}, dir, host string, every time.Duration) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		f := follower{reader: reader{host: host}, dir: dir}
		defer f.close()
		tick := time.NewTicker(every)
		defer tick.Stop()
		for f.look(yield) {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
		}
	}
}

// follower reads on at the end of a runlog. It keeps the previous file open while that is part of the runlog:
// a writer without the lock may write there even after the rotation.
type follower struct {
	reader
	left reader // the previous file; its file is nil if there is none
	dir  string
}

func (f *follower) close() {
	closeAll([]*os.File{f.left.file, f.file}) // only read from
}

// look yields what is new; false: Follow ends. It opens the runlog's files before it reads the current one to
// its end: if that was rotated by then, only writers without the lock may still add lines to it (late).
func (f *follower) look(yield func(Event, error) bool) bool {
	files, err := openRunlog(f.dir, f.host)
	if err != nil {
		yield(Event{}, err)
		return false
	}
	if !f.late(files, yield) {
		closeAll(files)
		return false
	}
	if f.file != nil {
		if files, err = f.after(files); err != nil {
			closeAll(files)
			yield(Event{}, err)
			return false
		}
		if !f.events(yield) {
			closeAll(files)
			return false
		}
	}
	for i, file := range files {
		if !f.turn(file, yield) {
			closeAll(files[i+1:])
			return false
		}
	}
	return true
}

// late yields what was added to the previous file, and closes it once it has left the runlog.
func (f *follower) late(files []*os.File, yield func(Event, error) bool) bool {
	if f.left.file == nil {
		return true
	}
	at, err := indexOf(files, f.left.file)
	if err != nil {
		yield(Event{}, err)
		return false
	}
	if at < 0 {
		closeAll([]*os.File{f.left.file})
		f.left = reader{}
		return true
	}
	return f.left.events(yield)
}

func (f *follower) turn(next *os.File, yield func(Event, error) bool) bool {
	if f.file != nil {
		if !f.unfinished(yield) {
			next.Close()
			return false
		}
		closeAll([]*os.File{f.left.file})
		f.left, f.reader = f.reader, reader{host: f.host}
	}
	f.start(next)
	return f.events(yield)
}

// after returns the files that come after the current one: all if that was rotated twice, or removed. If the
// current file has become shorter, after rewinds it.
func (f *follower) after(files []*os.File) ([]*os.File, error) {
	mine, err := f.file.Stat()
	if err != nil {
		return files, err
	}
	at, err := indexOf(files, f.file)
	if err != nil {
		return files, err
	}
	closeAll(files[:at+1])
	return files[at+1:], f.rewind(mine.Size())
}

func indexOf(files []*os.File, file *os.File) (int, error) {
	mine, err := file.Stat()
	if err != nil {
		return -1, err
	}
	for i, other := range files {
		info, err := other.Stat()
		if err != nil {
			return -1, err
		}
		if os.SameFile(mine, info) {
			return i, nil
		}
	}
	return -1, nil
}

func (f *follower) rewind(size int64) error {
	at, err := f.file.Seek(0, io.SeekCurrent)
	if err != nil || at <= size {
		return err
	}
	_, err = f.file.Seek(0, io.SeekStart)
	f.start(f.file)
	return err
}
