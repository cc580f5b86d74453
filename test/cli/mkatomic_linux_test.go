package cli

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"adlock/test/helper"
	"adlock/test/need"
)

// put runs mkatomic with text as its input.
func (s *stage) put(text string, words ...string) helper.Result {
	s.Helper()
	c := s.command(append([]string{"mkatomic"}, words...)...)
	c.Stdin = text
	return c.Run(s)
}

func TestMkatomicMakesAFileWhereThereWasNone(t *testing.T) {
	s := newStage(t)
	if r := s.put("one\n", "f"); r.Status != 0 || r.Err != "" || s.read(s.in("f")) != "one\n" {
		t.Errorf("%+v", r)
	}
	if r := s.put("two\n", "f"); r.Status != 75 || !oneLine(r.Err) || s.read(s.in("f")) != "one\n" {
		t.Errorf("%+v", r)
	}
	s.wantFiles("f")
}

func TestMkatomicReplacesWhereAskedAndKeepsTheMode(t *testing.T) {
	s := newStage(t)
	s.in("f", "one")
	if err := os.Chmod(s.in("f"), 0o640); err != nil {
		t.Fatal(err)
	}
	if r := s.put("two", "--replace", "f"); r.Status != 0 || s.read(s.in("f")) != "two" {
		t.Errorf("%+v", r)
	}
	if info, err := os.Stat(s.in("f")); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	if r := s.put("", "--replace", "f"); r.Status != 0 || s.read(s.in("f")) != "" {
		t.Errorf("%+v", r)
	}
	s.wantFiles("f")
}

func TestMkatomicDoesNotWriteThroughALink(t *testing.T) {
	s := newStage(t)
	s.in("target", "kept")
	if err := os.Symlink("target", s.in("link")); err != nil {
		t.Fatal(err)
	}
	if r := s.put("new", "link"); r.Status != 75 {
		t.Errorf("%+v", r)
	}
	if s.read(s.in("target")) != "kept" {
		t.Error("the target was written")
	}
}

// Root's output may be sent to a device's name by mistake: the device stays.
func TestMkatomicReplacesOnlyFiles(t *testing.T) {
	s := newStage(t)
	mkdir(t, s.in("dir"), 0o755)
	if err := unix.Mkfifo(s.in("pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"dir", "pipe"} {
		r := s.put("x", "--replace", name)
		if r.Status != 73 || !oneLine(r.Err) || !strings.Contains(r.Err, "is not a regular file") {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if info, err := os.Lstat(s.in("pipe")); err != nil || info.Mode().Type() != os.ModeNamedPipe {
		t.Errorf("%v %v", info, err)
	}
	s.wantFiles("dir", "pipe")
}

func TestMkatomicTakesABigInput(t *testing.T) {
	s := newStage(t)
	big := strings.Repeat("0123456789abcdef", 1<<20)
	if r := s.put(big, "f"); r.Status != 0 || s.read(s.in("f")) != big {
		t.Errorf("status %d: %s", r.Status, r.Err)
	}
}

func TestMkatomicSaysWhyItCannot(t *testing.T) {
	s := newStage(t)
	mkdir(t, s.in("dir"), 0o755)
	for _, c := range []struct {
		status int
		says   string
		words  []string
	}{
		{73, "no such file or directory", []string{"none/f"}},
		{73, "no such file or directory", []string{"--replace", "none/f"}},
		{75, "exists already", []string{"dir"}},
		{73, "not a directory", []string{"--replace", "/dev/null/f"}},
	} {
		if r := s.put("x", c.words...); r.Status != c.status || !oneLine(r.Err) || !strings.Contains(r.Err, c.says) {
			t.Errorf("%q: status %d, want %d and one line with %q\n%s", c.words, r.Status, c.status, c.says, r.Err)
		}
	}
	s.wantFiles("dir")
}

func TestMkatomicOnAFullDiskLeavesWhatWasThere(t *testing.T) {
	need.Root(t) // to mount
	need.Namespaces(t, "--mount")
	s := newStage(t)
	mkdir(t, s.in("small"), 0o755)
	c := s.command()
	c.Args = []string{"unshare", "--mount", "sh", "-c", `mount -t tmpfs -o size=64k none small || exit
cd small && echo old >f || exit
head -c 1000000 /dev/zero | "$0" mkatomic --replace f; echo "status $?"
head -c 1000000 /dev/zero | "$0" mkatomic g; echo "status $?"
cat f; ls -A`, c.Args[0]}
	r := c.Run(t)
	if r.Out != "status 74\nstatus 74\nold\nf\n" || strings.Count(r.Err, "no space left on device") != 2 {
		t.Errorf("%s\n%s", r.Out, r.Err)
	}
}

// The content is on the disk before the name, and the name before success is
// said.
func TestMkatomicIsDurable(t *testing.T) {
	need.Tools(t, "strace")
	for _, replace := range []bool{false, true} {
		s := newSubstage(t)
		words := []string{"mkatomic", "f"}
		if replace {
			s.in("f", "old")
			words = []string{"mkatomic", "--replace", "f"}
		}
		c := s.command(words...)
		c.Args = append([]string{"strace", "-f", "-y", "-o", s.in("trace"),
			"-e", "trace=write,fsync,fdatasync,linkat,renameat,renameat2,rename"}, c.Args...)
		c.Stdin = "text"
		if r := c.Run(t); r.Status != 0 {
			t.Fatalf("%+v", r)
		}
		dir := regexp.QuoteMeta(s.dir)
		order := regexp.MustCompile(`(?s)write\(\d+<` + dir + `/[^>]+>, "text".*f(data)?sync\(\d+<` + dir +
			`/[^>]+>.* (linkat|rename)[^\n]*f".*fsync\(\d+<` + dir + `>`)
		if trace := s.read(s.in("trace")); !order.MatchString(trace) {
			t.Errorf("replace %v: not written, synced, named, synced:\n%s", replace, trace)
		}
	}
}

// newSubstage is newStage for a test that has one already.
func newSubstage(t *testing.T) *stage {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &stage{t, helper.Dir(t), dir}
}

func (s *stage) wantFiles(names ...string) {
	s.Helper()
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		s.Fatal(err)
	}
	var found []string
	for _, e := range entries {
		found = append(found, e.Name())
	}
	if strings.Join(found, " ") != strings.Join(names, " ") {
		s.Errorf("the directory holds %q, want %q", found, names)
	}
}

// A writer that is killed while it reads its input leaves the old content, or
// none; never half of the new.
func TestMkatomicKilledLeavesNothingHalf(t *testing.T) {
	s := newStage(t)
	s.in("f", "old")
	c := s.command("mkatomic", "--replace", "f")
	cmd := exec.Command(c.Args[0], c.Args[1:]...)
	cmd.Dir = s.dir
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := input.Write(bytes.Repeat([]byte("x"), 1<<20)); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	if s.read(s.in("f")) != "old" {
		t.Error("the old content is gone")
	}
}
