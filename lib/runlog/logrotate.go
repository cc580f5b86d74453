package runlog

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
)

// logrotate(8) may keep more files of a runlog than adlock does: .2, .3 and so on, some of them compressed.

const (
	compressed  = ".gz"
	mostRotated = 99
)

// Unzip uncompresses files of gzip(1). Programs that read such files set it, so that the helper stays small.
var Unzip = func(io.Reader) (io.Reader, error) { return nil, errors.ErrUnsupported }

// cutRotated removes .1 or .2, with or without .gz, from the name of a rotated file. Higher numbers are never
// there alone, so Hosts needs only these.
func cutRotated(name string) string {
	plain := strings.TrimSuffix(name, compressed)
	for n := 1; n <= 2; n++ {
		if current, is := strings.CutSuffix(plain, rotatedName("", n)); is {
			return current
		}
	}
	return name
}

func rotatedName(name string, n int) string { return name + "." + strconv.Itoa(n) }

// openRotated opens the rotated files that are not among newer, the oldest first, but none above a gap in the numbers
// from 2. If logrotate is just compressing a file, the plain one is still there, and is read.
func openRotated(dir, host string, newer []*os.File) (older []*os.File, err error) {
	for n := 1; n <= mostRotated; n++ {
		name := dir + "/" + rotatedName(fileName(host), n)
		var f *os.File
		err := fs.ErrNotExist
		if n > 1 { // a plain .1 is adlock's own: it is among the newer, or was made since
			f, err = openRegular(name)
		}
		if errors.Is(err, fs.ErrNotExist) {
			f, err = openRegular(name + compressed)
		}
		switch {
		case errors.Is(err, fs.ErrNotExist) && n == 1:
		case errors.Is(err, fs.ErrNotExist):
			n = mostRotated
		case err != nil:
			closeAll(append(older, f))
			return nil, err
		case slices.ContainsFunc(newer, func(newer *os.File) bool { return areSame(newer, f) }): // renamed since
			f.Close()
		default:
			older = append(older, f)
		}
	}
	slices.Reverse(older)
	return older, nil
}

// rotatedEvents yields the events of the newest rotated files that have at most most bytes together, uncompressed, the
// oldest event first. false: yield wants no more, or a read failed. No file is read in part.
func (r *reader) rotatedEvents(older []*os.File, most int64, yield func(Event, error) bool) bool {
	from, texts := len(older), make([]io.Reader, len(older))
	for ; from > 0; from-- {
		f := older[from-1]
		text, size, err := opened(f, most)
		if err != nil {
			yield(Event{}, err)
			return false
		}
		if size > most {
			break
		}
		texts[from-1] = text
		if most != math.MaxInt64 {
			most -= size
		}
	}
	cut := from > 0 || r.leftOut
	for i := from; i < len(older); i++ {
		r.start(older[i])
		r.lines, r.isCut = newLines(texts[i]), cut
		if !r.all(yield) {
			return false
		}
		cut = r.isCut
		if z, is := texts[i].(*unzipped); is && z.err != nil && !yield(Event{}, r.damaged(nil, z.err.Error())) {
			return false
		}
	}
	r.leftOut = cut
	return true
}

func areCut(files []*os.File, most int64) bool {
	return slices.ContainsFunc(files, func(f *os.File) bool {
		info, err := f.Stat()
		return err == nil && info.Size() > most
	})
}

// opened returns the text of a file, uncompressed, and its size. A text of more than most bytes may be cut,
// and its size is then above most. For a compressed file, size is 0 if most is math.MaxInt64.
func opened(f *os.File, most int64) (text io.Reader, size int64, err error) {
	if !strings.HasSuffix(f.Name(), compressed) {
		info, err := f.Stat()
		if err != nil {
			return nil, 0, err
		}
		return io.LimitReader(f, most), info.Size(), nil
	}
	z := &unzipped{file: f}
	if most == math.MaxInt64 {
		return z, 0, nil
	}
	// A small file may hold a long text, whose end can only be reached through all of it.
	all, _ := io.ReadAll(io.LimitReader(z, most+1))
	if z.err != nil {
		return &unzipped{reader: bytes.NewReader(all), err: z.err}, int64(len(all)), nil
	}
	return bytes.NewReader(all), int64(len(all)), nil
}

type unzipped struct {
	file   *os.File
	reader io.Reader
	err    error
}

func (z *unzipped) Read(p []byte) (n int, err error) {
	if z.reader == nil && z.err == nil {
		z.reader, z.err = Unzip(z.file)
	}
	if z.reader == nil || z.file != nil && z.err != nil {
		return 0, io.EOF
	}
	n, err = z.reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		z.err = err
	}
	if err != nil {
		return n, io.EOF
	}
	return n, nil
}
