package cli

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"adlock/test/support/check"
	"adlock/test/support/helper"
	"adlock/test/support/need"
)

// streams are shell redirections after which writes to a descriptor fail; N stands for its number.
var streams = map[string]string{
	"a broken pipe": "exec 9<>pipe N>pipe 9<&-",
	"closed":        "exec N>&-",
	"a full disk":   "exec N>/dev/full",
}

// unheard runs a shell with an unusable descriptor. The runlog cannot be written, so that adlock
// has something to print.
func (s *stage) unheard(stream, descriptor, script string) helper.Result {
	s.Helper()
	s.in("record", "a file, where a directory should be")
	prologue := "mkfifo pipe || exit; exec 3>&1; " + strings.ReplaceAll(streams[stream], "N", descriptor) + "\n"
	return helper.Command{Dir: s.dir, Args: []string{"sh", "-c", prologue + script}, Env: append(s.command().Env,
		"ADLOCK_LOGDIR="+s.in("record"), "adlock="+helper.Binary(s), "lock="+s.lockOf("a"))}.Run(s)
}

func TestABrokenStandardErrorHindersNeitherRunNorRelease(t *testing.T) {
	for claim, c := range map[string]struct {
		held        bool
		script, out string
	}{
		"a run": {false, `$adlock run --program job --name a sh -c 'test -e "$lock" && echo ran >&3; exit 7'; echo $? >&3`,
			"ran\n7\n"},
		"a takeover": {true, `$adlock run --program job --name a --expire-after 0 -- sh -c 'echo ran >&3'; echo $? >&3`, "ran\n0\n"},
		"a script": {false, `$adlock take --owner $$ -- "$lock" job dax run a; echo $? >&3
			test -e "$lock" && echo held >&3
			$adlock release "$lock"; echo $? >&3`, "0\nheld\n0\n"},
	} {
		for stream := range streams {
			t.Run(claim+", "+stream, func(t *testing.T) {
				s := newStage(t)
				ended := func() bool { return true }
				if c.held {
					owner := s.hold("a")
					ended = func() bool { return owner.Ended() || !helper.Alive(owner.PID) }
				}
				if r := s.unheard(stream, "2", c.script); r.Out != c.out || s.held("a") || !ended() {
					t.Errorf("output %q, held: %v", r.Out, s.held("a"))
				}
			})
		}
	}
}

func TestRunKeepsTheJobsStatusIfQuietOKCannotPrint(t *testing.T) {
	for stream := range streams {
		for _, descriptor := range []string{"1", "2"} {
			t.Run(stream+" as "+descriptor, func(t *testing.T) {
				s := newStage(t)
				r := s.unheard(stream, descriptor, `$adlock run --program job --name a --quiet-ok sh -c 'echo words; echo words >&2; exit 7'`)
				if r.Status != 7 || s.held("a") || strings.Count("\n"+r.Out+r.Err, "\nwords\n") != 1 {
					t.Errorf("status %d, held: %v, %q, %q", r.Status, s.held("a"), r.Out, r.Err)
				}
			})
		}
	}
}

func TestReachingTheFileSizeLimitIsAnErrorLikeAFullDisk(t *testing.T) {
	s := newStage(t)
	r := helper.Command{Dir: s.dir, Env: s.command().Env, Args: []string{"sh", "-c", "ulimit -f 0; exec " + helper.Binary(t) + " run --program job --name a touch ran"}}.Run(t)
	if r.Status != 74 || !oneLine(r.Err) || !strings.Contains(r.Err, "file too large") || s.held("a") || exists(s.in("ran")) {
		t.Errorf("status %d, held: %v\n%s", r.Status, s.held("a"), r.Err)
	}
	s.want(0, job("true")...)
}

func TestARunlogAtTheFileSizeLimitHindersNeitherRunNorRelease(t *testing.T) {
	s := newStage(t)
	for range 40 {
		s.want(0, job("true")...)
	}
	r := helper.Command{Dir: s.dir, Env: s.command().Env, Args: []string{"sh", "-c", "ulimit -f 8; exec " + helper.Binary(t) + " run --program job --name a sh -c 'echo ran; exit 7'"}}.Run(t)
	if r.Status != 7 || r.Out != "ran\n" || !strings.Contains(r.Err, "file too large") || strings.Contains(r.Err, "goroutine") || s.held("a") {
		t.Errorf("status %d, output %q, held: %v\n%s", r.Status, r.Out, s.held("a"), r.Err)
	}
}

// adlock ignores some signals; the job gets them as its caller had them.
func TestAJobDoesNotInheritSignalsThatAdlockIgnores(t *testing.T) {
	s := newStage(t)
	const look = `ulimit -f 1000; exec "$@" grep -E "^Sig(Blk|Ign|Cgt)" /proc/self/status`
	shell := func(command ...string) helper.Result {
		return helper.Command{Args: append([]string{"sh", "-c", look, "sh"}, command...), Env: s.command().Env}.Run(t)
	}
	want := shell("env")
	got := shell(helper.Binary(t), "run", "--program", "job", "--name", "a")
	if got != want || !strings.Contains(want.Out, "SigIgn") {
		t.Errorf("%+v, want %+v", got, want)
	}
}

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
		check.Equal(t, "the lock is left at limit "+itoa(limit), s.held("a"), false)
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
