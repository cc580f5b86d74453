package runlog

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adlock/test/support/check"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

// child is the variable that makes the test binary another process, which writes: its arguments.
const child = "RUNLOG_TEST_CHILD"

func TestMain(m *testing.M) {
	args := strings.Fields(os.Getenv(child))
	if len(args) == 0 {
		os.Exit(m.Run())
	}
	if err := childWrites(args); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// mustAppend appends an event for each operand.
func mustAppend(t testing.TB, l *Log, operands ...string) {
	t.Helper()
	for _, operand := range operands {
		must.Do(t, l.Append(Event{Kind: Acquire, Operand: operand}))
	}
}

// operands returns the operands of the runlog's events, in order.
func operands(t testing.TB, dir string) []string {
	t.Helper()
	return lastOperands(t, dir, 1<<62)
}

// lastOperands returns the operands that Read yields; "cut" for ErrCut, "damaged:LINE" for a damaged line, "unread" for another error.
func lastOperands(t testing.TB, dir string, most int64) (list []string) {
	t.Helper()
	for e, err := range Read(dir, testHost, most) {
		var damaged *DamagedLine
		switch {
		case errors.As(err, &damaged):
			e.Operand = fmt.Sprint("damaged:", damaged.Line)
		case errors.Is(err, ErrCut):
			e.Operand = "cut"
		case err != nil:
			t.Logf("read: %v", err)
			e.Operand = "unread"
		}
		list = append(list, e.Operand)
	}
	return list
}

func same(t testing.TB, got []string, want ...string) {
	t.Helper()
	if strings.Join(got, ",") != strings.Join(want, ",") {
		t.Fatalf("record has %q, want %q", got, want)
	}
}

// folderOf makes a directory that Append accepts, whatever the umask.
func folderOf(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	must.Do(t, os.Chmod(dir, 0o700))
	return dir
}

func emptyLog(t testing.TB) (dir string, log *Log) {
	t.Helper()
	dir = folderOf(t)
	return dir, &Log{Dir: dir, Host: testHost}
}

func currentOf(dir string) string { return filepath.Join(dir, fileName(testHost)) }

func olderOf(dir string) string { return filepath.Join(dir, oldName(testHost)) }

func TestAppendCreatesAPrivateFile(t *testing.T) {
	for _, umask := range []int{0, 0o277} {
		old := unix.Umask(umask)
		dir, log := emptyLog(t)
		err := log.Append(Event{Kind: Acquire})
		unix.Umask(old)
		must.Do(t, err)
		if info, err := os.Stat(currentOf(dir)); err != nil || info.Mode() != 0o600 {
			t.Errorf("umask %04o: mode %v, %v", umask, info.Mode(), err)
		}
	}
}

func TestARunlogIsRotatedAtItsMaximumSize(t *testing.T) {
	dir := folderOf(t)
	mustAppend(t, &Log{Dir: dir, Host: testHost}, "a")
	info := must.Get(os.Stat(currentOf(dir)))(t)
	log := &Log{Dir: dir, Host: testHost, Max: 2 * info.Size()}
	mustAppend(t, log, "b")
	if _, err := os.Stat(olderOf(dir)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("rotated before Max: %v", err)
	}
	mustAppend(t, log, "c")
	same(t, operands(t, dir), "a", "b", "c")
	if info, err := os.Stat(olderOf(dir)); err != nil || info.Size() != log.Max {
		t.Errorf("rotated file: %v, %v", info, err)
	}
	mustAppend(t, log, "d", "e")
	same(t, operands(t, dir), "c", "d", "e")
}

func TestALineOfMoreThanAMebibyteIsRefused(t *testing.T) {
	dir, log := emptyLog(t)
	mustAppend(t, log, strings.Repeat("a", maxLine-200))
	err := log.Append(Event{Kind: Acquire, Operand: strings.Repeat("a", maxLine)})
	if !errors.Is(err, unix.EFBIG) {
		t.Errorf("error %v, want EFBIG", err)
	}
	if got := operands(t, dir); len(got) != 1 || len(got[0]) != maxLine-200 {
		t.Errorf("%d lines, want the first", len(got))
	}
}

func TestAFailedRotationKeepsTheLine(t *testing.T) {
	dir := folderOf(t)
	log := &Log{Dir: dir, Host: testHost, Max: 1}
	mustAppend(t, log, "a")
	must.Do(t, os.MkdirAll(filepath.Join(olderOf(dir), "full"), 0o700))
	err := log.Append(Event{Kind: Acquire, Operand: "b"})
	var failed *fs.PathError
	if !errors.As(err, &failed) || failed.Op != "rename" {
		t.Errorf("error %v, want that of the rename", err)
	}
	must.Do(t, os.RemoveAll(olderOf(dir)))
	same(t, operands(t, dir), "a", "b")
}

func TestAStoppedLockHolderBlocksNoWriter(t *testing.T) {
	dir, log := emptyLog(t)
	mustAppend(t, log, "a")
	defer lockedBy(t, currentOf(dir))()
	began := time.Now()
	mustAppend(t, log, "b")
	if took := time.Since(began); took < patience || took > time.Minute {
		t.Errorf("took %v, want %v and little more", took, patience)
	}
	log.Max = 100 // long enough, but not twice the limit
	mustAppend(t, log, "c")
	log.Max = 1
	if err := log.Append(Event{Kind: Acquire, Operand: "d"}); !errors.Is(err, unix.EWOULDBLOCK) {
		t.Errorf("far past Max: error %v, want EWOULDBLOCK", err)
	}
	same(t, operands(t, dir), "a", "b", "c", "d")
	if _, err := os.Stat(olderOf(dir)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("rotated without the lock: %v", err)
	}
}

// A writer that gave up on the lock, and is delayed between its check and its write, finds its file
// rotated once or twice.
func TestAnUnlockedWriterRepeatsALineLostByARotation(t *testing.T) {
	for turns := range 3 {
		dir := folderOf(t)
		log := &Log{Dir: dir, Host: testHost, patience: time.Millisecond}
		mustAppend(t, log, "a")
		defer lockedBy(t, currentOf(dir))()
		log.writing = func() {
			log.writing = nil
			for range turns {
				must.Do(t, os.Rename(currentOf(dir), olderOf(dir)))
				mustAppend(t, &Log{Dir: dir, Host: testHost}, "other")
			}
		}
		mustAppend(t, log, "b")
		want := [][]string{{"a", "b"}, {"a", "b", "other"}, {"other", "other", "b"}}[turns]
		same(t, operands(t, dir), want...)
	}
}

func TestAWriterNoticesARotationBeforeItWrites(t *testing.T) {
	dir := folderOf(t)
	mustAppend(t, &Log{Dir: dir, Host: testHost}, "a")
	d := must.Get(openFolder(dir))(t)
	defer d.close()
	log := &Log{Dir: dir, Host: testHost}
	for _, remove := range []func() error{
		func() error { return os.Rename(currentOf(dir), olderOf(dir)) },
		func() error { return os.Remove(currentOf(dir)) },
	} {
		f := must.Get(d.openOrCreate(log.name()))(t)
		must.Do(t, remove())
		if written, err := log.appendTo(d, f, []byte("line\n")); written || err != nil {
			t.Errorf("written %v, %v to a file without its name", written, err)
		}
		must.Do(t, f.close())
	}
	same(t, operands(t, dir), "a")
}

func TestATornLineDamagesNoOtherLine(t *testing.T) {
	dir, log := emptyLog(t)
	mustAppend(t, log, "a")
	addText(t, currentOf(dir), "time=2026-11-21T02:58:12.123456Z event=acqu")
	mustAppend(t, log, "b", "c")
	same(t, operands(t, dir), "a", "damaged:2", "b", "c")
}

// addText adds text to a file without Append.
func addText(t testing.TB, path, text string) {
	t.Helper()
	f := must.Get(os.OpenFile(path, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600))(t)
	must.Get(f.WriteString(text))(t)
	must.Do(t, f.Close())
}

func TestUnsafeRunlogFilesAndDirectoriesAreRefused(t *testing.T) {
	for claim, c := range map[string]struct {
		plant  func(dir string) error
		reason string
	}{
		"symlink":          {func(dir string) error { return os.Symlink(filepath.Join(dir, "target"), currentOf(dir)) }, ""},
		"dangling symlink": {func(dir string) error { return os.Symlink(filepath.Join(dir, "nothing"), currentOf(dir)) }, ""},
		"hard link":        {func(dir string) error { return os.Link(filepath.Join(dir, "target"), currentOf(dir)) }, "another name"},
		"fifo":             {func(dir string) error { return unix.Mkfifo(currentOf(dir), 0o600) }, "not a regular file"},
		"directory":        {func(dir string) error { return os.Mkdir(currentOf(dir), 0o700) }, ""},
		"foreign owner": {func(dir string) error {
			return errors.Join(os.WriteFile(currentOf(dir), nil, 0o600), os.Chown(currentOf(dir), 4711, 4711))
		}, "owned by user 4711"},
		"writable directory": {func(dir string) error { return os.Chmod(dir, 0o770) }, "writable by others (mode 0770)"},
		"foreign directory":  {func(dir string) error { return os.Chown(dir, 4711, 4711) }, "owned by user 4711"},
		"linked directory": {func(dir string) error {
			return errors.Join(os.Rename(dir, dir+".real"), os.Symlink(dir+".real", dir))
		}, ""},
		"no directory": {func(dir string) error { return os.RemoveAll(dir) }, "no such file or directory"},
	} {
		t.Run(claim, func(t *testing.T) {
			if strings.HasPrefix(claim, "foreign") {
				need.Root(t) // to give a file away
			}
			dir := filepath.Join(t.TempDir(), "log")
			target := filepath.Join(dir, "target")
			must.Do(t, errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(target, nil, 0o600), c.plant(dir)))
			err := (&Log{Dir: dir, Host: testHost}).Append(Event{Kind: Acquire})
			var refused *fs.PathError
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), c.reason) {
				t.Errorf("error %v, want a *fs.PathError with %q", err, c.reason)
			}
			if info, err := os.Stat(target); err == nil && info.Size() > 0 {
				t.Error("the target was written to")
			}
			if _, err := os.Stat(filepath.Join(dir, "nothing")); err == nil {
				t.Error("the link was followed")
			}
		})
	}
}

func TestTheHostOfARunlogMustBeCanonical(t *testing.T) {
	for _, host := range []string{"", ".", "a.b", "../x", "a/b", "a b"} {
		if err := (&Log{Dir: t.TempDir(), Host: host}).Append(Event{Kind: Acquire}); err == nil {
			t.Errorf("host %q was taken", host)
		}
	}
}

// With many writers, a file that is rotated every few lines, and all its generations kept, each
// line is there, whole and once, and each process's lines are in order.
func TestManyProcessesLoseAndTearNoLine(t *testing.T) {
	const processes, each = 50, 200
	dir := folderOf(t)
	gate, open, err := os.Pipe()
	must.Do(t, err)
	defer open.Close()
	var cmds []*exec.Cmd
	for range processes {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), child+"="+dir+" "+strconv.Itoa(each))
		cmd.Stdin, cmd.Stderr = gate, os.Stderr
		must.Do(t, cmd.Start())
		defer cmd.Process.Kill()
		cmds = append(cmds, cmd)
	}
	gate.Close()
	open.Close() // now all begin
	for _, cmd := range cmds {
		must.Do(t, cmd.Wait())
	}
	must.Do(t, os.Link(currentOf(dir), filepath.Join(dir, "generation.current")))
	files := must.Get(filepath.Glob(filepath.Join(dir, "generation.*")))(t)
	seen := make(map[string]int) // "pid n"
	for _, path := range files {
		last := make(map[int]int)
		for e := range eventsOf(t, path) {
			seen[fmt.Sprint(e.PID, " ", e.Count)]++
			if e.Count <= last[e.PID] {
				t.Errorf("%s: process %d: %d after %d", path, e.PID, e.Count, last[e.PID])
			}
			last[e.PID] = e.Count
		}
	}
	t.Logf("rotated %d times", len(files)-1)
	if len(files) < 10 {
		t.Errorf("rotated %d times only", len(files)-1)
	}
	check.Equal(t, "lines", len(seen), processes*each)
	for line, n := range seen {
		check.Equal(t, "times that line "+line+" is there", n, 1)
	}
}

// childWrites appends so many lines, once its standard input is closed. Before a rotation the file
// gets a second name, by which the test finds it.
func childWrites(args []string) error {
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	if _, err := bufio.NewReader(os.Stdin).ReadByte(); err == nil {
		return errors.New("standard input: unexpected byte")
	}
	generation := 0
	var linking error
	log := &Log{Dir: args[0], Host: testHost, Max: 8 << 10, patience: time.Minute, rotating: func() {
		generation++
		name := fmt.Sprintf("generation.%d.%d", os.Getpid(), generation)
		linking = errors.Join(linking, os.Link(currentOf(args[0]), filepath.Join(args[0], name)))
	}}
	for i := range n {
		if err := log.Append(Event{Kind: Deny, Operand: strings.Repeat("é\n", i%40), PID: os.Getpid(), Count: i + 1}); err != nil {
			return err
		}
	}
	return linking
}

func TestCheckReportsWhetherAppendCanWriteAndWritesNothing(t *testing.T) {
	dir, l := emptyLog(t)
	must.Do(t, l.Check()) // there is no runlog yet
	if left, err := os.ReadDir(dir); len(left) != 0 || err != nil {
		t.Errorf("left behind: %v, %v", left, err)
	}
	mustAppend(t, l, "x")
	if err := l.Check(); err != nil || l.Path() != currentOf(dir) {
		t.Errorf("%s: %v", l.Path(), err)
	}
	same(t, operands(t, dir), "x")
	for claim, bad := range map[string]*Log{
		"no host": {Dir: dir, Host: "a.b"}, "no directory": {Dir: dir + "/none", Host: testHost},
	} {
		if err := bad.Check(); err == nil {
			t.Errorf("%s is as good as any", claim)
		}
	}
	for i, link := range []func(from, to string) error{os.Link, os.Symlink} {
		must.Do(t, errors.Join(os.Rename(currentOf(dir), dir+strconv.Itoa(i)), link(dir+strconv.Itoa(i), currentOf(dir))))
		if err := l.Check(); err == nil {
			t.Errorf("link %d is as good as a runlog", i)
		}
	}
}
