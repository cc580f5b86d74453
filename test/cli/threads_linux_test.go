package cli

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"adlock/test/support/helper"
	"adlock/test/support/need"
)

// Under a limit that leaves too few threads, the Go runtime dies with a trace, sooner or later. So
// a run that cannot get enough threads does not begin.
func TestALimitOnProcessesLeavesNoLockBehind(t *testing.T) {
	need.Root(t) // to be a user without other processes
	need.Tools(t, "bash")
	s := newStage(t)
	user := 60002 + os.Getpid()%5000 // of this test alone, also where it runs several times at once
	dir := dirForAll(t)
	program := dir + "/adlock"
	s.locks = dir + "/locks"
	must(t, need.WriteProgram(program, []byte(s.read(helper.Binary(t))), 0o755))
	must(t, os.Mkdir(s.locks, 0o700))
	must(t, os.Chown(s.locks, user, user))
	refused, ran := 0, 0
	for limit := 1; limit <= 64 && ran < 3; limit++ {
		c := s.command()
		c.Dir, c.UID = "/", user
		c.Args = []string{"bash", "-c", `ulimit -u "$1"; exec "$2" run --program job --name a echo ran`, "bash", strconv.Itoa(limit), program}
		r := c.Run(t)
		switch {
		case r.Status == 0 && r.Out == "ran\n" && r.Err == "":
			ran++
		case r.Status == 71 && oneLine(r.Err) && strings.Contains(r.Err, "ulimit -u "+strconv.Itoa(limit)):
			refused++
		case r.Status == 126 && oneLine(r.Err): // all but the job could start
		case r.Status == 2 && r.Out == "" && !exists(s.lastOf("a")): // it died before any code of ours
		default:
			t.Errorf("limit %d: status %d, output %q\n%s", limit, r.Status, r.Out, r.Err)
		}
		if s.held("a") {
			t.Errorf("limit %d: the lock is left", limit)
		}
	}
	if refused == 0 || ran == 0 {
		t.Errorf("%d were refused, %d ran", refused, ran)
	}
}

// dirForAll is a directory that any user may look into.
func dirForAll(t *testing.T) string {
	t.Helper()
	dir := get(os.MkdirTemp("", "adlock-for-all-"))(t)
	t.Cleanup(func() { os.RemoveAll(dir) })
	must(t, os.Chmod(dir, 0o755))
	return dir
}

func TestTooFewOpenFilesAreReportedInOneLine(t *testing.T) {
	s, ran := newStage(t), false
	for limit := 4; limit <= 24; limit++ {
		c := s.command()
		c.Args = []string{"bash", "-c", `ulimit -n "$1"; exec "$2" run --program job --name a echo ran`, "bash", strconv.Itoa(limit), helper.Binary(t)}
		r := c.Run(t)
		switch {
		case r.Status == 0 && r.Out == "ran\n" && r.Err == "":
			ran = true
		case r.Status != 71 || !oneLine(r.Err) || !strings.Contains(r.Err, "ulimit -n "+strconv.Itoa(limit)) || s.held("a"):
			t.Errorf("limit %d: status %d, output %q, lock left: %v\n%s", limit, r.Status, r.Out, s.held("a"), r.Err)
		}
	}
	if !ran {
		t.Error("24 files are not enough")
	}
}
