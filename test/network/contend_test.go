//go:build soak

package network

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"adlock/lib/process"
	"adlock/test/support/helper"
	"adlock/test/support/need"
)

// arena lets contenders compete for three atoms. Events are written as in test/protocol, and judged
// there.
type arena struct {
	dir     string
	hosts   []*host
	elapsed []string // IfElapsed in seconds
	kills   int      // how many locksmiths of a hundred are killed
	names   atomic.Int64
	round   int64    // a part of the atoms' names: each round has its own atoms
	tally   sync.Map // verdict: *atomic.Int64
}

var lastRound atomic.Int64

func newArena(t testing.TB, hosts ...*host) *arena {
	return &arena{dir: t.TempDir(), hosts: hosts, elapsed: []string{"0", "1"}, round: lastRound.Add(1)}
}

func (a *arena) note(t testing.TB, kind, attempt string, words ...string) {
	file, err := os.OpenFile(a.dir+"/events", os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		t.Error(err)
		return
	}
	defer file.Close()
	clock := fmt.Sprintf("%.6f", process.Boottime().Seconds())
	if _, err := file.WriteString(strings.Join(append([]string{kind, attempt, clock}, words...), " ") + "\n"); err != nil {
		t.Error(err)
	}
}

// job records its beginning and end, and whether another job of its atom lives: meanwhile it holds
// flock(2) on a file of the atom.
const job = `note() { read -r up _ </proc/uptime; echo "$1 $id $up" >>"$dir/events"; }
note in
{
	flock -n 9 || note clash
	sleep "$work"
	note out
} 9>>"$dir/occupied.$atom"`

// contend is one attempt, by a contender of its own.
func (a *arena) contend(t testing.TB, options ...string) {
	contender := fmt.Sprintf("run%d", a.names.Add(1))
	id, atom := contender+".1", fmt.Sprint("atom", rand.N(3), "of", a.round)
	h := a.hosts[rand.N(len(a.hosts))]
	elapsed := a.elapsed[rand.N(len(a.elapsed))]
	args := append(h.inside, h.bin, "run", "--verbose", "--expire-after=1h", "--if-elapsed="+elapsed+"s", "--operand="+atom)
	args = append(append(args, options...), "--", "sh", "-c", job)
	command := exec.Command(args[0], args[1:]...)
	command.Env = append(append(need.Clean(), h.env...), "id="+id, "atom="+atom, "dir="+a.dir, fmt.Sprintf("work=%.3f", rand.Float64()/10))
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	var said bytes.Buffer
	command.Stderr = &said
	a.note(t, "call", id, atom, elapsed)
	if err := command.Start(); err != nil {
		t.Error(err)
		return
	}
	if rand.N(100) < a.kills {
		time.AfterFunc(rand.N(200*time.Millisecond), func() { _ = command.Process.Kill() }) // it may have ended
	}
	err := command.Wait()
	if command.ProcessState.ExitCode() < 0 {
		a.count("killed")
		helper.Within(t, time.Minute, "nothing is left of "+contender, func() bool { return len(helper.With("id="+id)) == 0 })
		a.note(t, "gone", contender, "killed")
		return
	}
	verdict := "error"
	switch status := command.ProcessState.ExitCode(); {
	case err == nil && said.Len() == 0:
		verdict = "released"
	case status == 75 && strings.Contains(said.String(), "too soon"):
		verdict = "too-soon"
	case status == 75 && strings.Contains(said.String(), "busy"):
		verdict = "busy"
	}
	a.count(verdict)
	if verdict == "error" {
		t.Logf("%s: %v: %s", id, err, said.String())
		a.note(t, "gone", contender, "ended")
		return
	}
	a.note(t, "end", id, verdict)
}

func (a *arena) count(verdict string) {
	n, _ := a.tally.LoadOrStore(verdict, new(atomic.Int64))
	n.(*atomic.Int64).Add(1)
}

func (a *arena) counted(verdict string) int64 {
	n, found := a.tally.Load(verdict)
	if !found {
		return 0
	}
	return n.(*atomic.Int64).Load()
}

func (a *arena) String() string {
	var parts []string
	a.tally.Range(func(verdict, n any) bool {
		parts = append(parts, fmt.Sprint(n.(*atomic.Int64).Load(), " ", verdict))
		return true
	})
	return strings.Join(parts, ", ")
}

// fight lets that many contenders make their attempts, atOnce at a time, during the trouble. Every
// second contender waits, the others do not.
func (a *arena) fight(t testing.TB, contenders, atOnce int, trouble func(done <-chan struct{})) {
	done := make(chan struct{})
	var bystander, all sync.WaitGroup
	if trouble != nil {
		bystander.Go(func() { trouble(done) })
	}
	turns := make(chan int)
	for range atOnce {
		all.Go(func() {
			for n := range turns {
				if n%2 == 0 {
					a.contend(t, "--wait=30s")
				} else {
					a.contend(t)
				}
			}
		})
	}
	for n := range contenders {
		turns <- n
	}
	close(turns)
	all.Wait()
	close(done)
	bystander.Wait()
}

// judge lets test/protocol judge the events.
func (a *arena) judge(t testing.TB) {
	t.Helper()
	command := exec.Command("go", "test", "-count=1", "-run=^TestTheHistoryOfAnotherTestBreaksNoPromise$", "./test/protocol")
	command.Dir = helper.Root()
	command.Env = append(os.Environ(), "ADLOCK_HISTORY="+filepath.Join(a.dir, "events"), "CGO_ENABLED=0")
	if output, err := command.CombinedOutput(); err != nil {
		text, _ := os.ReadFile(a.dir + "/events")
		t.Errorf("%v\n%s%s", err, output, text)
	}
}

const contenders = 200

// rounds plays one round, or as many as fit in ADLOCK_SOAK.
func rounds(t *testing.T, play func()) {
	t.Helper()
	var soak time.Duration
	if text := os.Getenv("ADLOCK_SOAK"); text != "" {
		var err error
		if soak, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	for began := time.Now(); ; {
		play()
		if t.Failed() || time.Since(began) >= soak {
			return
		}
	}
}

func TestTwoHundredContendersOnAFailingClusterNeverOverlap(t *testing.T) {
	need.Tools(t, "flock")
	nodes := startEtcd(t, 3)
	s := url(nodes...)
	hosts := []*host{newHost(t, s).brief(), newHost(t, s).brief(), newHost(t, s).brief()}
	rounds(t, func() { fightInTrouble(t, newArena(t, hosts...), nodes) })
}

func fightInTrouble(t *testing.T, a *arena, nodes []*node) {
	t.Helper()
	a.kills = 5
	a.fight(t, contenders, 24, func(done <-chan struct{}) {
		for round := 0; ; round++ {
			select {
			case <-done:
				return
			case <-time.After(time.Second):
			}
			m := nodes[round%len(nodes)]
			for _, candidate := range nodes {
				if round == 0 && candidate.leads() {
					m = candidate
				}
			}
			if round%2 == 0 { // killed and started again
				m.kill()
				time.Sleep(2 * time.Second)
				m.start(t)
			} else { // stopped and continued
				m.signal(t, syscall.SIGSTOP)
				time.Sleep(2 * time.Second)
				m.signal(t, syscall.SIGCONT)
			}
			time.Sleep(2 * time.Second)
		}
	})
	t.Logf("a cluster in trouble: %v", a)
	if a.counted("released") == 0 || a.counted("error") > contenders/4 {
		t.Errorf("too little came of it: %v", a)
	}
	a.judge(t)
}

func TestContendersOnFTPNeverOverlap(t *testing.T) {
	need.Tools(t, "flock")
	f := startFTP(t, "")
	hosts := []*host{f.host(t).brief(), f.host(t).brief(), f.host(t).brief()}
	rounds(t, func() {
		a := newArena(t, hosts...)
		a.elapsed = []string{"0"} // an FTP server tells the time to the second only
		a.fight(t, contenders/4, 12, nil)
		t.Logf("FTP: %v", a)
		if a.counted("released") == 0 || a.counted("error") > 0 {
			t.Errorf("%v", a)
		}
		a.judge(t)
	})
}
