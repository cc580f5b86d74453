package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"adlock/lib/insight/history"
	"adlock/lib/insight/terminal"
	"adlock/lib/runlog"
	"adlock/test/support/helper"
	setup "adlock/test/support/must"
	"adlock/test/support/need"
	"adlock/test/support/story"
)

func TestMain(m *testing.M) { helper.Main(m) }

// place is a lock directory and the path of the helper program.
type place struct{ dir, program string }

// newPlace makes a place, and lets the test run in parallel.
func newPlace(t *testing.T) place {
	t.Helper()
	t.Parallel()
	return somewhere(t)
}

func somewhere(t *testing.T) place {
	t.Helper()
	return place{dir: helper.Dir(t), program: helper.Binary(t)}
}

func (p place) command(args ...string) helper.Command {
	return helper.Command{Args: append([]string{p.program}, args...), Env: []string{"ADLOCK_DIR=" + p.dir, "ADLOCK_HOST=dax", "TZ=UTC", "LC_ALL=C.UTF-8", "NO_COLOR=", "COLUMNS="}}
}

// ok runs a verb that must succeed and print nothing on standard error.
func (p place) ok(t *testing.T, args ...string) string {
	t.Helper()
	r := p.command(args...).Run(t)
	if r.Status != 0 || r.Err != "" {
		t.Fatalf("%q: status %d: %s", args, r.Status, r.Err)
	}
	return r.Out
}

func (p place) write(t *testing.T, s *story.Story) {
	t.Helper()
	must(t, s.Write(p.dir))
}

// hold starts a job that holds an atom, and returns once the job runs.
func (p place) hold(t *testing.T, lock string, options ...string) *helper.Process {
	t.Helper()
	process := p.command(append(append([]string{"run"}, options...), "--", "sleep", "300")...).Start(t)
	helper.Eventually(t, lock+" is held", func() bool { return helper.Settled(filepath.Join(p.dir, lock)) })
	return process
}

// awaitEvents waits until the log has want events of a kind.
func (p place) awaitEvents(t *testing.T, kind string, want int) {
	t.Helper()
	helper.Eventually(t, fmt.Sprint(want, " times ", kind), func() bool {
		return strings.Count(p.ok(t, "log", "--event", kind), "\n") == want
	})
}

func (p place) refused(t *testing.T, says string, args ...string) {
	t.Helper()
	p.command(args...).Run(t).Is(t, 64, "", "adlock: "+says+"\n")
}

var must = setup.Do

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	return string(text)
}

func has(t *testing.T, text string, wanted ...string) {
	t.Helper()
	for _, want := range wanted {
		if !strings.Contains(text, want) {
			t.Errorf("nothing says %q in:\n%s", want, text)
		}
	}
}

func TestAMissingDirectoryIsShownAsEmpty(t *testing.T) {
	p := newPlace(t)
	has(t, p.ok(t, "status"), "no atoms in "+p.dir)
	p.dir = filepath.Join(p.dir, "not", "there")
	const nothing = "nothing is recorded of this period in "
	for args, want := range map[string]string{
		"status": "no atoms: " + p.dir + ": no such directory\n", "status --json": "[]\n", "log": "",
		"report": nothing + p.dir + "\n", "timeline": nothing + p.dir + "\n",
	} {
		if got := p.ok(t, strings.Fields(args)...); got != want {
			t.Errorf("%s: %q, want %q", args, got, want)
		}
	}
	has(t, p.ok(t, "metrics"), "# TYPE adlock_runs_total counter")
	if _, err := os.Stat(p.dir); err == nil {
		t.Error("a verb that only reads made the lock directory")
	}
}

func TestStatusAdvisesToClearALockOfAnUnknownOwner(t *testing.T) {
	p := newPlace(t)
	for kind, option := range map[string]string{"lock": "--verbose", "read": "--shared"} {
		lock := filepath.Join(p.dir, kind+".adlock.dax.run."+kind)
		owner := p.command("run", "--name", kind, option, "--", "sleep", "300").Start(t)
		if kind == "read" {
			lock += fmt.Sprint(".", owner.PID)
		}
		helper.Eventually(t, lock+" is held", func() bool { return helper.Settled(lock) })
		another := regexp.MustCompile(`(?m)^(boot|machine)=.*`).ReplaceAllString(read(t, lock), "$1=another")
		must(t, os.WriteFile(lock, []byte(another), 0o600))
		has(t, p.ok(t, "status"), "unknown: ", "adlock clear '"+lock+"'")
	}
}

func TestStatusNamesTheNewcomerThatWatchesTheJob(t *testing.T) {
	need.Tools(t, "flock")
	p := newPlace(t)
	p.hold(t, "lock.adlock.dax.run.x", "--name", "x")
	watcher := helper.Command{Args: []string{"flock", filepath.Join(p.dir, "look.adlock.dax.run.x"), "-c", "exec sleep 300"}}.Start(t)
	note := fmt.Sprintf("process %d watches whether its job works, and ends it if it is idle", watcher.PID)
	helper.Eventually(t, "it is told", func() bool { return strings.Contains(p.ok(t, "status"), note) })
}

func TestStatusDistinguishesIdleRunningOverdueAndOrphanedAtoms(t *testing.T) {
	p := newPlace(t)
	p.ok(t, "run", "--operand", "idle job", "--if-elapsed", "1h", "--", "true")
	p.command("run", "--operand", "idle job", "--if-elapsed", "2h", "--expire-after", "10m", "--", "true").Run(t).Denied(t) // its limits are not shown
	p.hold(t, "lock.sleep.dax.run.running", "--operand", "running")
	p.hold(t, "lock.sleep.dax.run.overdue", "--operand", "overdue", "--expire-after", "1ms")
	p.hold(t, "lock.sleep.dax.run.orphaned", "--operand", "orphaned").Signal(t, 9)
	helper.Eventually(t, "an orphan", func() bool { return strings.Contains(p.ok(t, "status"), "orphaned: ") })
	p.ok(t, "run", "--name", "echoed", "--expire-after", "1ms", "--", "true")
	must(t, os.WriteFile(filepath.Join(p.dir, "lock.adlock.dax.run.echoed"), []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600))
	table := p.ok(t, "status")
	has(t, table, "true run idle job", "1h / never", "sleep run running", "overdue: running for", "ExpireAfter is 1ms; it would be ended")
	if strings.Contains(table, "\x1b") {
		t.Error("colour off a terminal")
	}
	var rows []struct{ Operand, State string }
	must(t, json.Unmarshal([]byte(p.ok(t, "status", "--json")), &rows))
	if got := fmt.Sprint(rows); got != "[{echoed running} {orphaned orphaned} {overdue overdue} {running running} {idle job idle}]" {
		t.Error(got)
	}
	has(t, p.ok(t, "report", "--atom", "orphaned"), "1: 1 orphaned; held ")
}

func TestLogShowsOnlySelectedEvents(t *testing.T) {
	p := newPlace(t)
	p.write(t, story.Day())
	all := p.ok(t, "log")
	has(t, all, "2026-11-20 11:00:00.002  takeover  backup run /srv/data: pid 4711, owner 1010, age 2h", "INT to 1010", "status 23")
	for _, c := range []struct {
		args string
		want int
	}{
		{"--event takeover", 6}, {"--event takeover,reclaim", 7}, {"--atom mirror --event takeover", 5},
		{"--event takeover --since 2026-11-20T12:00", 2}, {"--atom render.dax.run.frame_7-3494352873 --event acquire", 3},
		{"--since 1s", 0}, {"-n 3", 3}, {"-n 1073741824", strings.Count(all, "\n")}, {"--lines 0", 0}, {"-n 1 --event takeover", 1}, {"-n 100 --event takeover", 6},
		{"--event takeover --until 2026-11-20T12:00", 4}, {"--event takeover --since 2026-11-20T12:00 --until 2026-11-20T13:00", 1},
	} {
		if got := strings.Count(p.ok(t, append([]string{"log"}, strings.Fields(c.args)...)...), "\n"); got != c.want {
			t.Errorf("%s: %d lines, want %d", c.args, got, c.want)
		}
	}
	if lines := strings.Count(p.ok(t, "log", "--json"), "\n"); lines != strings.Count(all, "\n") {
		t.Errorf("%d lines of JSON, %d of text", lines, strings.Count(all, "\n"))
	}
	p.ok(t, "run", "--host", "web", "--name", "x", "--", "true")
	has(t, p.ok(t, "log"), "takeover  backup run /srv/data: pid 4711, ", "acquire   adlock run x on web: pid ")
	must(t, os.Remove(filepath.Join(p.dir, "program.web.runlog")))
	must(t, os.Mkdir(filepath.Join(p.dir, "program.other.runlog"), 0o700)) // it hides no other host's events
	p.command("log").Run(t).Is(t, 71, all, "…program.other.runlog: …")
	p.command("log", "-n", "1").Run(t).Is(t, 71, all[strings.LastIndexByte(all[:len(all)-1], '\n')+1:], "…program.other.runlog: …")
}

func TestADamagedLineIsReportedAndSkipped(t *testing.T) {
	p := newPlace(t)
	p.write(t, story.Day())
	runlog := filepath.Join(p.dir, "program.dax.runlog")
	must(t, os.WriteFile(runlog, []byte(read(t, runlog)+"\x00half a li\x1b[2J\n"), 0o600))
	p.ok(t, "run", "--operand", "after", "--", "true")
	has(t, p.ok(t, "status"), "true run after", "idle")
	r := p.command("log", "--atom", "after").Run(t)
	if r.Status != 0 || strings.Count(r.Out, "\n") != 2 || strings.Contains(r.Err, "\x1b") {
		t.Errorf("%+v", r)
	}
	has(t, r.Err, "damaged line", "half a li")
	has(t, p.command("log", "-n", "1").Run(t).Err, "1 damaged lines of the runlog passed over (adlock log without -n shows them)")
	for _, verb := range []string{"report", "timeline"} {
		if r := p.command(verb, "--since", "2026-11-20").Run(t); r.Status != 0 || !strings.Contains(r.Out, "after") ||
			!strings.Contains(r.Err, "1 damaged lines") {
			t.Errorf("%s: %+v", verb, r)
		}
	}
}

func TestTheLogShowsAnAutoLimitOnlyOnce(t *testing.T) {
	p := newPlace(t)
	p.ok(t, "run", "--name", "n", "--expire-after", "auto", "--", "true")
	log := p.ok(t, "log", "--event", "acquire")
	has(t, log, ", IfElapsed 0s, ExpireAfter never: 0 successful runs, fewer than 5: no limit until there are 5\n")
	if strings.Count(log, "ExpireAfter") != 1 {
		t.Error(log)
	}
}

func TestTheLogCountsDenialsFromTheSecondOn(t *testing.T) {
	p := newPlace(t)
	p.hold(t, "lock.adlock.dax.run.job", "--name", "job")
	for range 2 {
		p.command("run", "--name", "job", "--", "true").Run(t)
	}
	lines := strings.Split(p.ok(t, "log", "--event", "deny"), "\n")
	if len(lines) != 3 || strings.Contains(lines[0], "in a row") || !strings.Contains(lines[1], ", 2 in a row, busy: ") {
		t.Errorf("%q", lines)
	}
}

func TestLogFollowShowsTheLastLinesAndThenNewOnes(t *testing.T) {
	p := newPlace(t)
	for _, operand := range []string{"first", "second", "third"} {
		p.ok(t, "run", "--operand", operand, "--", "true")
	}
	log := p.command("log", "-n", "1", "--follow").Start(t)
	helper.Eventually(t, "the last line is told", func() bool { return log.Output() != "" })
	setBack := runlog.Event{Kind: runlog.Empty, Time: time.Now().Add(-time.Hour), Program: "true", Operator: "run", Operand: "earlier"}
	helper.Eventually(t, "an event after the clock was set back is told", func() bool {
		must(t, (&runlog.Log{Dir: p.dir, Host: "dax"}).Append(setBack))
		return strings.Contains(log.Output(), "true run earlier")
	})
	p.ok(t, "run", "--operand", "fourth", "--", "true")
	helper.Eventually(t, "the fourth run is told", func() bool { return strings.Contains(log.Output(), "release   true run fourth") })
	if got := log.Output(); strings.Count(got, "\n") != strings.Count(got, "earlier")+3 || !strings.Contains(got, "release   true run third") {
		t.Error(got)
	}
}

func TestLogFollowsOnlyWhileItsOutputIsRead(t *testing.T) {
	p := newPlace(t)
	p.ok(t, "run", "--", "true")
	c := p.command()
	c.Args = []string{"timeout", "30", "sh", "-c", `"$0" log --follow | head -n 1`, p.program}
	if r := c.Run(t); r.Status != 0 || strings.Count(r.Out, "\n") != 1 {
		t.Errorf("%+v", r)
	}
}

func TestMetricsContinueTheCountersOfTheirFile(t *testing.T) {
	p := newPlace(t)
	file := filepath.Join(p.dir, "adlock.prom")
	p.write(t, story.Day())
	last := filepath.Join(p.dir, "last.backup.dax.run._srv_data")
	must(t, os.WriteFile(last, nil, 0o600))
	away := p.dir + ".away"
	fresh := filepath.Join(filepath.Dir(p.dir), "fresh.prom")
	must(t, os.Rename(p.dir, away))
	p.ok(t, "metrics", "--output", fresh)
	p.ok(t, "metrics", "--output", fresh) // no directory exists yet, and the file has no atoms
	must(t, os.Rename(away, p.dir))
	p.ok(t, "metrics", "--output", file)
	const ended = `adlock_runs_total{program="backup",host="dax",operator="run",operand="/srv/data",outcome="ended"}`
	has(t, read(t, file), ended+" 1\n")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("%v: the collector is another user", info.Mode())
	}
	must(t, os.Remove(filepath.Join(p.dir, "program.dax.runlog")))
	p.ok(t, "metrics", "--output", file)
	has(t, read(t, file), ended+" 1\n", "adlock_last_success_timestamp_seconds{program=\"backup\"")
	kept := read(t, file)
	must(t, os.Rename(file, fresh))
	must(t, os.Rename(p.dir, away))
	if r := p.command("metrics", "--output", fresh).Run(t); r.Status != 69 || strings.Count(r.Err, "\n") != 1 || read(t, fresh) != kept {
		t.Errorf("with the directory away: %+v\n%s", r, read(t, fresh))
	}
	must(t, os.Rename(away, p.dir))
	c := p.command()
	c.Args = []string{"timeout", "-s", "KILL", "60", "sh", "-c", `cd "$ADLOCK_DIR" && mkfifo - && "$0" metrics -o - && "$0" metrics -o /dev/stdout | cat`, p.program}
	c.Run(t).Is(t, 0, "…# TYPE adlock_runs_total counter…# TYPE adlock_runs_total counter…", "")
}

func TestMetricsShowOnlyExistingAtomsThatMatch(t *testing.T) {
	p := newPlace(t)
	for _, name := range []string{"one", "other", "one more"} {
		p.ok(t, "run", "--name", name, "--", "true")
	}
	for _, c := range []struct {
		args  []string
		shown string
	}{
		{[]string{"one"}, "one"}, {[]string{"oth"}, "other"}, {[]string{"--atom", "one"}, "one one more"},
	} {
		found := map[string]bool{}
		for _, label := range regexp.MustCompile(`operand="([^"]*)"`).FindAllStringSubmatch(p.ok(t, append([]string{"metrics"}, c.args...)...), -1) {
			found[label[1]] = true
		}
		if got := strings.Join(slices.Sorted(maps.Keys(found)), " "); got != c.shown {
			t.Errorf("%v shows %s", c.args, got)
		}
	}
	p.refused(t, `metrics: no atom matches "none"`, "metrics", "none")
	if r := p.command("metrics", "--atom", "none").Run(t); r.Status != 0 || strings.Contains(r.Out, `operand="`) || !strings.Contains(r.Err, "nothing is recorded") {
		t.Errorf("of no program: %+v", r)
	}
	p.ok(t, "clear", "--last", "--older", "0")
	if text := p.ok(t, "metrics"); strings.Contains(text, `operand="`) {
		t.Errorf("retired, and still there:\n%s", text)
	}
}

func TestErrorsAreOneLineAndNameABadOptionAsItWasTyped(t *testing.T) {
	p := newPlace(t)
	for _, args := range []string{
		"status x", "log --event nonsense", "log --since tomorrow", "report --json --csv", "report --csv --html -", "report --since 5x",
		"timeline --since 1h --until 2h", "log --since 1h --until 2h", "log --since today --until today", "metrics x", "log --nonsense",
	} {
		p.command(strings.Fields(args)...).Run(t).Refused(t, 64, "adlock: ")
	}
	p.command("metrics", "--output", "/nowhere/adlock.prom").Run(t).Refused(t, 73, "/nowhere/adlock.prom: ")
	p.command("metrics", "--output", p.dir).Run(t).Refused(t, 73, "is a directory")
	p.refused(t, p.dir+"/m.txt: does not end in .prom: node_exporter's textfile collector would not read it", "metrics", "--output", p.dir+"/m.txt")
	p.command("status", "--store", "etcd://127.0.0.1:1/p").Run(t).Refused(t, 69, "adlock-locksmith: is not installed")
	for args, want := range map[string]string{
		"log -n1": "adlock: -n1: unknown option", "status -hx": "adlock: -hx: unknown option", "log --atom n1 --n1=2": "adlock: --n1: unknown option",
		"log --lines 1 -n 2": "adlock: -n: is --lines, which is there too",
	} {
		p.command(strings.Fields(args)...).Run(t).Refused(t, 64, want)
	}
}

func TestStatusShowsHowTheLastRunEnded(t *testing.T) {
	p := newPlace(t)
	fail := func(operand string, command ...string) {
		p.command(append([]string{"run", "--program", "p", "--operand", operand, "--"}, command...)...).Run(t)
	}
	fail("fails", "sh", "-c", "exit 3")
	fail("fails", "sh", "-c", "exit 4")
	fail("recovers", "false")
	fail("recovers", "true")
	fail("dies", "sh", "-c", "kill -KILL $$")
	fail("typo", "nowhere-to-be-found")
	table := p.ok(t, "status")
	has(t, table, "failed: status 4 (2 in a row)\n", "failed: ended by KILL\n", "failed: status 127, its command cannot be run\n")
	if lines := strings.Count(table, "\n"); lines != 1+4+3 || !regexp.MustCompile(`p run recovers +idle +\S+ ago`).MatchString(table) || !regexp.MustCompile(`p run fails +idle +failed \S+ ago`).MatchString(table) {
		t.Errorf("%d lines:\n%s", lines, table)
	}
	has(t, p.ok(t, "report", "typo"), "1: 1 failed")
	has(t, p.ok(t, "status", "--json", "fails"), `"last":{"outcome":"failure","status":4,`, `"failed_in_a_row":2}`)
}

func TestStatusHidesAMistypedCommandAfterEightDays(t *testing.T) {
	p := newPlace(t)
	s := &story.Story{}
	missing := runlog.Event{Kind: runlog.Missing, PID: 7, Status: runlog.Some(127)}
	s.Job("cd run /tmp", 0, time.Hour).Add(time.Since(story.Midnight)-8*24*time.Hour, missing)
	s.Job("typo run x", 0, time.Hour).Add(time.Since(story.Midnight)-6*24*time.Hour, missing)
	s.Job("late run x", 0, time.Hour).Add(time.Since(story.Midnight)+24*time.Hour, missing) // the clock was set back
	p.write(t, s)
	table := p.ok(t, "status")
	has(t, table, "typo run x", "failed 6d", "failed in the future")
	if strings.Contains(table, "cd run") {
		t.Error(table)
	}
}

func TestStatusWithFailedShowsOnlyAtomsInTrouble(t *testing.T) {
	p := newPlace(t)
	p.ok(t, "run", "--name", "fine", "true")
	if got := p.ok(t, "status", "--failed", "--exit-code") + p.ok(t, "status", "--failed", "--json"); got != "[]\n" {
		t.Errorf("all is fine: %q", got)
	}
	p.command("run", "--name", "failed", "false").Run(t)
	p.command("run", "--name", "ended", "--enforce", "--expire-after", "100ms", "--", "sleep", "300").Run(t)
	must(t, os.WriteFile(p.dir+"/lock.adlock.dax.run.damaged", []byte("1\nx\n"), 0o600))
	for status, args := range map[int][]string{0: {"status", "--failed", "failed"}, 1: {"status", "--failed", "--exit-code"}} {
		if r := p.command(args...).Run(t); r.Status != status || r.Out == "" || r.Err != "" {
			t.Errorf("%q: %+v", args, r)
		}
	}
	table := p.ok(t, "status", "--failed")
	has(t, table, "adlock run failed ", "adlock run ended ", "adlock run damaged ", "  ended: by its own supervisor, after ")
	if strings.Contains(table, "fine") || !strings.Contains(p.ok(t, "status"), "fine") {
		t.Errorf("the one that is well:\n%s", table)
	}
	p.ok(t, "run", "--name", "failed", "true")
	if table := p.ok(t, "status", "--failed"); strings.Contains(table, "run failed") {
		t.Errorf("after a success:\n%s", table)
	}
}

func TestReportsReadRunlogsThatLogrotateCompressed(t *testing.T) {
	need.Tools(t, "gzip")
	p := newPlace(t)
	p.command("run", "--name", "failed", "false").Run(t)
	now := filepath.Join(p.dir, "program.dax.runlog")
	must(t, os.Rename(now, now+".2"))
	must(t, exec.Command("gzip", now+".2").Run())
	p.ok(t, "run", "--name", "fine", "true")
	for _, verb := range [][]string{{"status", "--failed"}, {"log"}, {"report"}} {
		has(t, p.ok(t, verb...), "run failed")
	}
}

func TestStatusDistinguishesStoppedFromRunning(t *testing.T) {
	p := newPlace(t)
	holder := p.hold(t, "lock.p.dax.run.x", "--program", "p", "--operand", "x")
	has(t, p.ok(t, "status"), "p run x  running ")
	job := helper.Children(holder.PID)[0]        // it runs: its lock is settled
	for _, pid := range []int{job, holder.PID} { // the job alone; then, as Ctrl-Z does, both
		must(t, syscall.Kill(pid, syscall.SIGSTOP))
		says := fmt.Sprintf("stopped: process %d; to let it go on: kill -CONT %d\n", pid, pid)
		helper.Eventually(t, "it is shown", func() bool { return strings.Contains(p.ok(t, "status"), says) })
		has(t, p.ok(t, "status", "--failed"), "p run x  stopped ")
		has(t, p.ok(t, "status", "--json"), `"state":"stopped"`)
		if pid == job {
			_ = syscall.Kill(job, syscall.SIGCONT)
			helper.Eventually(t, "it runs again", func() bool { return strings.Contains(p.ok(t, "status"), "p run x  running ") })
		}
	}
	_ = syscall.Kill(holder.PID, syscall.SIGCONT)
}

func TestStatusListsWaitersInTheirOrder(t *testing.T) {
	p := newPlace(t)
	p.command("run", "--operand", "x", "--shared", "--", "sleep", "300").Start(t)
	p.command("run", "--operand", "y", "--program", "q", "--slots", "1", "--", "sleep", "300").Start(t)
	p.awaitEvents(t, "acquire", 2)
	var waiters []string
	wait := func(args ...string) *helper.Process {
		w := p.command(append([]string{"run"}, args...)...).Start(t)
		waiters = append(waiters, fmt.Sprint(w.PID))
		p.awaitEvents(t, "wait", len(waiters))
		return w
	}
	wait("--operand", "x", "--wait", "forever", "--", "sleep", "300")
	dies := wait("--operand", "x", "--wait", "1h", "--", "sleep", "300")
	wait("--operand", "x", "--wait", "2h", "--", "sleep", "300")
	wait("--operand", "z", "--program", "q", "--slots", "1", "--wait", "1h", "--", "sleep", "300")
	p.ok(t, "run", "--name", "w", "--", "true")
	p.ok(t, "pause", "--for", "1h", "w")
	wait("--name", "w", "--wait", "1h", "--", "true")
	has(t, p.ok(t, "status"), "waiting for the end of a pause: pid "+waiters[4])
	dies.Signal(t, 9)
	dies.Wait(t)
	helper.Eventually(t, "what it may have left is cleared by the others", func() bool { return !strings.Contains(p.ok(t, "status"), "orphaned") })
	for range 20 { // a waiter takes the lock for a moment each time it looks for readers and slots
		table := p.ok(t, "status")
		want := regexp.MustCompile(`waiting for process [0-9]+: pid ` + waiters[0] + ` for \S+, ` + waiters[2] + ` for \S+ of 2h\n`)
		if !want.MatchString(table) || !regexp.MustCompile(`q run z +waiting .*\n  waiting for a slot: pid `).MatchString(table) || !regexp.MustCompile(`sleep run x +running .* - `).MatchString(table) {
			t.Fatalf("want %s in\n%s", want, table)
		}
	}
}

func TestStatusShowsSlotsAndReaders(t *testing.T) {
	p := newPlace(t)
	for _, args := range []string{"--operand a --slots 3", "--operand b --slots 3", "--operand c --shared", "--operand c --shared"} {
		p.command(append(append([]string{"run", "--program", "q"}, strings.Fields(args)...), "--", "sleep", "300")...).Start(t)
	}
	p.awaitEvents(t, "acquire", 4)
	table := p.ok(t, "status")
	for _, want := range []string{`SLOT`, `q run [ab] .* 1 of 3`, `q run [ab] .* 2 of 3`, `q run c .* \+1 +- `} {
		if !regexp.MustCompile(want).MatchString(table) {
			t.Errorf("nothing says %q in:\n%s", want, table)
		}
	}
	must(t, os.Remove(filepath.Join(p.dir, "lock.q.dax.run.a")))
	for args, want := range map[string]bool{"status": true, "status a": true, "status c": false, "status --atom b": false} {
		if got := p.ok(t, strings.Fields(args)...); regexp.MustCompile(`(?m)^slot [12] of q on dax: held by \d+ `).MatchString(got) != want {
			t.Errorf("%s: the slot of a is shown: %v\n%s", args, !want, got)
		}
	}
}

func TestStatusShowsASemaphoreInOneRow(t *testing.T) {
	p := newPlace(t)
	for range 3 {
		p.command("run", "--name", "s", "--slots", "3", "--", "sleep", "300").Start(t)
	}
	p.awaitEvents(t, "acquire", 3)
	p.command("run", "--name", "s", "--slots", "3", "--wait", "forever", "--", "true").Start(t)
	p.awaitEvents(t, "wait", 1)
	want := regexp.MustCompile(`(?m)\n.*\brun s +running .* \+2 +3 of 3 .*\n  waiting for a slot: pid .*\n$`)
	if table := p.ok(t, "status"); !want.MatchString(table) || strings.Count(table, "\n") != 3 {
		t.Error(table)
	}
}

func TestADeadRunOfASemaphoreHoldsNoSlotAndIsOrphaned(t *testing.T) {
	p := newPlace(t)
	kill := func(holder *helper.Process) {
		job := helper.Children(holder.PID)[0]
		holder.Signal(t, 9)
		must(t, syscall.Kill(job, syscall.SIGKILL))
	}
	lives := p.hold(t, "lock.adlock.dax.run.s.slot-1", "--name", "s", "--slots", "2")
	kill(p.hold(t, "lock.adlock.dax.run.s.slot-2", "--name", "s", "--slots", "2"))
	helper.Eventually(t, "one slot is free", func() bool { return strings.Contains(p.ok(t, "status"), " 1 of 2  ") })
	kill(lives)
	want := regexp.MustCompile(`(?m)\A.*\n.* run s +orphaned .*\n  orphaned: the owner is dead.*\n\z`)
	helper.Eventually(t, "both are dead", func() bool { return want.MatchString(p.ok(t, "status")) })
	has(t, p.ok(t, "status", "--failed"), "run s  orphaned ")
	has(t, p.ok(t, "report", "s"), "2: 2 orphaned; held ")
	p.ok(t, "pause", "--for", "1h", "s")
	has(t, p.ok(t, "status"), "\n  orphaned: the owner is dead", "\n  paused: for 1h more")
	if text := p.ok(t, "metrics"); strings.Contains(text, "running_since_timestamp_seconds{") {
		t.Error(text)
	}
}

func TestStatusShowsOnlyTheNamedAtoms(t *testing.T) {
	p := newPlace(t)
	for _, operand := range []string{"one", "another", "one more"} {
		p.ok(t, "run", "--operand", operand, "--", "true")
	}
	for args, want := range map[string]int{
		"status|true|run|one": 1, "status|on": 2, "status|true.dax.run.one": 1, "status|other|more": 2, "status|--atom|more|true": 1,
	} {
		if got := p.ok(t, strings.Split(args, "|")...); strings.Count(got, "\n") != 1+want {
			t.Errorf("%s: want %d atoms:\n%s", args, want, got)
		}
	}
	p.refused(t, `status: no atom matches "nobody"`, "status", "one", "nobody")
	if got := p.ok(t, "status", "--atom", "nobody"); got != "no atom matches \"nobody\"\n" {
		t.Error(got)
	}
}

func TestWordsThatAreAWholeNameSelectNoOtherAtom(t *testing.T) {
	p := newPlace(t)
	p.ok(t, "run", "--program", "job", "--name", "db", "--expire-after", "auto", "--", "true")
	p.ok(t, "run", "--program", "job", "--name", "dbfull", "--expire-after", "auto", "--", "true")
	shows := func(want int, args ...string) {
		t.Helper()
		if got := p.ok(t, args...); strings.Contains(got, "dbfull") != (want == 2) || !strings.Contains(got, "db") {
			t.Errorf("%q: want %d atoms:\n%s", args, want, got)
		}
	}
	verbs := []string{"status", "log", "report", "timeline", "tune"}
	for _, verb := range verbs {
		for _, whole := range [][]string{{"db"}, {"job run db"}, {"job", "run", "db"}, {"job.dax.run.db"}} {
			shows(1, append([]string{verb}, whole...)...)
		}
		shows(2, verb, "job run d")
		shows(2, verb, "--atom", "db")
	}
	must(t, os.Remove(p.dir+"/last.job.dax.run.db"))
	for _, verb := range verbs[1:4] { // the runlog knows it still
		shows(1, verb, "db")
	}
}

func TestACompletionMissingInTheRunlogIsNoFailure(t *testing.T) {
	t.Parallel()
	failed := &history.Run{Outcome: history.Failed, Start: story.Midnight, End: story.Midnight, Status: runlog.Some(3)}
	for completed, want := range map[time.Duration]string{-time.Hour: "failed 2h ago", 0: "failed 2h ago", time.Hour: "1h ago"} {
		r := &row{State: "idle", Last: failed, Completed: story.Midnight.Add(completed)}
		if got := r.lastCell(story.Midnight.Add(2 * time.Hour)); got != want || (len(r.notes(story.Midnight)) > 0) != strings.HasPrefix(want, "failed") {
			t.Errorf("completed %v later: %q, %v", completed, got, r.notes(story.Midnight))
		}
	}
}

func TestLongNamesAreShortenedInATableAndStayDistinct(t *testing.T) {
	p := newPlace(t)
	p.ok(t, "run", "--operand", strings.Repeat("x", 5000), "--", "true")
	p.ok(t, "run", "--operand", strings.Repeat("x", 4999)+"y", "--", "true")
	lines := strings.Split(p.ok(t, "status"), "\n")
	for _, line := range lines[:3] {
		if n := terminal.Columns(line); n > longestName+100 {
			t.Errorf("%d columns", n)
		}
	}
	if name, _, _ := strings.Cut(lines[1], "  "); strings.HasPrefix(lines[2], name) {
		t.Errorf("two atoms are %q", name)
	}
}

func TestStatusIsNoWiderThanTheTerminal(t *testing.T) {
	p := newPlace(t)
	long := strings.Repeat("word ", 30)
	for _, words := range []string{"exit 3 # " + long + "one", "exit 3 # " + long + "two", "kill -9 $$ # " + strings.Repeat("x", 200)} {
		p.command("run", "--expire-after", "auto", "--", "sh", "-c", words).Run(t)
	}
	p.hold(t, "lock.job.dax.slot-1", "--name", strings.Repeat("y", 150), "--program", "job", "--slots", "3")
	widest := func(c helper.Command) (most int) {
		r := c.Run(t)
		if r.Status != 0 || r.Err != "" || strings.Count(r.Out, "\n") < 5 {
			t.Errorf("%+v", r)
		}
		for line := range strings.Lines(r.Out) {
			most = max(most, terminal.Columns(strings.TrimSuffix(line, "\n")))
		}
		return most
	}
	if got := widest(p.command("status")); got < 200 {
		t.Errorf("in a file it is cut to %d columns", got)
	}
	for width := 20; width < 200; width += 7 {
		c := p.command("status")
		c.Env = append(c.Env, "COLUMNS="+strconv.Itoa(width))
		if got := widest(c); got > width {
			t.Errorf("%d columns wide in %d", got, width)
		}
	}
}

func TestANameThatNoAtomHasIsAUsageError(t *testing.T) {
	p := newPlace(t)
	p.ok(t, "run", "--name", "x", "true")
	must(t, os.Remove(p.dir+"/last.adlock.dax.run.x"))                // only the runlog has it
	must(t, os.WriteFile(p.dir+"/last.adlock.dax.run.y", nil, 0o600)) // the runlog does not have this one
	for _, verb := range [][]string{{"log"}, {"log", "--json"}, {"log", "-n", "3"}, {"report"}, {"report", "--html", "-"}, {"timeline"}, {"timeline", "--svg", "-"}} {
		p.refused(t, verb[0]+`: no atom matches "nosuch"`, append(slices.Clone(verb), "nosuch")...)
		if r := p.command(append(slices.Clone(verb), "y")...).Run(t); r.Status != 0 ||
			!strings.Contains(r.Err, "nothing is recorded there") {
			t.Errorf("%s: %+v", verb, r)
		}
		p.refused(t, "x: the atom was named already", append(slices.Clone(verb), "--atom", "y", "x")...)
		if r := p.command(append(slices.Clone(verb), "--atom", "typo")...).Run(t); r.Status != 0 ||
			!strings.HasSuffix(r.Err, `: nothing is recorded there for this query of an atom that matches "typo"`+"\n") {
			t.Errorf("%s: %+v", verb, r)
		}
		p.ok(t, append(slices.Clone(verb), "x")...)
	}
	p.command("report", "--since", "1ms", "x").Run(t).Is(t, 0, "…", "…nothing is recorded there for this query of an atom …")
}

func TestOptionsMayFollowTheNames(t *testing.T) {
	p := newPlace(t)
	p.write(t, story.Day())
	for before, behind := range map[string]string{
		"log --event deny run /srv/data":                        "log run --event deny /srv/data",
		"log --json -- backup":                                  "log backup --json",
		"log --json --atom srv":                                 "log --atom=--json --atom srv --json",
		"timeline --since 2026-11-20 --until 2026-11-21 backup": "timeline backup --until 2026-11-21 --since=2026-11-20",
		"status --help":                                         "status backup --help",
	} {
		if want, got := p.ok(t, strings.Fields(before)...), p.ok(t, strings.Fields(behind)...); got != want || want == "" {
			t.Errorf("%s: %.300q; %s: %.300q", behind, got, before, want)
		}
	}
	has(t, p.ok(t, "report", "backup", "--since", "2026-11-20"), "2026-11-20 00:00:00 to ") // and to now
}
