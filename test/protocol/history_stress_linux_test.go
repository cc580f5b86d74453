package protocol

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adlock/test/support/helper"
	"adlock/test/support/need"
)

const (
	leastStress  = time.Minute
	wanted       = 10_000           // acquisitions
	mostStress   = 90 * time.Second // for a machine that is too busy for so many
	roundLength  = 10 * time.Second
	troubleEvery = 80 * time.Millisecond
	grace        = time.Second // for contenders that do not hang
)

// shells are those under which scripts contend. In a storm the first one, which starts fastest,
// runs two of three scripts.
var shells = [][]string{
	{"dash"}, {"bash"}, {"bash", "--posix"}, {"busybox", "sh"},
	{"mksh"}, {"ksh"}, {"zsh", "--emulate", "sh"}, {"yash"},
}

// needShells fails the test where a shell is missing and no test may be skipped.
func needShells(t *testing.T) {
	t.Helper()
	for _, shell := range shells {
		if _, err := exec.LookPath(shell[0]); err != nil && os.Getenv("ADLOCK_TEST_SKIP") == "no" {
			t.Fatal(err)
		}
	}
}

func TestNoHistoryBreaksThePromises(t *testing.T) {
	need.Tools(t, "flock")
	needShells(t)
	binary := helper.Binary(t)
	began := time.Now()
	least, most := leastStress, mostStress
	if !need.Soak {
		least, most = roundLength, roundLength
	}
	if text := os.Getenv("ADLOCK_SOAK"); text != "" {
		soak, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		least, most = soak, soak
	}
	var sum tally
	for n := 0; time.Since(began) < least || sum.acquired < wanted && time.Since(began) < most; n++ {
		r := newRound(t, binary)
		r.kills = n%2 == 1
		sum.add(r.play(t))
		if t.Failed() {
			r.keep(t)
			break
		}
	}
	t.Logf("%v in %v", sum, time.Since(began).Round(time.Second))
}

// round is one competition: all contenders come, compete, are stopped and killed, and are gone at
// the end.
type round struct {
	arena
	binary string
	kills  bool // false: the test only stops and continues
	crowd  crowd
	env    []string

	mu     sync.Mutex
	errors []error
}

func newRound(t *testing.T, binary string) *round {
	t.Helper()
	adopt(t)
	a := newArena(t)
	return &round{arena: a, binary: binary, env: slices.Clip(a.environment(binary))} // many append to it at once
}

// adopt makes orphans children of this process until the test ends, so that contenders can reap
// what they leave.
func adopt(t *testing.T) {
	t.Helper()
	set := func(to uintptr) {
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, to, 0, 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	set(1)
	t.Cleanup(func() { set(0) })
}

func (r *round) play(t *testing.T) tally {
	empty := make(chan struct{})
	var places sync.WaitGroup
	for place, next := range r.places() {
		places.Go(func() { r.fill(place, next) })
	}
	go func() { places.Wait(); close(empty) }()
	for deadline := time.Now().Add(roundLength); time.Now().Before(deadline); time.Sleep(troubleEvery) {
		r.crowd.trouble(r.kills)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	r.crowd.disperse(grace, empty)
	r.availableAfterwards(t)
	for _, err := range r.errors {
		t.Error(err)
	}
	events := r.read(t)
	if err := check(events); err != nil {
		t.Errorf("round with kills %v: %v", r.kills, err)
	}
	sum := count(events)
	if err := checkRunlog(r.locks(), sum.acquired, r.crowd.hits); err != nil {
		t.Errorf("round with kills %v, %d hit: %v", r.kills, r.crowd.hits, err)
	}
	return sum
}

// next starts the n-th contender of a place.
type next func(n int) error

// places are refilled whenever a contender leaves.
func (r *round) places() []next {
	var list []next
	for place := range 4 {
		list = append(list, func(n int) error { return r.worker(fmt.Sprintf("worker%d_%d", place, n)) })
	}
	for place, shell := range shells {
		if _, err := exec.LookPath(shell[0]); err == nil {
			list = append(list, func(n int) error { return r.script(fmt.Sprintf("script%d_%d", place, n), shell) })
		}
	}
	for place := range 3 {
		list = append(list, func(n int) error { return r.job(fmt.Sprintf("run%d_%d", place, n)) })
	}
	return list
}

func (r *round) fill(place int, next next) {
	for n := 0; !r.stopped(); n++ {
		time.Sleep(rand.N(40 * time.Millisecond)) // so that the workers have most of the processor
		if err := next(n); err != nil {
			r.failed(fmt.Errorf("place %d: %w", place, err))
			return
		}
	}
}

func (r *round) failed(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errors = append(r.errors, err)
}

// contend starts a contender, and waits for the end of its leader, and then of all its
// processes. In between it calls between, if any.
func (r *round) contend(name string, env []string, between func(*contender, string) error, args ...string) error {
	c, err := r.start(name, env, args...)
	if err != nil {
		return err
	}
	r.crowd.join(c)
	defer r.crowd.leave(c)
	err = c.wait()
	said, read := c.said()
	if between != nil {
		err = errors.Join(err, between(c, said))
	}
	c.await()
	return errors.Join(err, read, r.note(gone, name, c.how()))
}

func (r *round) worker(name string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return r.contend(name, append(r.env, workerEnv+"="+name), nil, self)
}

func (r *round) script(name string, shell []string) error {
	env := r.env
	if rand.N(2) == 0 {
		env = append(env, "ADLOCK_WAIT=1s")
	}
	env = append(env, "ADLOCK_PAUSE="+pause())
	args := append(slices.Clip(shell), r.source("history_script.sh"), name, strconv.Itoa(rand.N(65537)))
	return r.contend(name, env, nil, args...)
}

// job is one attempt of `adlock run`.
func (r *round) job(name string) error {
	return r.run(name, attemptAt{rand.N(atoms), rand.N(4) / 3}, strconv.Itoa(rand.N(200)),
		"--pause", pause(), "--wait", strconv.Itoa(rand.N(2))+"s")
}

// attemptAt is an atom and IfElapsed in seconds.
type attemptAt struct{ atom, elapsed int }

// run is an `adlock run` of history_job.sh. The job records when it begins and ends; the status of
// `adlock run` gives the rest.
func (r *round) run(name string, at attemptAt, work string, options ...string) error {
	const denied = 99
	attempt, atom, elapsed := name+".1", strconv.Itoa(at.atom), strconv.Itoa(at.elapsed)
	if err := r.note(call, attempt, atom, elapsed); err != nil {
		return err
	}
	over := func(c *contender, said string) error {
		if c.status().Signaled() {
			return nil
		}
		return r.note(end, attempt, verdict(c.status().ExitStatus() == denied, said))
	}
	args := []string{r.binary, "run", "--verbose", "--exit-denied", strconv.Itoa(denied),
		"--operator", "stress", "--operand", atom, "--if-elapsed", elapsed + "s", "--expire-after", "1s"}
	args = append(args, options...)
	return r.contend(name, r.env, over, append(args, "--", "sh", r.source("history_job.sh"), attempt, atom, work)...)
}

// pause is mostly short: a job that ignores signals should end soon.
func pause() string {
	if rand.N(4) == 0 {
		return "1s"
	}
	return "0s"
}

// endedAnother matches the message of a newcomer that ended the owner before it.
var endedAnother = regexp.MustCompile(`adlock: .*: ended process \d+ by force: .*\n`)

// verdict reads the verdict from what `adlock run --verbose` printed.
func verdict(denied bool, said string) string {
	said = endedAnother.ReplaceAllString(said, "")
	switch {
	case !denied && said == "":
		return released
	case denied && strings.Contains(said, "too soon"):
		return tooSoon
	case denied && strings.Contains(said, "busy"):
		return busy
	case strings.Contains(said, "lost:"), strings.Contains(said, ": ended by force by process "):
		return lost
	}
	return failed
}

// availableAfterwards expects that without contenders every atom can be taken at once.
func (r *round) availableAfterwards(t *testing.T) {
	t.Helper()
	last, err := r.entrant()
	if err != nil {
		t.Fatal(err)
	}
	defer last.keeper.Dir.Close()
	for n := range atoms {
		verdict, err := last.try(fmt.Sprintf("last.%d", n), n, 0, 0, func() {})
		if verdict != released || err != nil {
			t.Errorf("atom %d, with everybody gone: %s, %v", n, verdict, err)
		}
	}
}

// tally counts the results of a round.
type tally struct{ rounds, acquired, busy, tooSoon, replaced int }

func (s *tally) add(o tally) {
	s.rounds += o.rounds
	s.acquired += o.acquired
	s.busy += o.busy
	s.tooSoon += o.tooSoon
	s.replaced += o.replaced
}

func (s tally) String() string {
	return fmt.Sprintf("%d rounds: %d acquisitions (%d of which did not end with a release), %d denied as busy, %d as too soon",
		s.rounds, s.acquired, s.replaced, s.busy, s.tooSoon)
}

func count(events []event) tally {
	sum := tally{rounds: 1}
	for _, e := range events {
		switch {
		case e.kind == enter:
			sum.acquired++
			sum.replaced++
		case e.word(0) == released:
			sum.replaced--
		case e.word(0) == busy:
			sum.busy++
		case e.word(0) == tooSoon:
			sum.tooSoon++
		}
	}
	return sum
}
