package process

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"adlock/test/support/helper"
	"adlock/test/support/need"
)

// A witness in the job has a lock of its own (flock(1)), which its processes inherit: of two jobs at
// once, the second finds it held, whatever adlock says.
const witness = `#!/bin/sh
flock --nonblock --conflict-exit-code 99 "$DIR/witness" sh -c 'echo ran >>"$DIR/log"; sleep 0.0$(($$ % 10))'
[ $? != 99 ] || echo overlap >>"$DIR/log"
`

// forms are scripts that run the witness under one atom; $LIB is the library. Each is started like a
// script that another one calls: it leads neither its process group nor its session.
var forms = map[string]string{
	"with":     `. "$LIB"; adlock_with guard x 0 never -- "$DIR/witness.sh"`,
	"get":      `. "$LIB"; if adlock_get guard x 0 never; then "$DIR/witness.sh"; adlock_release; fi`,
	"agent":    `. "$LIB"; adlock_agent; if adlock_get guard x 0 never; then "$DIR/witness.sh"; adlock_release; fi`,
	"subshell": `. "$LIB"; if adlock_get guard x 0 never; then (i=0; "$DIR/witness.sh"; i=1); (sleep .02; "$DIR/witness.sh"); adlock_release; fi`,
	"traps":    `. "$LIB"; ADLOCK_OPERAND=x; adlock_guard; "$DIR/witness.sh"`,
	"run":      `"$ADLOCK_BIN" run --program p --operator guard --operand x -- "$DIR/witness.sh"; :`,
}

// ending are the signals that end a script which has no trap.
var ending = []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGKILL}

func TestACommandIsNeverLeftBehindWithoutItsLock(t *testing.T) {
	shells, lasts := []string{"dash", "bash"}, 2*time.Second
	if need.Soak {
		shells = append(shells, "bash --posix", "busybox ash", "mksh", "ksh93", "zsh --emulate sh", "yash")
		lasts = 20 * time.Second
	}
	need.Tools(t, "flock")
	for _, shell := range shells {
		t.Run(shell, func(t *testing.T) {
			words := strings.Fields(shell)
			need.Tools(t, words[0])
			s := newStorm(t)
			// On a busy machine, a second round may be the first in which a job runs.
			began := time.Now()
			for time.Since(began) < lasts || s.ran() == 0 && time.Since(began) < helper.Patience {
				for _, form := range []string{"with", "get", "agent", "subshell", "traps", "run"} {
					s.start(words, form)
				}
				s.kill()
			}
			s.judge()
		})
	}
}

// storm is a crowd of scripts that ask for one atom, and are ended at any instant.
type storm struct {
	*testing.T
	dir    string
	env    []string
	random *rand.Rand
	crowd  []*exec.Cmd
	killed int
}

func newStorm(t *testing.T) *storm {
	dir, seed := t.TempDir(), rand.Uint64()
	t.Logf("seed %d", seed)
	locks := filepath.Join(dir, "locks")
	must(t, os.Mkdir(locks, 0o700))
	must(t, need.WriteProgram(filepath.Join(dir, "witness.sh"), []byte(witness), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "log"), nil, 0o644))
	return &storm{T: t, dir: dir, random: rand.New(rand.NewPCG(seed, seed)), env: append(os.Environ(),
		"DIR="+dir, "ADLOCK_DIR="+locks, "ADLOCK_BIN="+helper.Binary(t), "ADLOCK_PROGRAM=p", "LIB="+filepath.Join(helper.Root(), "sh", "adlock.sh"))}
}

// start starts a script: by -c, or by standard input, where adlock_guard works by traps.
func (s *storm) start(shell []string, form string) {
	s.Helper()
	script := exec.Command(shell[0], append(shell[1:], "-s")...)
	script.Stdin, script.Env = strings.NewReader(forms[form]), s.env
	must(s.T, script.Start())
	s.crowd = append(s.crowd, script)
}

// kill ends most of the crowd, each by one of the signals and after a random time, and waits for
// all.
func (s *storm) kill() {
	for _, script := range s.crowd {
		time.Sleep(time.Duration(s.random.IntN(40)) * time.Millisecond)
		if s.random.IntN(4) > 0 && script.Process.Signal(ending[s.random.IntN(len(ending))]) == nil {
			s.killed++
		}
	}
	for _, script := range s.crowd {
		_ = script.Wait() // it was killed, or denied
	}
	s.crowd = nil
}

// log returns what the witnesses have noted.
func (s *storm) log() string {
	s.Helper()
	log, err := os.ReadFile(filepath.Join(s.dir, "log"))
	must(s.T, err)
	return string(log)
}

// ran counts the jobs so far.
func (s *storm) ran() int { return strings.Count(s.log(), "ran") }

// judge fails if two witnesses met, or if the atom stays held.
func (s *storm) judge() {
	s.Helper()
	last := helper.Command{Args: []string{helper.Binary(s.T), "run", "--program", "p", "--operator", "guard", "--operand", "x", "--wait", "1h", "--", "true"}, Env: s.env}.Run(s.T)
	if last.Status != 0 {
		s.Errorf("the atom stays held: status %d, %s", last.Status, last.Err)
	}
	ran, met := s.ran(), strings.Count(s.log(), "overlap")
	if s.Logf("%d jobs, %d scripts killed", ran, s.killed); met > 0 || ran == 0 {
		s.Errorf("%d of %d jobs met another one", met, ran+met)
	}
}
