package runlog

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"iter"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/sysfile"
)

// DamagedLine is the error for a line that is no event, and for the damaged rest of a compressed file. Reading goes on.
type DamagedLine struct {
	File   string // the file's path
	Line   int    // the line number, from 1, in what was read of the file; of a damaged rest: of the line before, or 0
	Text   string // the line, cut at 4 KiB; for a damaged rest: ""
	Reason string // what is wrong with it
}

func (d *DamagedLine) Error() string {
	return d.File + ":" + strconv.Itoa(d.Line) + ": damaged line: " + d.Reason
}

const damagedText = 4 << 10

// Hosts returns the hosts, canonical and sorted, whose runlogs are in the directory dir.
func Hosts(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return HostsOf(names), nil
}

// HostsOf is Hosts for a directory with files of these names.
func HostsOf(names []string) (hosts []string) {
	for _, name := range names {
		if host, ok := hostOf(name); ok {
			hosts = append(hosts, host)
		}
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

func hostOf(name string) (host string, ok bool) {
	host, begins := strings.CutPrefix(cutRotated(name), prefix)
	host, ends := strings.CutSuffix(host, suffix)
	return host, begins && ends && isHost(host)
}

// ErrCut is yielded, with the time of the next event, if events before that one are left out.
var ErrCut = errors.New("begins before this")

// Read yields the events in the runlog of host in dir, the oldest first, and a *DamagedLine for each line that is not
// an event. If a rotated file cannot be read, Read first yields that error, and skips the file and all older ones. Any
// other error ends Read; if there is no runlog, it is fs.ErrNotExist. Read does not yield lines that are written after it
// has reached the end. It reads a file once that is rotated meanwhile. It takes no lock: a slow reader delays no writer.
//
// Of all files together, Read yields only the lines within the newest bytes, as many as most says. It skips a whole
// rotated file, except .1, that does not fit into them.
func Read(dir, host string, most int64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		files, err := openRunlog(dir, host)
		var older []*os.File
		var unread error
		if err == nil {
			older, unread = openRotated(dir, host, files)
		}
		if err == nil && unread == nil && len(files)+len(older) == 0 {
			err = failed("open", dir+"/"+fileName(host), unix.ENOENT)
		}
		defer closeAll(files)
		defer closeAll(older)
		var shares []int64 // how many bytes of most each of files may use, the newest first
		for i := len(files) - 1; i >= 0; i-- {
			shares = append(shares, most)
			if info, failed := files[i].Stat(); failed == nil && most != math.MaxInt64 {
				most = max(0, most-info.Size())
			}
		}
		var leftOut int
		var texts map[*os.File]io.Reader
		if err == nil {
			texts, leftOut, err = textsOf(older, most)
		}
		if err != nil {
			yield(Event{}, err)
			return
		}
		if unread != nil && !yield(Event{}, unread) {
			return
		}
		r := reader{host: host, leftOut: leftOut > 0}
		all := append(older[leftOut:], files...)
		for i, f := range all {
			r.start(f)
			if text := texts[f]; text != nil {
				r.lines = newLines(text)
			} else if err := r.skip(shares[len(all)-1-i]); err != nil {
				yield(Event{}, err)
				return
			}
			r.isCut = r.isCut || r.leftOut
			if !r.all(yield) {
				return
			}
			r.leftOut = r.isCut
			if z, is := texts[f].(*unzipped); is && z.err != nil && !yield(Event{}, r.damaged(nil, z.err.Error())) {
				return
			}
		}
	}
}

type reader struct {
	host   string
	parser parser
	file   *os.File
	lines  *lines
	number int  // of the last line read
	isCut  bool // events before the next one are left out

	leftOut bool // events of older files are left out
	passed  bool // Follow has found a newer file
}

func (r *reader) start(f *os.File) {
	r.file, r.lines, r.number = f, newLines(f), 0
	r.isCut = false
}

// skip lets the reader begin with the first line in the file's last most bytes, and read no more than that,
// even if the file grows. Line numbers count from there.
func (r *reader) skip(most int64) error {
	if most == math.MaxInt64 {
		return nil
	}
	r.lines = newLines(io.LimitReader(r.file, most))
	info, err := r.file.Stat()
	if err != nil || info.Size() <= most {
		return err
	}
	r.isCut = true
	if _, err := r.file.Seek(-most, io.SeekEnd); err != nil {
		return err
	}
	if _, err = r.lines.next(); errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// grace is how long a line may be incomplete: the kernel shows a write that crosses a page piece by piece.
const grace = 20 * time.Millisecond

func (r *reader) all(yield func(Event, error) bool) bool {
	if !r.events(yield) {
		return false
	}
	if r.lines.unfinished() {
		time.Sleep(grace)
		return r.events(yield) && r.unfinished(yield)
	}
	return true
}

func (r *reader) events(yield func(Event, error) bool) bool {
	for {
		line, err := r.lines.next()
		if errors.Is(err, io.EOF) {
			return true
		}
		if err != nil {
			yield(Event{}, err)
			return false
		}
		r.number++
		if len(line) == 0 || string(line) == torn[:len(torn)-1] {
			continue
		}
		e, err := r.event(line)
		if r.isCut && err == nil {
			r.isCut = false
			if !yield(Event{Time: e.Time}, ErrCut) {
				return false
			}
		}
		if !yield(e, err) {
			return false
		}
	}
}

func (r *reader) event(line []byte) (Event, error) {
	if len(line) >= maxLine { // the rest may have been dropped
		return Event{}, r.damaged(line, "longer than a line can be")
	}
	e, err := r.parser.parse(line)
	if err != nil {
		return Event{}, r.damaged(line, err.Error())
	}
	e.Host = cmp.Or(e.Host, r.host)
	return e, nil
}

func (r *reader) unfinished(yield func(Event, error) bool) bool {
	if !r.lines.unfinished() {
		return true
	}
	r.number++
	return yield(Event{}, r.damaged(r.lines.rest(), "not finished"))
}

func (r *reader) damaged(line []byte, reason string) *DamagedLine {
	text := string(line[:min(len(line), damagedText)])
	return &DamagedLine{File: r.file.Name(), Line: r.number, Text: text, Reason: reason}
}

// openRunlog returns .1 and the current file, in this order, and leaves out a missing one. It opens the current
// file first: if that file still has its name after .1 was opened, no line is missing or doubled.
func openRunlog(dir, host string) ([]*os.File, error) {
	if err := checkHost(host); err != nil {
		return nil, err
	}
	current, old := dir+"/"+fileName(host), dir+"/"+oldName(host)
	for range attempts {
		files, err := openAll(current, old)
		if err != nil {
			return nil, err
		}
		same, err := stillNamed(current, files[0])
		if same {
			slices.Reverse(files)
			return slices.DeleteFunc(files, func(f *os.File) bool { return f == nil }), nil
		}
		closeAll(files)
		if err != nil {
			return nil, err
		}
	}
	return nil, failed("open", current, errors.New("replaced again and again"))
}

func openAll(paths ...string) ([]*os.File, error) {
	files := make([]*os.File, len(paths))
	for i, path := range paths {
		f, err := openRegular(path)
		if sysfile.IgnoreMissing(err) != nil {
			closeAll(files)
			return nil, err
		}
		files[i] = f
	}
	return files, nil
}

// openRegular opens a regular file to read. It follows no link at the end of path, and blocks at no FIFO.
func openRegular(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = failed("open", path, unix.EISDIR)
	} else if err == nil && !info.Mode().IsRegular() {
		err = refuse("open", path, "not a regular file")
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func stillNamed(path string, f *os.File) (bool, error) {
	now, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return f == nil, nil
	}
	if err != nil || f == nil {
		return false, err
	}
	then, err := f.Stat()
	return err == nil && os.SameFile(then, now), err
}

func closeAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close() // the file was only read, so an error loses nothing
		}
	}
}
