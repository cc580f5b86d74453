package runlog

import (
	"bytes"
	"iter"
	"os"
	"slices"
)

// firstPiece is how many bytes at the end of the runlog Newest reads first; then it reads larger
// and larger pieces. The event that a caller looks for is mostly among the last lines.
const firstPiece = 4 << 10

// Newest yields the last events of the runlog, the newest first: those whose lines are within the
// last bytes of the current file; most is the number of these bytes. It skips damaged lines, and
// ends without an error if it cannot read: use it for information, not for decisions.
func (l *Log) Newest(most int64) iter.Seq[Event] {
	if l.Seen != nil {
		return l.newestSeen
	}
	return func(yield func(Event) bool) {
		f, err := openRegular(l.path())
		if err != nil {
			return
		}
		defer f.Close() // only read from
		info, err := f.Stat()
		if err != nil {
			return
		}
		end, floor := info.Size(), max(0, info.Size()-most)
		for piece := int64(firstPiece); end > floor; piece *= 4 {
			begin := max(floor, end-piece)
			text, err := readPiece(f, begin, end)
			if err != nil {
				return
			}
			if begin > floor {
				text = wholeLines(text)
			}
			if !l.yieldLines(text, yield) {
				return
			}
			end -= int64(len(text))
		}
	}
}

func (l *Log) newestSeen(yield func(Event) bool) {
	for _, e := range slices.Backward(l.Seen) {
		if !yield(e) {
			return
		}
	}
}

// readPiece reads all of what is between begin and end.
func readPiece(f *os.File, begin, end int64) ([]byte, error) {
	text := make([]byte, end-begin)
	_, err := f.ReadAt(text, begin)
	return text, err
}

// wholeLines returns text without its first line, whose beginning may be missing.
func wholeLines(text []byte) []byte {
	_, whole, _ := bytes.Cut(text, []byte("\n"))
	return whole
}

// yieldLines yields the events of whole lines, the last one first, and returns false if no more
// are wanted.
func (l *Log) yieldLines(text []byte, yield func(Event) bool) bool {
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
			return false
		}
	}
	return true
}
