package network

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"adlock/test/support/helper"
	"adlock/test/support/must"
)

// asking talks to hold as a program in any language may, here in shell: it writes to hold by
// descriptor 8, reads from hold by 9, and appends the answers to the file `told`.
const asking = `cd "$dir"; mkfifo in out
"$adlock" hold --wait="${wait:-0}" x <in >out 8>&- 9<&- & hold=$!
exec 8>in 9<out; rm in out; echo $hold >hold
answer() { IFS= read -r line <&9; echo "$line" >>told; }
ended() { while IFS= read -r line <&9; do echo "$line" >>told; done; wait $hold; echo "status $?" >>told; }
await() { n=0; until [ -e "$1" ]; do n=$((n + 1)); [ $n -lt 1200 ] || exit 99; sleep 0.05; done; }
`

// asker is a program on one host that talks to hold.
type asker struct {
	testing.TB
	*host
	place   string
	program *helper.Process
}

func (h *host) asks(t testing.TB, script string, env ...string) *asker {
	t.Helper()
	a := &asker{TB: t, host: h, place: t.TempDir()}
	a.program = helper.Command{
		Args: []string{"sh", "-c", asking + script},
		Env:  append(append(h.env, "adlock="+h.bin, "dir="+a.place), env...),
	}.Start(t)
	return a
}

func (a *asker) told() []string {
	text, _ := os.ReadFile(filepath.Join(a.place, "told")) // "" before the first answer
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// holds waits until the program has the atom, and returns the fence.
func (a *asker) holds() int {
	a.Helper()
	helper.Eventually(a, "hold answers", func() bool { return a.told()[0] != "" })
	words := strings.Fields(a.told()[0])
	if len(words) != 3 || words[0] != "acquired" || len(words[1]) != 32 {
		a.Fatalf("told %q: %s", words, a.program.Output())
	}
	return must.Get(strconv.Atoi(words[2]))(a)
}

func (a *asker) hold() int {
	a.Helper()
	return int(number(a, string(must.Get(os.ReadFile(filepath.Join(a.place, "hold")))(a))))
}

// clean waits until no process or file of a holder is left on the host.
func (h *host) clean(t testing.TB) {
	t.Helper()
	helper.Eventually(t, "no holder is left", func() bool {
		left, _ := filepath.Glob(h.dir + "/smith.*")
		return left == nil
	})
}

func TestAProgramHoldsAnAtomOfAStoreUntilItReleasesOrEnds(t *testing.T) {
	t.Parallel()
	a, b := onEtcd(t)
	last := 0
	for script, want := range map[string]string{
		"echo release 3 >&8; ended": "released status 0", "exec 8>&-; ended": "released status 0",
		"echo release 3 >&8": "", "": "", // the program ends
	} {
		for range 2 {
			p := a.asks(t, "answer; await go; "+script)
			fence := p.holds()
			if fence <= last {
				t.Errorf("fence %d after %d", fence, last)
			}
			last = fence
			b.run(t, "echo ran").Denied(t)
			touch(t, p.place+"/go")
			p.program.Wait(t)
			if told := p.told(); strings.Join(told[1:], " ") != want || p.program.Output() != "" {
				t.Errorf("%q: told %q, said %q", script, told, p.program.Output())
			}
			b.run(t, "echo ran", "--wait=60s").Ran(t)
			helper.Eventually(t, "hold has ended", func() bool { return !helper.Alive(p.hold()) })
			a.clean(t)
		}
	}
	log := a.runlog()
	if strings.Count(log, "event=release") != 8 || strings.Count(log, "status=3")+strings.Count(log, "status=-1") != 8 || strings.Contains(log, "event=lost") {
		t.Errorf("the runlog: %s", log)
	}
}

func TestAProgramThatIsCutOffEndsBeforeAnotherJobBegins(t *testing.T) {
	t.Parallel()
	cable, a, b := onCable(t)
	file := t.TempDir() + "/beats"
	p := a.asks(t, `answer; (trap "" INT TERM; ended) & `+beats(file)) // until KILL, it writes down what hold reports
	p.holds()
	helper.Eventually(t, "it works", func() bool { return exists(file) })
	cable.Cut()
	b.follows(t, file)
	p.program.Is(t, 137, "…")
	if told := p.told(); len(told) < 2 || !strings.HasPrefix(told[1], "lost ") {
		t.Errorf("told %q", told)
	}
	// The holder reports the reason when the lease is over, a fifth of it after the job's end: Output waits
	// for a second of that. hold leaves the report to the holder.
	if said := p.program.Output(); strings.Contains(said, "being ended") || !strings.Contains(a.runlog(), "event=lost ") {
		t.Errorf("said %q, and the runlog has %s", said, a.runlog())
	}
}

func TestAProgramKeepsItsAtomOfAStoreWhenHoldIsKilled(t *testing.T) {
	t.Parallel()
	a, b := onEtcd(t)
	p := a.asks(t, "answer; ended; await never")
	p.holds()
	must.Do(t, syscall.Kill(p.hold(), syscall.SIGKILL))
	helper.Eventually(t, "the program finds hold gone", func() bool { return len(p.told()) == 2 })
	b.run(t, "echo ran").Denied(t)
	p.program.Kill(t)
	helper.KillSession(p.program.PID)
	b.run(t, "echo ran", "--wait=60s").Ran(t)
	a.clean(t)
}

func TestAProgramCanStopWaitingForAnAtomOfAStore(t *testing.T) {
	t.Parallel()
	a, b := onEtcd(t)
	owner := b.start(t, "sleep 1000")
	p := a.asks(t, "await go; exec 8>&-; ended", "wait=forever")
	helper.Eventually(t, "it waits", func() bool { return strings.Contains(b.verb(t, "status").Out, "\n  waiting for ") })
	touch(t, p.place+"/go")
	p.program.Wait(t)
	if told := p.told(); len(told) != 2 || !strings.HasPrefix(told[0], "busy ") || told[1] != "status 75" {
		t.Errorf("told %q", told)
	}
	stop(t, owner)
	b.run(t, "echo ran", "--wait=60s").Ran(t) // no place of the program is left in the queue
	a.clean(t)
}

func TestAProgramGetsTheErrorOfAnUnreachableStore(t *testing.T) {
	t.Parallel()
	p := newHost(t, "etcd://127.0.0.1:1/adlock").asks(t, "ended")
	p.program.Wait(t)
	if told := p.told(); len(told) != 2 || !strings.HasPrefix(told[0], "error etcd://127.0.0.1:1/adlock: ") || told[1] != "status 69" || strings.Count(p.program.Output(), "\n") != 1 {
		t.Errorf("told %q, said %q", told, p.program.Output())
	}
}
