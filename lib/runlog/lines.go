package runlog

import (
	"bufio"
	"errors"
	"io"
)

// lines splits a runlog into lines. It can continue after io.EOF, once there is more.
type lines struct {
	in   *bufio.Reader
	part []byte // of a line that is longer than in's buffer or not finished yet
}

func newLines(r io.Reader) *lines {
	return &lines{in: bufio.NewReaderSize(r, 64<<10)}
}

// next returns a line without its newline, valid until the next call. At the end of the file the error
// is io.EOF, even if an unfinished line is left (rest).
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

// keep adds chunk to the line, up to maxLine bytes: a crash can leave a hole that is far longer than a line.
func (l *lines) keep(chunk []byte) {
	if room := maxLine - len(l.part); len(chunk) > room {
		chunk = chunk[:room]
	}
	l.part = append(l.part, chunk...)
}

func (l *lines) unfinished() bool { return len(l.part) > 0 }

func (l *lines) rest() []byte {
	line := l.part
	l.part = l.part[:0]
	return line
}
