package cli

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"adlock/test/support/check"
	"adlock/test/support/helper"
	"adlock/test/support/need"
)

// program is a shell script that speaks with hold as a program in any language may: descriptor 8
// leads to hold, 9 comes from it. It leads a session, as a crontab's line does.
const program = `cd "$dir"; mkfifo in out
"$adlock" hold --program=p --host=dax --operator=o $options x <in >out 8>&- 9<&- & hold=$!
exec 8>in 9<out; rm in out; echo $hold >hold
answer() { IFS= read -r line <&9; echo "$line"; }
ended() { while IFS= read -r line <&9; do echo "$line"; done; wait $hold; echo "status $?"; }
await() { n=0; until [ -e "$1" ]; do n=$((n + 1)); [ $n -lt 1200 ] || exit 99; sleep 0.05; done; }
`

// asker is such a program, and the atom it asks for.
type asker struct {
	*testing.T
	*helper.Atom
	dir string
}

func newAsker(t *testing.T) *asker {
	t.Helper()
	t.Parallel()
	return another(t)
}

func another(t *testing.T) *asker {
	t.Helper()
	return &asker{t, helper.NewAtom(t), helper.Dir(t)}
}

func (p *asker) command(options, script string) helper.Command {
	return helper.Command{Args: []string{"sh", "-c", program + script}, Env: append(p.Env(), "dir="+p.dir, "options="+options)}
}

// says runs the program to its end, and compares its output with want; TOKEN stands for any token.
func (p *asker) says(want, options, script string) {
	p.Helper()
	r := p.command(options, script).Run(p)
	lines := strings.SplitAfter(r.Out, "\n")
	for i, line := range lines {
		if words := strings.Fields(line); len(words) == 2 && words[0] == "acquired" && len(words[1]) == 32 {
			lines[i] = "acquired TOKEN\n"
		}
	}
	if said := strings.Join(lines, ""); said != want || r.Err != "" {
		p.Errorf("it said %q, want %q; errors %q", said, want, r.Err)
	}
}

// starts starts the program, and waits until the file is in its directory.
func (p *asker) starts(options, script, file string) *helper.Process {
	p.Helper()
	process := p.command(options, script).Start(p)
	helper.Eventually(p, file+" is there", func() bool {
		process.Lives(p)
		return exists(filepath.Join(p.dir, file))
	})
	return process
}

// holds is a script that holds the atom, and touches `held`.
const holds = "answer >answered; : >held; "

// hold returns the pid of adlock hold.
func (p *asker) hold() int { return p.pidIn("hold") }

// pidIn returns the pid that the program has written into the file.
func (p *asker) pidIn(file string) (pid int) {
	p.Helper()
	helper.Eventually(p, "there is a pid in "+file, func() bool {
		text, _ := os.ReadFile(filepath.Join(p.dir, file))
		pid, _ = strconv.Atoi(strings.TrimSuffix(string(text), "\n"))
		return strings.HasSuffix(string(text), "\n")
	})
	return pid
}

func (p *asker) gone(pid int) {
	p.Helper()
	helper.Eventually(p, "hold has ended", func() bool { return !helper.Alive(pid) })
}

func (p *asker) waits() {
	p.Helper()
	helper.Eventually(p, "it waits", func() bool { return strings.Contains(p.Runlog(), "event=wait") })
}

func (p *asker) lets(file string) {
	p.Helper()
	must(p, os.WriteFile(filepath.Join(p.dir, file), nil, 0o600))
}

func TestAProgramHoldsAnAtomUntilItSaysRelease(t *testing.T) {
	p := newAsker(t)
	p.says("acquired TOKEN\nowner\nbusy 75\n1\nreleased\nstatus 0\nran\n", "", `
		answer; read -r pid <"`+p.Lock()+`"; [ "$pid" != $$ ] || echo owner
		$run -- true 2>told; echo busy $?; grep -c "within the job" told
		echo release 3 >&8; ended; $run -- echo ran`)
	wantWords(t, p.Runlog(), "event=release", "status=3")
}

// hold is a part of the job: if the job hangs, what hold reads would count as the job's work (lib/idle).
func TestHoldReadsNothingWhileTheProgramHasTheAtom(t *testing.T) {
	p := newAsker(t)
	p.starts("", holds+"sleep 600", "held")
	read := func() string {
		text := get(os.ReadFile("/proc/" + itoa(p.hold()) + "/io"))(t)
		count, _, _ := strings.Cut(string(text), "\n")
		return count
	}
	helper.Eventually(t, "it reads nothing for two seconds and a half", func() bool {
		before := read()
		time.Sleep(2500 * time.Millisecond)
		return read() == before
	})
}

func TestAReleaseLineWithoutANewlineReleasesTheAtom(t *testing.T) {
	p := newAsker(t)
	p.says("acquired TOKEN\nreleased\nstatus 0\n", "", `answer; printf 'release 4' >&8; exec 8>&-; ended`)
	if log := p.Runlog(); exists(p.Lock()) || !strings.Contains(log, "status=4") { // the last line needs no newline
		t.Errorf("the runlog: %s", log)
	}
}

func TestADeniedProgramReadsTheReason(t *testing.T) {
	p := newAsker(t)
	p.Newcomer(t).Ran(t)
	denied := func(options, says string) {
		t.Helper()
		if r := p.command(options, "ended").Run(t); !strings.HasPrefix(r.Out, says) ||
			!strings.HasSuffix(r.Out, "\nstatus 75\n") || r.Err != "" {
			t.Errorf("%s: %+v", options, r)
		}
	}
	denied("--if-elapsed=1h", "too-soon completed ")
	owner := p.Owner(t, "sleep 1000")
	denied("", "busy running for ")
	if r := p.command("--verbose", "ended").Run(t); strings.Count(r.Err, "\n") != 1 || !strings.Contains(r.Err, "adlock: o x: busy") {
		t.Errorf("verbose: %+v", r)
	}
	owner.Kill(t)
	helper.KillSession(owner.PID)
	p.says("acquired TOKEN\nreleased\nstatus 0\n", "--slots=1", `echo release >&8; ended`)
	p.starts("--slots=1 --operator=other", holds+"await go", "held")
	denied("--slots=1", "full ")
}

func TestHoldKeepsItsAtomAfterAnUnknownLine(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 10000)
	for _, line := range []string{"rlease", "release now", "release 256", "release -1", "release 1 2", "", long} {
		p := another(t)
		r := p.command("", `answer; echo '`+line+`' >&8; answer; $run -- true; echo busy $?; echo release >&8; ended`).Run(t)
		said := strings.SplitAfter(r.Out, "\n")
		if len(said) < 3 || !strings.HasPrefix(said[1], "error not understood: ") || strings.Join(said[2:], "") != "busy 75\nreleased\nstatus 0\n" {
			t.Errorf("%.20q: %.500s", line, r.Out)
		}
	}
}

// The program's death wakes a waiting newcomer too, which may be faster than hold.
func TestTheEndOfAProgramReleasesItsAtomSilently(t *testing.T) {
	t.Parallel()
	for _, last := range []string{"", "echo release >&8"} {
		p := another(t)
		for range 5 {
			owner := p.starts("", holds+`await go; rm held go; `+last, "held")
			hold := p.hold()
			waits := strings.Count(p.Runlog(), "event=wait")
			next := helper.Command{Args: []string{"sh", "-c", "$run --wait=1h -- echo ran"}, Env: p.Env()}.Start(t)
			helper.Eventually(t, "another waits", func() bool { return strings.Count(p.Runlog(), "event=wait") > waits })
			p.lets("go")
			owner.Wait(t)
			if status := next.Wait(t); status != 0 || next.Output() != "ran\n" || owner.Output() != "" {
				t.Errorf("%q: status %d, %q; the program said %q", last, status, next.Output(), owner.Output())
			}
			p.gone(hold)
		}
		if strings.Contains(p.Runlog(), "event=lost") {
			t.Errorf("the runlog: %s", p.Runlog())
		}
	}
}

// A live child has inherited the pipe, so hold reads no end of input.
func TestADeadProgramsAtomIsFreeThoughAChildKeepsThePipe(t *testing.T) {
	p := newAsker(t)
	mark := p.Mark(t)
	owner := p.starts("", holds+`env `+mark+` setsid sleep 1000 & await never`, "held")
	hold := p.hold()
	helper.Eventually(t, "the child has a session of its own", func() bool {
		child := helper.With(mark)
		return len(child) > 0 && len(helper.Session(child[0])) > 0
	})
	owner.Kill(t)
	helper.KillSession(owner.PID) // what it ran in its own group
	p.gone(hold)
	helper.Eventually(t, "the atom is free", func() bool { return !exists(p.Lock()) })
	if len(helper.With(mark)) == 0 {
		t.Error("the child was ended")
	}
}

// The subshell has executed no program, and is known by the image of its parent, which leads no group or session.
func TestASubshellOfADeadProgramHoldsItsAtom(t *testing.T) {
	p := newAsker(t)
	c := p.command("", holds+"(await never) & echo $! >left; echo $$ >pid; wait")
	c.Args = []string{"sh", "-c", `"$@"; : >"$dir/dead"; sleep 600`, "sh", "sh", "-c", c.Args[2]}
	c.Start(t)
	pid := p.pidIn("pid")
	must(t, syscall.Kill(pid, syscall.SIGKILL))
	helper.Eventually(t, "it is dead", func() bool { return exists(filepath.Join(p.dir, "dead")) })
	p.Newcomer(t, "--wait=2s").Denied(t)
	must(t, syscall.Kill(p.pidIn("left"), syscall.SIGKILL))
	p.Newcomer(t, "--wait=60s").Ran(t)
	p.gone(p.hold())
}

func TestAProgramKeepsItsAtomWhenHoldIsKilled(t *testing.T) {
	p := newAsker(t)
	owner := p.starts("", holds+`ended; : >ended; await go`, "held")
	must(t, syscall.Kill(p.hold(), syscall.SIGKILL))
	helper.Eventually(t, "the program learns of it", func() bool { return exists(filepath.Join(p.dir, "ended")) })
	p.Newcomer(t).Denied(t)
	owner.Kill(t)
	helper.KillSession(owner.PID)
	p.Newcomer(t).Ran(t)
}

func TestHoldSurvivesSignalsMeantForTheProgram(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		p := another(t)
		owner := p.starts("", `trap : `+strconv.Itoa(int(sig))+`; `+holds+`await go; echo release >&8; ended >ended; [ -s ended ]`, "held")
		hold := p.hold()
		must(t, syscall.Kill(-owner.PID, sig)) // as Ctrl-C at a terminal does
		must(t, syscall.Kill(hold, sig))
		p.Newcomer(t).Denied(t)
		p.lets("go")
		check.Equal(t, sig.String(), owner.Wait(t), 0)
		if text, _ := os.ReadFile(filepath.Join(p.dir, "ended")); string(text) != "released\nstatus 0\n" {
			t.Errorf("%v: %s", sig, text)
		}
	}
}

func TestAReleaseOrTheEndOfInputEndsTheWaitOfHold(t *testing.T) {
	t.Parallel()
	for _, word := range []string{"exec 8>&-", "echo release >&8"} {
		p := another(t)
		owner := p.Owner(t, "sleep 1000")
		waiting := p.starts("--wait=forever", `await go; `+word+`; ended`, "hold")
		p.waits()
		p.lets("go")
		waiting.Wait(t)
		if said := waiting.Output(); !strings.HasPrefix(said, "busy ") || !strings.HasSuffix(said, "\nstatus 75\n") {
			t.Errorf("%s: it said %q", word, said)
		}
		owner.Kill(t)
	}
}

func TestHoldStopsWaitingWhenItsProgramDies(t *testing.T) {
	p := newAsker(t)
	mark := p.Mark(t)
	p.Owner(t, "sleep 1000")
	waiting := p.starts("--wait=forever", `env `+mark+` setsid sleep 1000 & await never`, "hold")
	hold := p.hold()
	helper.Eventually(t, "it waits", func() bool { return strings.Contains(p.Runlog(), "event=wait") && len(helper.With(mark)) > 0 })
	waiting.Kill(t)
	p.gone(hold)
}

func TestRetryFailedCountsOnlyAReleaseWithoutAFailure(t *testing.T) {
	t.Parallel()
	for end, news := range map[string]string{"exec 8>&-": "fail", "echo release 1 >&8": "fail1", "echo release 0 >&8": "success0", "echo release >&8": "success"} {
		p := another(t)
		hook, told := filepath.Join(p.dir, "hook"), filepath.Join(p.dir, "told")
		must(t, os.WriteFile(hook, []byte("#!/bin/sh\necho $ADLOCK_EVENT$ADLOCK_STATUS >>"+told), 0o700))
		p.says("acquired TOKEN\nreleased\nstatus 0\n", "--retry-failed --hook-runs --hook="+hook, "answer; "+end+"; ended")
		info := get(os.Stat(p.Last()))(t)
		if stamped := info.ModTime().Unix() != 0; stamped != strings.HasPrefix(news, "success") {
			t.Errorf("%s: it counts: %v", end, stamped)
		}
		helper.Eventually(t, "the hook is told: "+news, func() bool {
			text, _ := os.ReadFile(told)
			return strings.Contains("\n"+string(text), "\n"+news+"\n")
		})
		if log := p.Runlog(); strings.Contains(log, "status=-1") != (news == "fail") {
			t.Errorf("%s: the runlog: %s", end, log)
		}
	}
}

func TestHoldReportsARemovedLockAsLost(t *testing.T) {
	p := newAsker(t)
	r := p.command("", `answer; rm "`+p.Lock()+`"; echo release >&8; ended`).Run(t)
	if _, said, _ := strings.Cut(r.Out, "\n"); !strings.HasPrefix(said, "lost ") || !strings.HasSuffix(said, "\nstatus 75\n") || strings.Count(r.Err, "\n") != 1 {
		t.Errorf("%+v", r)
	}
}

func TestHoldRefusesWrongArgumentsOwnersAndInputs(t *testing.T) {
	a := newAtom(t)
	for script, why := range map[string]string{ // /dev/null cannot hang up
		"$adlock hold </dev/null": "wants one NAME", "$adlock hold x --wait 1m </dev/null": "wants one NAME",
		"$adlock hold --slots 2 --operator o x </dev/null":          "--program",
		"$adlock hold --owner 1000000000 x </dev/null":              "is not an ancestor",
		"$adlock hold --owner 1 x </dev/null":                       "has not started this one",
		"exec $adlock hold --owner $$ x":                            "--owner: must be the asking program", // its pid was read after the fork, as from Perl's $$
		`mkfifo in; exec 7<>in; exec 6<in 7>&-; $adlock hold x <&6`: "standard input: has ended",
	} {
		a.Shell(t, `cd "$ADLOCK_DIR"; `+script).Refused(t, 64, why)
	}
	if left, _ := filepath.Glob(a.Dir + "/lock.*"); left != nil {
		t.Errorf("taken: %v", left)
	}
}

func TestHoldStartedByProcess1MustNameItsOwner(t *testing.T) {
	need.Root(t)
	need.Namespaces(t, "--pid", "--fork", "--mount-proc")
	p := newAsker(t)
	inside := func(options string) helper.Result {
		c := p.command(options, `ended`)
		c.Args = append([]string{"unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c"}, program+"echo release >&8; ended")
		return c.Run(t)
	}
	inside("").Is(t, 0, "status 64\n", "…--owner: must name…")
	inside("--owner=1").Is(t, 0, "…released\nstatus 0\n", "…")
}
