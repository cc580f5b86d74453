package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"adlock/lib/history/story"
	"adlock/test/helper"
)

func TestMain(m *testing.M) { helper.Main(m) }

// place is a lock directory and the helper program that looks at it.
type place struct{ dir, program string }

func newPlace(t *testing.T) place {
	t.Helper()
	return place{dir: helper.Dir(t), program: helper.Binary(t)}
}

func (p place) command(args ...string) helper.Command {
	return helper.Command{Args: append([]string{p.program}, args...), Env: []string{"ADLOCK_DIR=" + p.dir, "ADLOCK_HOST=dax", "TZ=UTC", "LC_ALL=C.UTF-8", "NO_COLOR=", "COLUMNS="}}
}

// ok runs a verb that must succeed and say nothing on standard error.
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
	if err := s.Write(p.dir); err != nil {
		t.Fatal(err)
	}
}

func has(t *testing.T, text string, wanted ...string) {
	t.Helper()
	for _, want := range wanted {
		if !strings.Contains(text, want) {
			t.Errorf("nothing says %q in:\n%s", want, text)
		}
	}
}

func TestNothingIsAnAnswerToo(t *testing.T) {
	p := newPlace(t)
	p.dir = filepath.Join(p.dir, "not", "there")
	has(t, p.ok(t, "status"), "no atoms")
	if got := p.ok(t, "status", "--json"); got != "[]\n" {
		t.Errorf("%q", got)
	}
	if got := p.ok(t, "log"); got != "" {
		t.Errorf("%q", got)
	}
	has(t, p.ok(t, "report"), "nothing is recorded")
	has(t, p.ok(t, "timeline"), "nothing is recorded")
	has(t, p.ok(t, "metrics"), "# TYPE adlock_runs_total counter")
	if _, err := os.Stat(p.dir); err == nil {
		t.Error("a verb that only reads made the lock directory")
	}
}

func TestStatusTellsHowToClearALockWhoseOwnerCannotBeChecked(t *testing.T) {
	p := newPlace(t)
	p.command("run", "--operand", "elsewhere", "--", "sleep", "300").Start(t)
	lock := ""
	helper.Eventually(t, "a lock", func() bool {
		locks, _ := filepath.Glob(filepath.Join(p.dir, "lock.*"))
		if len(locks) == 1 {
			lock = locks[0]
		}
		return lock != ""
	})
	text, err := os.ReadFile(lock)
	if err != nil {
		t.Fatal(err)
	}
	another := regexp.MustCompile(`(?m)^(boot|machine)=.*`).ReplaceAll(text, []byte("$1=another"))
	if err := os.WriteFile(lock, another, 0o600); err != nil {
		t.Fatal(err)
	}
	has(t, p.ok(t, "status"), "unknown: ", "adlock clear "+strings.TrimPrefix(filepath.Base(lock), "lock."))
}

func TestStatusTellsTheStates(t *testing.T) {
	p := newPlace(t)
	job := func(operand string, options ...string) *helper.Process {
		args := append(append([]string{"run", "--operand", operand}, options...), "--", "sleep", "300")
		return p.command(args...).Start(t)
	}
	p.ok(t, "run", "--operand", "idle job", "--if-elapsed", "1h", "--", "true")
	job("running")
	job("overdue", "--expire-after", "0")
	dead := job("orphaned")
	helper.Eventually(t, "three locks", func() bool {
		locks, _ := filepath.Glob(filepath.Join(p.dir, "lock.*"))
		return len(locks) == 3
	})
	dead.Signal(t, 9)
	helper.Eventually(t, "an orphan", func() bool { return strings.Contains(p.ok(t, "status"), "orphaned: ") })
	table := p.ok(t, "status")
	has(t, table, "true run idle job", "1h / 2h", "sleep run running", "overdue: running for", "ExpireAfter is 0s; it would be ended")
	if strings.Contains(table, "\x1b") {
		t.Error("colour off a terminal")
	}
	var rows []struct {
		Operand, State, User string
		Owner                int
		Due                  float64 `json:"due_in_seconds"`
		Held                 float64 `json:"held_seconds"`
	}
	if err := json.Unmarshal([]byte(p.ok(t, "status", "--json")), &rows); err != nil {
		t.Fatal(err)
	}
	states := map[string]string{}
	for _, r := range rows {
		states[r.Operand] = r.State
		if (r.State == "idle") == (r.Owner != 0 || r.Held != 0) {
			t.Errorf("%+v", r)
		}
	}
	if got := fmt.Sprint(states); got != "map[idle job:idle orphaned:orphaned overdue:overdue running:running]" {
		t.Error(got)
	}
	if got := p.ok(t, "status", "--atom", "idle"); strings.Count(got, "\n") != 2 {
		t.Error(got)
	}
}

func TestStatusSurvivesARecordItCannotRead(t *testing.T) {
	p := newPlace(t)
	p.ok(t, "run", "--operand", "x", "--", "true")
	if err := os.WriteFile(filepath.Join(p.dir, "program.dax.runlog"), []byte("\x00garbage\nmore\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	has(t, p.ok(t, "status"), "true run x", "idle")
}

func TestLogSelects(t *testing.T) {
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
		{"--since 1s", 0},
	} {
		if got := strings.Count(p.ok(t, append([]string{"log"}, strings.Fields(c.args)...)...), "\n"); got != c.want {
			t.Errorf("%s: %d lines, want %d", c.args, got, c.want)
		}
	}
	lines := 0
	for line := range strings.Lines(p.ok(t, "log", "--json")) {
		var e struct{ Time, Event string }
		if err := json.Unmarshal([]byte(line), &e); err != nil || e.Event == "" {
			t.Fatalf("%s: %v", line, err)
		}
		lines++
	}
	if lines != strings.Count(all, "\n") {
		t.Errorf("%d lines of JSON, %d of text", lines, strings.Count(all, "\n"))
	}
}

func TestDamagedLineIsShownAndPassedOver(t *testing.T) {
	p := newPlace(t)
	p.write(t, story.Day())
	file, err := os.OpenFile(filepath.Join(p.dir, "program.dax.runlog"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(file, "half a li\x1b[2J")
	file.Close()
	p.ok(t, "run", "--operand", "after", "--", "true")
	r := p.command("log", "--atom", "after").Run(t)
	if r.Status != 0 || strings.Count(r.Out, "\n") != 2 || strings.Contains(r.Err, "\x1b") {
		t.Errorf("%+v", r)
	}
	has(t, r.Err, "damaged line", "half a li")
	for _, verb := range []string{"report", "timeline"} {
		r := p.command(verb, "--since", "2026-11-20").Run(t)
		has(t, r.Err, "1 damaged lines")
		has(t, r.Out, "after")
		if r.Status != 0 {
			t.Errorf("%s: status %d", verb, r.Status)
		}
	}
}

func TestLogFollows(t *testing.T) {
	p := newPlace(t)
	log := p.command("log", "--follow").Start(t)
	p.ok(t, "run", "--operand", "first", "--", "true")
	helper.Eventually(t, "the first run is told", func() bool { return strings.Contains(log.Output(), "release   true run first") })
	p.ok(t, "run", "--operand", "second", "--", "true")
	helper.Eventually(t, "the second run is told", func() bool { return strings.Contains(log.Output(), "release   true run second") })
}

func TestTimelineDrawsBothWays(t *testing.T) {
	p := newPlace(t)
	p.write(t, story.Day())
	c := p.command("timeline", "--since", "2026-11-20", "--until", "2026-11-21")
	c.Env = append(c.Env, "COLUMNS=100")
	has(t, c.Run(t).Out, "backup run /srv/data", "✗", "░")
	c.Env = append(c.Env, "LC_ALL=C")
	if out := c.Run(t).Out; strings.Contains(out, "✗") || !strings.Contains(out, "X") {
		t.Errorf("not ASCII in the C locale:\n%s", out)
	}
	file := filepath.Join(p.dir, "day.svg")
	p.ok(t, "timeline", "--since", "2026-11-20", "--until", "2026-11-21", "--svg", file)
	picture, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	has(t, string(picture), "ended by force by 4711", "</svg>")
}

func TestMetricsGoOnFromTheirFile(t *testing.T) {
	p := newPlace(t)
	file := filepath.Join(p.dir, "adlock.prom")
	p.write(t, story.Day())
	p.ok(t, "metrics", "--output", file)
	first, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const ended = `adlock_runs_total{program="backup",host="dax",operator="run",operand="/srv/data",outcome="ended"}`
	has(t, string(first), ended+" 1\n")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("%v: the collector is another user", info.Mode())
	}
	if err := os.Remove(filepath.Join(p.dir, "program.dax.runlog")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(p.dir, "last.backup.dax.run._srv_data"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.ok(t, "metrics", "--output", file)
	second, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	has(t, string(second), ended+" 1\n", "adlock_last_success_timestamp_seconds{program=\"backup\"")
}

func TestUsageErrorsAreOneLine(t *testing.T) {
	p := newPlace(t)
	for _, args := range []string{
		"status x", "log --event nonsense", "log --since tomorrow", "report --json --csv", "report --since 5x",
		"timeline --since 1h --until 2h", "metrics x", "log --nonsense",
	} {
		r := p.command(strings.Fields(args)...).Run(t)
		if r.Status != 64 || strings.Count(r.Err, "\n") != 1 || r.Out != "" {
			t.Errorf("%s: status %d, %q, %q", args, r.Status, r.Err, r.Out)
		}
	}
	r := p.command("metrics", "--output", "/nowhere/adlock.prom").Run(t)
	if r.Status != 73 || strings.Count(r.Err, "\n") != 1 {
		t.Errorf("status %d, %q", r.Status, r.Err)
	}
}

// A million lines in less than 100 MB; and how long it takes, which is for
// people to judge: a bound would fail on a busy machine.
func TestReportOfAMillionLinesIsSmall(t *testing.T) {
	p := newPlace(t)
	writeMillion(t, p.dir)
	c := exec.Command(p.program, "report", "--csv")
	c.Env = append(helper.Clean(), p.command().Env...)
	begun := time.Now()
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	rss := c.ProcessState.SysUsage().(*syscall.Rusage).Maxrss * rssUnit
	t.Logf("%v, %v of CPU, %d MB", time.Since(begun).Round(time.Millisecond), c.ProcessState.UserTime()+c.ProcessState.SystemTime(), rss>>20)
	if n := strings.Count(string(out), "\n"); n != 201 {
		t.Errorf("%d lines", n)
	}
	if rss > 100<<20 {
		t.Errorf("%d MB", rss>>20)
	}
}

// rssUnit is that of ru_maxrsson Linux: getrusage(2).
const rssUnit = 1 << 10

// writeMillion writes a record of a million lines about 200 atoms.
func writeMillion(t *testing.T, dir string) {
	t.Helper()
	file, err := os.OpenFile(filepath.Join(dir, "program.dax.runlog"), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	var b []byte
	for i := range 1_000_000 / 4 {
		now := story.Midnight.Add(time.Duration(i) * time.Second).Format("2006-01-02T15:04:05.000000Z")
		atom := fmt.Sprintf("program=backup operator=run operand=\"/srv/data of customer %d\" pid=%d", i%200, i%30000)
		const limits = "if_elapsed=60 expire_after=7200"
		b = fmt.Appendf(b, "time=%s event=acquire %s token=%032x %s\n", now, atom, i, limits)
		b = fmt.Appendf(b, "time=%s event=deny %s owner=%d owner_token=%032x verdict=busy %s age=7 reason=\"busy: running for 7s, ExpireAfter is 2h\"\n", now, atom, i%30000, i, limits)
		b = fmt.Appendf(b, "time=%s event=release %s token=%032x duration=%d.%06d status=0\n", now, atom, i, i%900, i%1000000)
		b = fmt.Appendf(b, "time=%s event=deny %s verdict=too-soon %s age=2 reason=\"too soon: completed 2s ago, IfElapsed is 1m; due in 58s\"\n", now, atom, limits)
		if len(b) > 1<<20 || i == 1_000_000/4-1 {
			if _, err := file.Write(b); err != nil {
				t.Fatal(err)
			}
			b = b[:0]
		}
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestStatusShowsWhatWasLearned(t *testing.T) {
	p := newPlace(t)
	p.ok(t, "run", "--operand", "fixed", "--", "true")
	if table := p.ok(t, "status"); strings.Contains(table, "LEARNED") {
		t.Error("a column for nothing")
	}
	p.ok(t, "run", "--operand", "learner", "--expire-after", "auto", "--", "true")
	has(t, p.ok(t, "status"), "LEARNED")
	has(t, p.ok(t, "status", "--json"), `"learned":{"if_elapsed_seconds":`)
}
