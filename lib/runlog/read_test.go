package runlog

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adlock/test/support/check"
	"adlock/test/support/must"
)

// eventsOf returns the events in one file, none of them damaged.
func eventsOf(t *testing.T, path string) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		f := must.Get(openRegular(path))(t)
		defer f.Close()
		r := reader{host: testHost}
		r.start(f)
		r.all(func(e Event, err error) bool {
			if err != nil {
				t.Error(err)
			}
			return yield(e)
		})
	}
}

const goodLine = "time=2026-11-21T02:58:12.123456Z event=deny operand="

func TestDamagedLinesAreYieldedAsErrors(t *testing.T) {
	dir := folderOf(t)
	addText(t, olderOf(dir), goodLine+"a\n\n torn\n"+strings.Repeat("\x00", 3*maxLine)+"\n"+goodLine+"b\n")
	addText(t, currentOf(dir), "hello\n"+goodLine+strings.Repeat("c", 100<<10)+"\n"+goodLine+"d")
	var got []string
	for e, err := range Read(dir, testHost, math.MaxInt64) {
		var d *DamagedLine
		switch {
		case errors.As(err, &d):
			got = append(got, fmt.Sprintf("%s:%d %.5q %s", filepath.Base(d.File), d.Line, d.Text, d.Reason))
			if len(d.Text) > damagedText {
				t.Errorf("text of %d bytes", len(d.Text))
			}
		case err != nil:
			t.Fatal(err)
		default:
			got = append(got, fmt.Sprintf("%s %.1s %d", e.Host, e.Operand, len(e.Operand)))
		}
	}
	want := []string{
		"dax a 1",
		`program.dax.runlog.1:4 "\x00\x00\x00\x00\x00" longer than a line can be`,
		"dax b 1",
		`program.dax.runlog:1 "hello" no key=value at "hello"`,
		"dax c 102400",
		`program.dax.runlog:3 "time=" not finished`,
	}
	check.Slices(t, "read is", got, want)
}

func TestACallerCanStopReadingAfterAnyValue(t *testing.T) {
	dir := folderOf(t)
	addText(t, olderOf(dir), goodLine+"a\nhello\n"+goodLine+"b\nwor")
	addText(t, currentOf(dir), goodLine+"c\n")
	for stop := range 6 {
		n := 0
		for range Read(dir, testHost, math.MaxInt64) {
			if n++; n > stop {
				break
			}
		}
		check.Equal(t, "values", n, min(stop+1, 5))
	}
}

func TestReadYieldsOneErrorIfThereIsNoRunlog(t *testing.T) {
	for claim, plant := range map[string]func(path string) error{
		"nothing":   func(string) error { return nil },
		"symlink":   func(path string) error { return os.Symlink("/dev/zero", path) },
		"directory": func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		dir, n := folderOf(t), 0
		must.Do(t, plant(currentOf(dir)))
		for e, err := range Read(dir, testHost, math.MaxInt64) {
			if n++; err == nil || n > 1 || errors.Is(err, fs.ErrNotExist) != (claim == "nothing") {
				t.Errorf("%s: %+v, %v", claim, e, err)
			}
		}
		if n == 0 {
			t.Errorf("%s is read as an empty runlog", claim)
		}
	}
}

func TestHostsReturnsTheHostsThatHaveARunlog(t *testing.T) {
	dir := folderOf(t)
	for _, name := range []string{"program.b.runlog", "program.a_b.runlog.1", "program.b.runlog.1", "program..runlog", "lock.a", "program.c.runlog.3", "program.d.runlog.2.gz", "program.x.y.runlog"} {
		addText(t, filepath.Join(dir, name), "")
	}
	hosts, err := Hosts(dir)
	if err != nil || !slices.Equal(hosts, []string{"a_b", "b", "d"}) {
		t.Errorf("hosts %q, %v", hosts, err)
	}
	if _, err := Hosts(filepath.Join(dir, "nothing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v, want fs.ErrNotExist", err)
	}
}

func TestReadHasNoGapWhileFilesAreRotated(t *testing.T) {
	dir := folderOf(t)
	log := &Log{Dir: dir, Host: testHost, Max: 300}
	mustAppend(t, log, "0")
	done := make(chan error, 1)
	go func() {
		for i := 1; i <= 3000; i++ {
			if err := log.Append(Event{Kind: Acquire, Operand: strconv.Itoa(i)}); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for {
		select {
		case err := <-done:
			must.Do(t, err)
			if got := operands(t, dir); got[len(got)-1] != "3000" {
				t.Errorf("last line is %s, want 3000", got[len(got)-1])
			}
			return
		default:
		}
		previous := -1
		for _, operand := range operands(t, dir) {
			n, err := strconv.Atoi(operand)
			if err != nil || previous >= 0 && n != previous+1 {
				t.Fatalf("%s after %d (%v)", operand, previous, err)
			}
			previous = n
		}
	}
}

func init() { followEvery = time.Millisecond }

// following starts to follow the runlog of dir, and returns a function that fails unless the next event
// has this operand, or is an error that ends like this: then want begins with a colon.
func following(t *testing.T, dir string) (comes func(want string)) {
	t.Helper()
	stop, yielded, ended := make(chan struct{}), make(chan string), make(chan struct{})
	go func() {
		defer close(ended)
		for e, err := range Follow(stop, dir, testHost) {
			if errors.Is(err, ErrPresent) {
				continue
			}
			if err != nil {
				e.Operand = err.Error()
			}
			select {
			case yielded <- e.Operand:
			case <-stop:
				return
			}
		}
	}()
	t.Cleanup(func() { close(stop); <-ended })
	return func(want string) {
		t.Helper()
		select {
		case got := <-yielded:
			if got != want && (want[0] != ':' || !strings.HasSuffix(got, want)) {
				t.Fatalf("%s came, want %s", got, want)
			}
		case <-time.After(time.Minute):
			t.Fatal("nothing came within a minute")
		}
	}
}

func TestFollowContinuesAcrossARotation(t *testing.T) {
	dir := folderOf(t)
	comes := following(t, dir) // there is no runlog yet
	log := &Log{Dir: dir, Host: testHost, Max: 120}
	for i := range 50 {
		operand := strconv.Itoa(i)
		mustAppend(t, log, operand)
		comes(operand)
	}
}

func TestFollowWaitsForTheRestOfALineUntilTheFileIsRotated(t *testing.T) {
	dir := folderOf(t)
	addText(t, currentOf(dir), goodLine+"a\n"+goodLine+"b")
	comes := following(t, dir)
	comes("a")
	addText(t, currentOf(dir), "c\n"+goodLine+"d")
	comes("bc")
	must.Do(t, os.Rename(currentOf(dir), olderOf(dir)))
	mustAppend(t, &Log{Dir: dir, Host: testHost}, "c")
	comes(":3: damaged line: not finished")
	comes("c")
	addText(t, olderOf(dir), "\n"+goodLine+"e") // by a writer without the lock
	mustAppend(t, &Log{Dir: dir, Host: testHost}, "f")
	comes("f")
	addText(t, olderOf(dir), "g\n")
	comes("eg")
}

// The writer did not get the lock in time, and was delayed between its check and its write until
// the runlog had been rotated and the reader had left the old file.
func TestFollowYieldsALineWrittenLateToARotatedFile(t *testing.T) {
	dir, log := emptyLog(t)
	mustAppend(t, log, "a")
	comes := following(t, dir)
	comes("a")
	holdUp := lockedBy(t, currentOf(dir))
	late := &Log{Dir: dir, Host: testHost, patience: time.Millisecond, writing: func() {
		holdUp()
		must.Do(t, os.Rename(currentOf(dir), olderOf(dir)))
		mustAppend(t, log, "b")
		comes("b")
	}}
	mustAppend(t, late, "late")
	comes("late")
	mustAppend(t, log, "c")
	comes("c")
}

// lockedBy holds the file's lock until letGo is called.
func lockedBy(t *testing.T, path string) (letGo func()) {
	t.Helper()
	f := must.Get(os.Open(path))(t)
	must.Do(t, unix.Flock(int(f.Fd()), unix.LOCK_EX))
	return func() { f.Close() }
}

func TestFollowReadsATruncatedRunlogFromItsBeginning(t *testing.T) {
	dir, log := emptyLog(t)
	mustAppend(t, log, "a", "b")
	comes := following(t, dir)
	comes("a")
	comes("b")
	must.Do(t, os.Truncate(currentOf(dir), 0))
	mustAppend(t, log, "c")
	comes("c")
}

// A kind that is not in Kinds cannot be selected.
func TestKindsListsEveryDeclaredEventKind(t *testing.T) {
	var declared []Kind
	text := must.Get(os.ReadFile("event.go"))(t)
	for _, found := range regexp.MustCompile(`\bKind += "(.+)"`).FindAllSubmatch(text, -1) {
		declared = append(declared, Kind(found[1]))
	}
	if !slices.Equal(declared, Kinds()) || len(declared) < 10 {
		t.Errorf("declared are %v, Kinds has %v", declared, Kinds())
	}
}

func TestNewestSkipsDamagedLinesAndYieldsTheLastFirst(t *testing.T) {
	l := &Log{Dir: folderOf(t), Host: testHost}
	for range l.Newest(1 << 20) {
		t.Error("an event of no record")
	}
	at := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	for pid := 1; pid <= 3; pid++ {
		must.Do(t, l.Append(Event{Kind: Deny, Time: at, Program: "p", PID: pid}))
	}
	addText(t, l.Path(), "\nno event\n\n")
	must.Do(t, os.Rename(l.Path(), olderOf(l.Dir)))
	must.Do(t, l.Append(Event{Kind: Deny, Time: at, Program: "p", PID: 4}))
	newest := func(most int64) (pids []int) {
		for e := range l.Newest(most) {
			check.Equal(t, "the host", e.Host, "dax")
			pids = append(pids, e.PID)
		}
		return pids
	}
	if got := newest(1 << 20); len(got) != 4 || got[0] != 4 || got[3] != 1 {
		t.Errorf("events of %v", got)
	}
	if got := newest(80); len(got) != 1 || got[0] != 4 {
		t.Errorf("of the last 80 bytes, which cut a line: events of %v", got)
	}
}

func TestNewestYieldsEachLineOnceWhateverItsLength(t *testing.T) {
	for _, length := range []int{1, 100, firstPiece - 200, firstPiece, 3 * firstPiece} {
		l := &Log{Dir: folderOf(t), Host: testHost}
		const lines = 200
		for pid := 1; pid <= lines; pid++ {
			operand := strings.Repeat("a", length+pid%7)
			must.Do(t, l.Append(Event{Kind: Deny, Time: time.Unix(1, 0), Program: "p", Operand: operand, PID: pid}))
		}
		var pids, want []int
		for e := range l.Newest(1 << 30) {
			pids = append(pids, e.PID)
		}
		for pid := lines; pid > 0; pid-- {
			want = append(want, pid)
		}
		check.Slices(t, fmt.Sprintf("with %d bytes in a line", length), pids, want)
	}
}
