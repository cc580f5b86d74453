package cron

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"adlock/lib/runlog"
	"adlock/test/support/helper"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

const host = "dax"

// world is a cron with its own crontabs, /run and mailer, in mount and pid namespaces of its own.
// The machine's own cron keeps its jobs and its pid file, and gets none of the tests' jobs.
type world struct {
	*place
	daemon []string // how cron is started
	cron   *helper.Process
}

// setUp is the first process of a world. Its mounts exist only in the world, and end with it. It stays to reap
// orphans, and ends a few minutes after a test that was killed. The world's /run hides the system's log and session
// managers too. libfaketime keeps files in /dev/shm under pids, which are not unique across pid namespaces.
const setUp = `
set -e
cd "$1"
mount --bind sbin /usr/sbin
mount --bind run /run
mount --bind spool /var/spool/cron
mount --bind etc/crontab /etc/crontab
mount --bind etc/cron.d /etc/cron.d
mount -t tmpfs none /dev/shm
: >ready
shift
timeout 900 "$@"
exit
`

// quickMinute is the length of a quick cron's minute: only cron itself, and not its jobs, has another clock.
const quickMinute = 5 * time.Second

// mailer is the world's sendmail: it keeps its mail.
const mailer = "#!/bin/sh\nexec cat >>{dir}/mail\n"

func newWorld(t *testing.T) *world {
	t.Helper()
	need.Root(t)
	need.Tools(t, "unshare", "setsid", "timeout", "/usr/sbin/cron")
	if _, err := os.Readlink("/usr/sbin"); err == nil {
		need.Skip(t, "/usr/sbin is a link: it cannot be replaced alone")
	}
	w := &world{place: &place{t, t.TempDir()}, daemon: []string{"/usr/sbin/cron", "-f"}}
	for _, dir := range []string{"sbin", "run", "etc/cron.d", "spool/crontabs"} {
		must.Do(t, os.MkdirAll(w.path(dir), 0o755))
	}
	w.copy("/usr/sbin/cron", "sbin/cron")
	w.copy(helper.Binary(t), "adlock")
	w.copy("/etc/crontab", "etc/crontab")
	w.write("sbin/sendmail", mailer, 0o755)
	w.write("mail", "", 0o600)
	return w
}

// quick makes cron's clock run fast.
func (w *world) quick() {
	w.Helper()
	libraries, err := filepath.Glob("/usr/lib/*/faketime/libfaketime.so.1")
	if err != nil || len(libraries) == 0 {
		need.Skip(w, "no libfaketime")
	}
	rate := strconv.Itoa(int(time.Minute / quickMinute))
	w.daemon = append([]string{"env", "LD_PRELOAD=" + libraries[0], "FAKETIME=+0 x" + rate, "NO_FAKE_STAT=1"}, w.daemon...)
}

// shell installs adlock's shell for crontabs, as `make install` does.
func (w *world) shell() {
	w.Helper()
	w.write("shell", w.installed("shell", w.path("adlock")), 0o755)
}

func (w *world) copy(from, to string) {
	w.Helper()
	content := must.Get(os.ReadFile(from))(w)
	must.Do(w, need.WriteProgram(w.path(to), content, 0o755))
}

// start starts cron with the crontab of root and a system crontab.
func (w *world) start(crontab, system string) {
	w.Helper()
	w.write("spool/crontabs/root", crontab, 0o600)
	w.write("etc/crontab", system, 0o644)
	w.cron = helper.Command{Args: append([]string{"unshare", "--mount", "--pid", "--net", "--fork", "--kill-child", "--mount-proc",
		"sh", "-c", setUp, "sh", w.dir}, w.daemon...)}.Start(w)
	helper.Eventually(w, "cron is up", func() bool {
		_, err := os.Stat(w.path("ready"))
		return err == nil || w.cron.Ended()
	})
	if w.cron.Ended() {
		need.Skip(w, "no namespaces to be had: "+w.cron.Output())
	}
}

// events returns the events of one atom of run, or of the guarded script.
func (w *world) events(operand string) []runlog.Event {
	w.Helper()
	var list []runlog.Event
	if _, err := os.Stat(w.path("locks/program." + host + ".runlog")); err != nil {
		return nil // cron has not ticked yet
	}
	for e, err := range runlog.Read(w.path("locks"), host, math.MaxInt64) {
		must.Do(w, err)
		if e.Program == operand || e.Operand == operand {
			list = append(list, e)
		}
	}
	return list
}

// count counts the events of a kind.
func count(events []runlog.Event, kind runlog.Kind) int {
	n := 0
	for _, e := range events {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

// processes lists the command lines of the live processes in the world, without cron and the first process.
func (w *world) processes() []string {
	w.Helper()
	var list []string
	for _, command := range helper.SameNamespace(w, w.cron.PID) {
		if !strings.HasSuffix(command, strings.Join(w.daemon, " ")) && !strings.Contains(command, setUp) {
			list = append(list, command)
		}
	}
	return list
}

// await waits for something that takes a few minutes of cron at most, or more if a busy machine misses some.
// Its message shows how far the test is.
func (w *world) await(claim string, holds func() bool) {
	w.Helper()
	defer func() {
		if w.Failed() {
			w.Log("the record:\n" + w.record() + "\nmail:\n" + w.read("mail") + "\nprocesses:\n" + strings.Join(w.processes(), "\n"))
		}
	}()
	helper.Within(w, 3*time.Minute, claim, holds)
	w.Log(time.Now().Format("15:04:05 ") + claim)
}

func (w *world) record() string {
	text, err := os.ReadFile(w.path("locks/program." + host + ".runlog"))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// story returns the kinds of an atom's events, and the status of a release.
func (w *world) story(operand string) string {
	w.Helper()
	var story []string
	for _, e := range w.events(operand) {
		step := string(e.Kind)
		if e.Kind == runlog.Release && e.Status.Set {
			step += " " + strconv.Itoa(e.Status.Value)
		}
		story = append(story, step)
	}
	return strings.Join(story, "; ")
}
