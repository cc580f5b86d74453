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

// cutRotated removes .1 or .2, with or without .gz, from the name of a rotated file. logrotate keeps no file
// with a higher number without one of these, so Hosts needs only these.
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

// openRotated opens the rotated files that are not among newer, and returns the oldest first. It stops at two missing
// numbers above 1, or with an error at an unreadable file. While logrotate compresses a file, the plain one is opened.
func openRotated(dir, host string, newer []*os.File) (older []*os.File, unread error) {
	missing := 0
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
			if missing++; missing > 1 { // one is while logrotate renames, the oldest file first
				n = mostRotated
			}
		case err != nil:
			unread, n = err, mostRotated
		case slices.ContainsFunc(slices.Concat(newer, older), func(opened *os.File) bool { return areSame(opened, f) }): // renamed since
			f.Close()
		default:
			older = append(older, f)
		}
	}
	slices.Reverse(older)
	return older, unread
}

// textsOf returns the texts, uncompressed, of the newest rotated files that together fit into most bytes, and how
// many older files are left out. No file is read in part.
func textsOf(older []*os.File, most int64) (texts map[*os.File]io.Reader, leftOut int, err error) {
	texts = make(map[*os.File]io.Reader)
	for leftOut = len(older); leftOut > 0; leftOut-- {
		f := older[leftOut-1]
		text, size, err := opened(f, most)
		if err != nil || size > most {
			return texts, leftOut, err
		}
		texts[f] = text
		if most != math.MaxInt64 {
			most -= size
		}
	}
	return texts, 0, nil
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
	z := &unzipped{}
	if z.reader, z.err = Unzip(f); z.err != nil {
		z.reader = bytes.NewReader(nil)
	}
	if most == math.MaxInt64 {
		return z, 0, nil
	}
	// A small file may hold a long text, which can only be uncompressed from its beginning.
	all, _ := io.ReadAll(io.LimitReader(z, most+1))
	z.reader = bytes.NewReader(all)
	return z, int64(len(all)), nil
}

// unzipped is the text of a compressed file up to where it is damaged.
type unzipped struct {
	reader io.Reader
	err    error // the damage
}

func (z *unzipped) Read(p []byte) (int, error) {
	n, err := z.reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		z.err, err = err, io.EOF
	}
	return n, err
}
