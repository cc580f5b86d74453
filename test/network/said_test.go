//go:build soak

package network

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"adlock/test/support/helper"
)

// scripted is a script that has taken the atom.
type scripted struct {
	*helper.Process
	pid    int
	errors string // the file with all its standard error
	ended  string // a file that exists when the reader of the pipe has reached its end
}

// startScript starts a script that takes the atom and then runs rest. Its standard error is a
// pipe, as under cron.
func (h *host) startScript(t testing.TB, rest string) scripted {
	t.Helper()
	dir := t.TempDir()
	s := scripted{errors: dir + "/errors", ended: dir + "/ended"}
	s.Process = helper.Command{
		Args: []string{"sh", "-c", `sh -c "$script" 2>&1 | cat >` + s.errors + `; touch ` + s.ended},
		Env: append(h.env, "ADLOCK_BIN="+h.bin, "library="+filepath.Join(helper.Root(), "sh/adlock.sh"),
			`script=. "$library"; adlock_get o x 0 || exit; echo $$ >`+dir+"/pid; mv "+dir+"/pid "+dir+"/has; "+rest),
	}.Start(t)
	helper.Eventually(t, "the script has the atom", func() bool {
		if exists(s.ended) {
			t.Fatalf("it ended: %s", s.said(t))
		}
		return exists(dir + "/has")
	})
	text, err := os.ReadFile(dir + "/has")
	if err != nil {
		t.Fatal(err)
	}
	s.pid = int(number(t, string(text)))
	return s
}

// said waits for the end of the pipe, and returns what the script and other processes wrote.
func (s scripted) said(t testing.TB) string {
	t.Helper()
	helper.Eventually(t, "no process keeps its standard error open", func() bool { return exists(s.ended) })
	text, err := os.ReadFile(s.errors)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// holderOf is the process that holds the atom for the script.
func holderOf(t testing.TB, script scripted) int {
	t.Helper()
	want := "--owner\x00" + itoa(script.pid) + "\x00"
	processes, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range processes {
		line, _ := os.ReadFile(file) // it may have gone
		words := strings.SplitN(string(line), "\x00", 3)
		if len(words) == 3 && words[1] == "holder" && strings.HasPrefix(words[2], want) {
			return int(number(t, filepath.Base(filepath.Dir(file))))
		}
	}
	t.Fatal("the script has no holder")
	return 0
}

// saysOnce fails the test unless the standard error of an ended job has one line with the word, the
// runlog one event, and the hook one.
func saysOnce(t *testing.T, h *host, said, hookFile, word string) {
	t.Helper()
	var lines []string
	for line := range strings.Lines(said) {
		if strings.HasPrefix(line, "adlock: ") {
			lines = append(lines, line)
		}
	}
	if len(lines) != 1 || !strings.Contains(lines[0], word) {
		t.Errorf("it said %q, want one line with %q", lines, word)
	}
	if hookFile == "" {
		return
	}
	helper.Eventually(t, "the record has it", func() bool { return strings.Count(h.runlog(), "event=lost") == 1 })
	if events := told(t, hookFile, 1); len(events) != 1 || !strings.HasPrefix(events[0], "lost ") || !strings.Contains(events[0], word) {
		t.Errorf("the hook was told %q, want %q", events, word)
	}
}

func TestAScriptWhoseHolderIsKilledSaysWhyItIsEnded(t *testing.T) {
	h := newHost(t, url(startEtcd(t, 1)...)).brief()
	file := h.notes(t)
	script := h.startScript(t, "trap '' INT TERM; while :; do sleep 0.1; done")
	if err := syscall.Kill(holderOf(t, script), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	saysOnce(t, h, script.said(t), file, "the locksmith was killed")
}

func TestAJobWhoseLocksmithIsKilledSaysWhyItIsEnded(t *testing.T) {
	h := newHost(t, url(startEtcd(t, 1)...)).brief()
	file := h.notes(t)
	errors := t.TempDir() + "/errors"
	owner := h.start(t, "exec 2>>"+errors+"; trap '' INT TERM; while :; do sleep 0.1; done")
	if err := os.WriteFile(errors, []byte("what was there before\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	owner.Kill(t)
	var text []byte
	helper.Within(t, helper.Patience, "the job has said something", func() bool {
		text, _ = os.ReadFile(errors)
		return strings.Contains(string(text), "adlock: ")
	})
	if !strings.HasPrefix(string(text), "what was there before\n") {
		t.Errorf("the file was written over: %q", text)
	}
	saysOnce(t, h, string(text), file, "the locksmith was killed")
}

func TestAScriptThatIsCutOffSaysWhyItIsEnded(t *testing.T) {
	nodes := startEtcd(t, 1)
	cable := newRelay(t, nodes[0].client)
	h := newHost(t, "etcd://"+cable.address()+"/adlock").brief()
	file := h.notes(t)
	script := h.startScript(t, "while :; do sleep 0.1; done")
	cable.cut()
	saysOnce(t, h, script.said(t), file, "no answer")
}

func TestAScriptWhoseHolderIsTerminatedReportsIt(t *testing.T) {
	h := newHost(t, url(startEtcd(t, 1)...)).brief()
	script := h.startScript(t, "while :; do sleep 0.1; done")
	if err := syscall.Kill(holderOf(t, script), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	saysOnce(t, h, script.said(t), "", "o x: ended by force: its adlock-locksmith was told to end")
}

func TestAScriptThatANewcomerElsewhereEndsSaysSo(t *testing.T) {
	s := url(startEtcd(t, 1)...)
	a, b := newHost(t, s).brief(), newHost(t, s).brief()
	script := a.startScript(t, "while :; do sleep 0.1; done")
	helper.Eventually(t, "it has expired", func() bool {
		return strings.HasPrefix(b.run(t, "", "--expire-after=2s", "--dry-run").Out, "expired: ")
	})
	b.run(t, "echo ran", "--expire-after=2s").Ran(t)
	saysOnce(t, a, script.said(t), "", "o x: ended by force, as a newcomer asked for it")
}

// A reader of a script's output does not wait for the holder of its lock.
func TestOnlyTheScriptKeepsItsStandardErrorOpen(t *testing.T) {
	h := newHost(t, url(startEtcd(t, 1)...)).brief()
	script := h.startScript(t, "while :; do sleep 0.1; done")
	holder := holderOf(t, script)
	if err := syscall.Kill(holder, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(holder, syscall.SIGCONT) })
	if err := syscall.Kill(script.pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if said := script.said(t); strings.Contains(said, "adlock: ") {
		t.Errorf("it said %q", said)
	}
}

// Several newcomers may ask an owner to make way. One of them becomes the next owner, and only it
// may report the ending.
func TestOneOfTheNewcomersThatEndAnOwnerSaysSo(t *testing.T) {
	onEachStore(t, func(t *testing.T, a, b *host) {
		a.env = append(a.env, "ADLOCK_PAUSE=5s") // between INT and TERM, so that the others ask too
		owner := a.start(t, "trap '' INT; "+ready+"sleep 60; sleep 60")
		helper.Eventually(t, "it has expired", func() bool {
			return strings.HasPrefix(b.run(t, "", "--expire-after=1s", "--dry-run").Out, "expired: ")
		})
		var newcomers []*helper.Process
		for range 3 {
			newcomers = append(newcomers, b.command("true", "--expire-after=1s", "--wait=60s").Start(t))
		}
		said := ""
		for _, p := range newcomers {
			if status := p.Wait(t); status != 0 {
				t.Errorf("status %d: %s", status, p.Output())
			}
			said += p.Output()
		}
		owner.Wait(t)
		if strings.Count(said, "ended process "+itoa(owner.PID)+" ") != 1 || strings.Count(said, "\n") != 1 {
			t.Errorf("said %q", said)
		}
		if log := b.runlog(); strings.Count(log, "event=takeover ") != 1 || strings.Count(log, "event=expire ") < 2 {
			t.Errorf("the runlog has %s", log)
		}
	})
}

func TestOneOfTheReadersThatEndAWriterSaysSo(t *testing.T) {
	s := url(startEtcd(t, 1)...)
	a, b := newHost(t, s).brief(), newHost(t, s).brief()
	for range 3 {
		owner := a.start(t, "trap '' INT; sleep 60; sleep 60")
		var readers []*helper.Process
		for range 4 {
			readers = append(readers, b.command("sleep 1", "--shared", "--expire-after=1s", "--wait=60s").Start(t))
		}
		said := ""
		for _, p := range readers {
			if status := p.Wait(t); status != 0 {
				t.Errorf("status %d: %s", status, p.Output())
			}
			said += p.Output()
		}
		owner.Wait(t)
		if strings.Count(said, "ended process "+itoa(owner.PID)+" ") != 1 || strings.Count(said, "\n") != 1 {
			t.Errorf("said %q", said)
		}
	}
	if log := b.runlog(); strings.Count(log, "event=takeover ") != 3 {
		t.Errorf("the runlog has %s", log)
	}
}

// The runlog has one end for each run: of several newcomers that find the owner dead, one stamps
// for it and reports.
func TestOneOfTheNewcomersThatFindAnOwnerDeadSaysSo(t *testing.T) {
	onEachStore(t, func(t *testing.T, a, b *host) {
		for round := range 3 {
			owner := a.start(t, "sleep 60")
			owner.Kill(t)
			var newcomers []*helper.Process
			for range 3 {
				newcomers = append(newcomers, b.command("true", "--wait=60s").Start(t))
			}
			for _, p := range newcomers {
				if status := p.Wait(t); status != 0 || p.Output() != "" {
					t.Errorf("status %d: %s", status, p.Output())
				}
			}
			if log := b.runlog(); strings.Count(log, "event=reclaim ") != round+1 {
				t.Errorf("round %d: the runlog has %s", round, log)
			}
		}
	})
}
