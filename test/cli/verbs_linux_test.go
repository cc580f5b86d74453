package cli

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"adlock/test/support/helper"
	"adlock/test/support/need"
	"adlock/test/support/terminal"
)

func TestStatAgePrintsWholeSecondsPerFile(t *testing.T) {
	s := newStage(t)
	s.in("f", "")
	s.in("g", "")
	for file, at := range map[string]time.Time{"f": time.Unix(1000, 0), "g": time.Unix(2000, 5e8)} {
		must(t, os.Chtimes(s.in(file), at, at))
	}
	for now, want := range map[string]string{"2100": "1100\n99\n", "2000": "1000\n-1\n", "2000.5": "1000\n0\n"} {
		if r := s.want(0, "stat-age", "--now", now, "f", "g"); r.Out != want {
			t.Errorf("--now %s prints %q, want %q", now, r.Out, want)
		}
	}
	s.want(0, "stat-age", "--now", "4000", "--at-least", "30m", "f", "g")
	s.want(1, "stat-age", "--now", "4000", "--at-least", "40m", "f", "g")
	s.want(1, "stat-age", "--at-least", "never", "f")
	if r := s.adlock("stat-age", "--now", "2000", "none", "f"); r.Status != 69 || r.Out != "1000\n" || !oneLine(r.Err) {
		t.Errorf("%+v", r)
	}
}

// family starts a shell with a child, and returns their pids.
func family(t *testing.T) (parent *helper.Process, child int) {
	t.Helper()
	parent = helper.Command{Args: []string{"sh", "-c", "trap '' INT; sleep 600; sleep 601"}}.Start(t)
	return parent, childOf(t, parent.PID, "sleep")
}

func TestKillCarefullyEndsAProcessWithItsChildren(t *testing.T) {
	s := newStage(t)
	parent, child := family(t)
	s.refused(64, `"12x"`, "kill-carefully", itoa(parent.PID), "12x") // one mistyped pid ends no other process
	if r := s.want(0, "kill-carefully", "--dry-run", itoa(parent.PID)); !strings.Contains(r.Out, itoa(child)) || !helper.Alive(child) {
		t.Errorf("--dry-run: %+v", r)
	}
	s.want(0, "kill-carefully", "--pause", "1s", itoa(parent.PID))
	if helper.Alive(child) || helper.Alive(parent.PID) {
		t.Error("a process is still alive")
	}
}

func TestKillCarefullyRefusesItsAncestorsAndInit(t *testing.T) {
	s := newStage(t)
	if r := s.adlock("kill-carefully", "1"); r.Status != 77 || !oneLine(r.Err) || strings.Count(r.Err, "process 1") != 1 {
		t.Errorf("%+v", r)
	}
	s.refused(77, "process 1: is this process or one of its ancestors", "kill-carefully", "--dry-run", "1")
	c := s.command()
	c.Args = []string{"sh", "-c", `"$0" kill-carefully --pause 1s $$; echo "status $?"`, c.Args[0]}
	if r := c.Run(t); r.Out != "status 77\n" || !oneLine(r.Err) {
		t.Errorf("%+v", r)
	}
}

func TestKillCarefullySucceedsIfThereIsNothingToEnd(t *testing.T) {
	s := newStage(t)
	gone := helper.Command{Args: []string{"true"}}.Start(t)
	gone.Wait(t)
	s.want(0, "kill-carefully", itoa(gone.PID)) // to a script a process that is gone is a success
	matches(s, s.typed(200, "kill-carefully", itoa(gone.PID)), "^adlock: process "+itoa(gone.PID)+": no such process\r\n$")
	for _, words := range [][]string{{"--lock"}, {"--lock", "--dry-run"}} {
		for _, lock := range []string{s.lockOf("a"), "nowhere/lock.job.dax.run.a"} {
			s.refused(0, "/lock.job.dax.run.a: no such lock: there is no owner to end", append(append([]string{"kill-carefully"}, words...), lock)...)
		}
	}
	s.wantFiles()
}

func TestClearRefusesALiveOwnersLock(t *testing.T) {
	s := newStage(t)
	holder := s.hold("a")
	s.refused(77, "lives (process "+itoa(holder.PID)+"); to end it: adlock stop '"+s.lockOf("a")+"'", "clear", "job.dax.run.a")
	s.refused(64, "/nowhere: no such directory", "ADLOCK_DIR=/nowhere", "clear", "job.dax.run.a")
	holder.Lives(t)
}

func TestClearAcceptsTheNameThatStatusShows(t *testing.T) {
	s := newStage(t)
	s.plant("one", "1\nprogram=") // damaged, as a loss of power leaves it
	s.plant("another", "1\nprogram=")
	s.want(0, jobNamed("idle", "true")...)
	s.refused(64, `"idle" is not locked: nothing to clear`, "clear", "idle")
	s.refused(64, "type the whole name: job run another, job run idle, job run one", "clear", "job run")
	s.refused(64, "and only one is taken", "clear", "one", "another")
	s.want(0, "clear", s.lockOf("one"), "ADLOCK_DIR=/nonexistent")
	s.want(0, "clear", "job", "run", "another") // a name without quotes
	if s.held("one") || s.held("another") {
		t.Error("they are there")
	}
}

func TestOutputThatCannotBeWrittenIsAnError(t *testing.T) {
	s := newStage(t)
	for _, words := range []string{"", "--version", "run --help", "clear --help", "status --help"} {
		c := s.command(strings.Fields(words)...)
		c.Args = append([]string{"sh", "-c", `"$0" "$@" >/dev/full`}, c.Args...)
		c.Run(t).Refused(t, 74, "adlock: ")
	}
	for _, words := range []string{"config", "config --json"} {
		c := s.command(append(strings.Fields(words), "ADLOCK_EXPIRE_AFTER=x")...) // a mistake, which is reported first
		c.Args = append([]string{"sh", "-c", `"$0" "$@" >/dev/full`}, c.Args...)
		c.Run(t).Is(t, 74, "", "adlock: ADLOCK_EXPIRE_AFTER: …adlock: standard output: …")
	}
}

func TestNoJobRunsIfHOMEAndADLOCK_DIRAreNotSet(t *testing.T) {
	s := newStage(t)
	for _, words := range [][]string{{"run", "true"}, {"run", "--dry-run", "true"}} {
		c := s.command(words...)
		c.Args = append([]string{"env", "-u", "HOME", "-u", "ADLOCK_DIR"}, c.Args...)
		c = s.unprivileged(c) // root has a directory without HOME
		c.Run(t).Refused(t, 69, "ADLOCK_DIR")
	}
}

func TestNoJobRunsIfProcIsNotMounted(t *testing.T) {
	need.Root(t) // to mount file systems
	need.Namespaces(t, "--mount")
	s := newStage(t)
	var c helper.Command
	for _, words := range [][]string{s.take("a"), {"run", "true"}} {
		c = s.command(words...)
		c.Args = append([]string{"unshare", "--mount", "sh", "-c", `mount -t tmpfs none /proc && exec "$0" "$@"`}, c.Args...)
		c.Run(t).Refused(t, 69, "/proc: is not mounted")
	}
	p := terminal.Start(t, 200, c)
	if shown := p.AllShown(t); !strings.Contains(shown, ": not run: /proc/self/exe: no such file or directory") || p.ProcessState.ExitCode() != 71 {
		t.Errorf("%v: %s", p.ProcessState, shown)
	}
}

// Package lean changes how the runtime works, and must do so before other packages use the stack and the heap.
func TestPackageLeanIsInitialisedBeforePackageErrors(t *testing.T) {
	t.Parallel()
	r := helper.Command{Args: []string{helper.Binary(t), "--version"}, Env: []string{"GODEBUG=inittrace=1"}}.Run(t)
	lean, next := strings.Index(r.Err, "\ninit adlock/lib/lean "), strings.Index(r.Err, "\ninit errors ")
	if lean < 0 || next < lean {
		t.Errorf("at %d, and the next at %d: %+v", lean, next, r)
	}
}

// The program is built as the Makefile says, but in another place.
func TestTheProgramIsStaticAndBelow4MiB(t *testing.T) {
	need.Tools(t, "make", "go")
	path := t.TempDir() + "/adlock"
	make := exec.Command("make", "--no-print-directory", "-n", "build/adlock")
	make.Dir = helper.Root()
	recipe, err := make.Output()
	if err != nil || strings.Count(string(recipe), "-o build/adlock") != 1 {
		t.Fatalf("make -n build/adlock: %v\n%s", err, recipe)
	}
	build := exec.Command("sh", "-c", strings.Replace(string(recipe), "-o build/adlock", "-o "+path, 1))
	build.Dir, build.Env = helper.Root(), append(os.Environ(), "CGO_ENABLED=0")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	info := get(os.Stat(path))(t)
	if info.Size() > 363<<20/100 { // package fmt alone would exceed it
		t.Errorf("%d bytes", info.Size())
	}
	program := get(elf.Open(path))(t)
	defer program.Close()
	for _, part := range program.Progs {
		if part.Type == elf.PT_INTERP || part.Type == elf.PT_DYNAMIC {
			t.Errorf("not static: %v", part.Type)
		}
	}
}

// A wrong SHELL line runs no job, so the help gives the path.
func TestTheHelpGivesTheInstalledPathOfTheCrontabsShell(t *testing.T) {
	s := newStage(t)
	program, shell := s.in("usr/bin/adlock"), s.in("usr/lib/adlock/shell")
	for to, from := range map[string]string{program: helper.Binary(t), shell: filepath.Join(helper.Root(), "sh/shell")} {
		must(t, os.MkdirAll(filepath.Dir(to), 0o755))
		must(t, need.WriteProgram(to, []byte(s.read(from)), 0o755))
	}
	c := s.command("help", "shell")
	c.Args[0] = program
	c.Run(t).Is(t, 0, "…\n  SHELL="+shell+" …", "…")
	s.want(0, "help", "shell").Is(t, 0, "…\n  SHELL=PATH …", "")
}

func TestReportsReadTheLocalRunlogEvenWithAStore(t *testing.T) {
	s := newStage(t)
	s.want(0, jobNamed("here", "true")...)
	for _, verb := range []string{"log", "report", "timeline", "metrics"} {
		r := s.adlock("ADLOCK_STORE=etcd://127.0.0.1:1/p", verb)
		if r.Status != 0 || !strings.Contains(r.Out, "here") || strings.Count(r.Err, "adlock: ") > 1 {
			t.Errorf("%s: %+v", verb, r)
		}
	}
}
