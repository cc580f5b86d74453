package runlog

import (
	"bufio"
	"errors"
	"io"
)

// lines cuts a runlog into lines. It can go on after io.EOF, once there is more.
type lines struct {
	in   *bufio.Reader
	part []byte // of a line that was longer than in's buffer or is not finished yet
}

func newLines(r io.Reader) *lines {
	return &lines{in: bufio.NewReaderSize(r, 64<<10)}
}

// next is the next line, without its newline; it is good until the next call.
// At the end of the file the error is io.EOF, also where an unfinished line is
// left (see rest).
func (l *lines) next() ([]byte, error) {
	for {
		chunk, err := l.in.ReadSlice('\n')
		if err == nil && len(l.part) == 0 {
			return chunk[:len(chunk)-1], nil
		}
		if err == nil {
			l.keep(chunk[:len(chunk)-1])
			return l.rest(), nil
		}
		l.keep(chunk)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
	}
}

// keep adds to the part of a line. What is longer than a line can be (a file
// that is no runlog, or a hole that a crash left) is not held in memory.
func (l *lines) keep(chunk []byte) {
	if room := maxLine - len(l.part); len(chunk) > room {
		chunk = chunk[:room]
	}
	l.part = append(l.part, chunk...)
}

// isTooLong says whether line has, without its newline, the length at which
// more of it may have been dropped.
func isTooLong(line []byte) bool { return len(line) >= maxLine }

// unfinished says whether the file ends, so far, within a line.
func (l *lines) unfinished() bool { return len(l.part) > 0 }

// rest takes what is there of a line.
func (l *lines) rest() []byte {
	line := l.part
	l.part = l.part[:0]
	return line
}
