package runlog

import (
	"bytes"
	"cmp"
	"iter"
	"os"
	"slices"
)

// firstPiece is how many bytes are read first, before larger pieces: the wanted event is mostly near the end.
const firstPiece = 4 << 10

// Newest yields the events in the last most bytes of the current file and .1 (or those of Seen), the newest
// first. It skips damaged lines, and ends without an error if it cannot read: some or all events may be missing.
func (l *Log) Newest(most int64) iter.Seq[Event] {
	return func(yield func(Event) bool) { l.yieldNewest(most, yield) }
}

// yieldNewest is separate from Newest, as the compiler would otherwise copy its code into each caller's loop.
func (l *Log) yieldNewest(most int64, yield func(Event) bool) {
	if l.Seen != nil {
		slices.Backward(l.Seen)(func(_ int, e Event) bool { return yield(e) })
		return
	}
	files, err := openRunlog(l.Dir, l.Host)
	if err != nil {
		return
	}
	defer closeAll(files)
	for _, f := range slices.Backward(files) {
		left, goesOn := l.yieldEnd(f, most, yield)
		if most = left; !goesOn {
			return
		}
	}
}

// yieldEnd is yieldNewest for one file. It returns what is left of most; goesOn is false if yield wants no more.
func (l *Log) yieldEnd(f *os.File, most int64, yield func(Event) bool) (left int64, goesOn bool) {
	info, err := f.Stat()
	if err != nil {
		return most, true
	}
	end, floor := info.Size(), max(0, info.Size()-most)
	most -= end - floor
	for piece := int64(firstPiece); end > floor; piece *= 4 {
		begin := max(floor, end-piece)
		text := make([]byte, end-begin)
		if _, err := f.ReadAt(text, begin); err != nil {
			break
		}
		if begin > floor { // the beginning of the first line may be missing
			_, text, _ = bytes.Cut(text, []byte("\n"))
		}
		if !l.yieldLines(text, yield) {
			return most, false
		}
		end -= int64(len(text))
	}
	return most, true
}

func (l *Log) yieldLines(text []byte, yield func(Event) bool) bool {
	var p parser
	for len(text) > 0 {
		end := bytes.LastIndexByte(text[:len(text)-1], '\n') + 1
		line := bytes.TrimSuffix(text[end:], []byte("\n"))
		text = text[:end]
		e, err := p.parse(line)
		if err != nil {
			continue
		}
		e.Host = cmp.Or(e.Host, l.Host)
		if !yield(e) {
			return false
		}
	}
	return true
}
