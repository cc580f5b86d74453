package runlog

import (
	"bytes"
	"errors"
	"io"
	"iter"
)

// Newest yields the last events of the runlog, the newest first: those whose
// lines are within the last most bytes of the current file. Damaged lines are
// passed over, and what cannot be read is no events: it is for what is nice to
// know, not for what has to be right.
func (l *Log) Newest(most int64) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		text, err := l.tail(most)
		if err != nil {
			return
		}
		r := reader{host: l.Host}
		for len(text) > 0 {
			end := bytes.LastIndexByte(text[:len(text)-1], '\n') + 1
			line := bytes.TrimSuffix(text[end:], []byte("\n"))
			text = text[:end]
			e, err := r.parser.parse(line)
			if err != nil {
				continue
			}
			if e.Host == "" {
				e.Host = l.Host
			}
			if !yield(e) {
				return
			}
		}
	}
}

// tail is at most the last most bytes of the runlog.
func (l *Log) tail(most int64) ([]byte, error) {
	f, err := openRegular(l.path())
	if err != nil {
		return nil, err
	}
	defer f.Close() // only read from
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	text := make([]byte, min(most, info.Size()))
	n, err := f.ReadAt(text, info.Size()-int64(len(text)))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return text[:n], nil
}
