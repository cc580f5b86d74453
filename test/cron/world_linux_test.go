package cron

import (
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
	dir    string   // the directory of all files
	daemon []string // how cron is started
	cron   *helper.Process
}

// setUp is the first process of a world. Its mounts exist only in the world, and end with it. It
// stays to reap orphans, and ends a few minutes after a test that was killed. The world's /run
// hides the system's log and session managers too. libfaketime keeps files in /dev/shm under
// pids, which are not unique across pid namespaces.
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

// quickMinute is the length of a quick cron's minute: only cron itself, and not its jobs, has
// another clock.
const quickMinute = 5 * time.Second

// mailer is the world's sendmail: it keeps its mail.
const mailer = "#!/bin/sh\nexec cat >>{world}/mail\n"

func newWorld(t *testing.T) *world {
	t.Helper()
	need.Root(t)
	need.Tools(t, "unshare", "setsid", "timeout", "/usr/sbin/cron")
	if _, err := os.Readlink("/usr/sbin"); err == nil {
		need.Skip(t, "/usr/sbin is a link: it cannot be replaced alone")
	}
	w := &world{dir: t.TempDir(), daemon: []string{"/usr/sbin/cron", "-f"}}
	for _, dir := range []string{"sbin", "run", "etc/cron.d", "spool/crontabs"} {
		must.Do(t, os.MkdirAll(w.path(dir), 0o755))
	}
	w.copy(t, "/usr/sbin/cron", "sbin/cron")
	w.copy(t, helper.Binary(t), "adlock")
	w.copy(t, "/etc/crontab", "etc/crontab")
	w.write(t, "sbin/sendmail", mailer, 0o755)
	w.write(t, "mail", "", 0o600)
	w.write(t, "adlock.sh", w.installed(t, "adlock.sh"), 0o644)
	return w
}

// quick makes cron's clock run fast.
func (w *world) quick(t *testing.T) {
	t.Helper()
	libraries, err := filepath.Glob("/usr/lib/*/faketime/libfaketime.so.1")
	if err != nil || len(libraries) == 0 {
		need.Skip(t, "no libfaketime")
	}
	rate := strconv.Itoa(int(time.Minute / quickMinute))
	w.daemon = append([]string{"env", "LD_PRELOAD=" + libraries[0], "FAKETIME=+0 x" + rate, "NO_FAKE_STAT=1"}, w.daemon...)
}

// shell installs adlock's shell for crontabs, as `make install` does.
func (w *world) shell(t *testing.T) {
	t.Helper()
	w.write(t, "shell", w.installed(t, "shell"), 0o755)
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

// write writes a file; {world} stands for the world's directory.
func (w *world) write(t *testing.T, name, text string, mode os.FileMode) {
	t.Helper()
	text = strings.ReplaceAll(text, "{world}", w.dir)
	must.Do(t, need.WriteProgram(w.path(name), []byte(text), mode))
}

func (w *world) read(t *testing.T, name string) string {
	t.Helper()
	return string(must.Get(os.ReadFile(w.path(name)))(t))
}

func (w *world) copy(t *testing.T, from, to string) {
	t.Helper()
	content := must.Get(os.ReadFile(from))(t)
	must.Do(t, need.WriteProgram(w.path(to), content, 0o755))
}

// installed returns a file of sh as `make install` leaves it, with the helper's path, as the helper
// is not in cron's PATH.
func (w *world) installed(t *testing.T, name string) string {
	t.Helper()
	text := must.Get(os.ReadFile(filepath.Join(helper.Root(), "sh", name)))(t)
	const unset = "_adlock_installed=''"
	if strings.Count(string(text), unset) != 1 {
		t.Fatal("sh/" + name + " has no line " + unset)
	}
	return strings.Replace(string(text), unset, "_adlock_installed={world}/adlock", 1)
}

// start starts cron with the crontab of root and a system crontab.
func (w *world) start(t *testing.T, crontab, system string) {
	t.Helper()
	w.write(t, "spool/crontabs/root", crontab, 0o600)
	w.write(t, "etc/crontab", system, 0o644)
	w.cron = helper.Command{Args: append([]string{"unshare", "--mount", "--pid", "--net", "--fork", "--kill-child", "--mount-proc",
		"sh", "-c", setUp, "sh", w.dir}, w.daemon...)}.Start(t)
	helper.Eventually(t, "cron is up", func() bool {
		_, err := os.Stat(w.path("ready"))
		return err == nil || w.cron.Ended()
	})
	if w.cron.Ended() {
		need.Skip(t, "no namespaces to be had: "+w.cron.Output())
	}
}

// events returns the events of one atom of run, or of the guarded script.
func (w *world) events(t *testing.T, operand string) []runlog.Event {
	t.Helper()
	var list []runlog.Event
	if _, err := os.Stat(w.path("locks/program." + host + ".runlog")); err != nil {
		return nil // cron has not ticked yet
	}
	for e, err := range runlog.Read(w.path("locks"), host) {
		must.Do(t, err)
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

// processes lists the command lines of the live processes in the world, without cron and the
// first process.
func (w *world) processes(t *testing.T) []string {
	t.Helper()
	var list []string
	for _, command := range helper.SameNamespace(t, w.cron.PID) {
		if !strings.HasSuffix(command, strings.Join(w.daemon, " ")) && !strings.Contains(command, setUp) {
			list = append(list, command)
		}
	}
	return list
}

// await waits for what needs some ticks at most, also where a busy machine misses a few. Its message
// shows how far the test is.
func (w *world) await(t *testing.T, claim string, holds func() bool) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Log("the record:\n" + w.record() + "\nmail:\n" + w.read(t, "mail") + "\nprocesses:\n" + strings.Join(w.processes(t), "\n"))
		}
	}()
	helper.Within(t, 3*time.Minute, claim, holds)
	tell(t, claim)
}

func (w *world) has(name string) bool {
	_, err := os.Stat(w.path(name))
	return err == nil
}

func (w *world) record() string {
	text, err := os.ReadFile(w.path("locks/program." + host + ".runlog"))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// story is the kinds of an atom's events, with the status of a release.
func (w *world) story(t *testing.T, operand string) string {
	t.Helper()
	var story []string
	for _, e := range w.events(t, operand) {
		step := string(e.Kind)
		if e.Kind == runlog.Release && e.Status.Set {
			step += " " + strconv.Itoa(e.Status.Value)
		}
		story = append(story, step)
	}
	return strings.Join(story, "; ")
}

// tell logs progress, as a test may take three minutes.
func tell(t *testing.T, text string) {
	t.Helper()
	t.Log(time.Now().Format("15:04:05 ") + text)
}
