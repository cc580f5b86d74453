package protocol

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/atom"
	"adlock/lib/lockdir"
	"adlock/lib/lockdir/lockfile"
	"adlock/lib/locker"
	"adlock/lib/policy"
	"adlock/lib/process"
	"adlock/lib/runlog"
	"adlock/test/support/helper"
	"adlock/test/support/need"
)

const (
	host    = "history"
	program = "history"
	atoms   = 6
)

func atomOf(n int) atom.Atom {
	return atom.Atom{Program: program, Host: host, Operator: "stress", Operand: strconv.Itoa(n)}
}

// arena is the place of one round: a lock directory, the events, a file per atom that the jobs
// hold, and the file that ends the round.
type arena struct {
	path string
	notes
}

func arenaAt(path string) arena { return arena{path, notes{filepath.Join(path, "events")}} }

func newArena(t *testing.T) arena {
	t.Helper()
	a := arenaAt(t.TempDir())
	if err := os.Mkdir(a.locks(), 0o700); err != nil {
		t.Fatal(err)
	}
	return a
}

func (a arena) locks() string    { return filepath.Join(a.path, "locks") }
func (a arena) stopFile() string { return filepath.Join(a.path, "stop") }
func (a arena) stop() error      { return os.WriteFile(a.stopFile(), nil, 0o600) }

// occupied is the file that the jobs of an atom hold.
func (a arena) occupied(atom int) string {
	return filepath.Join(a.path, "occupied."+strconv.Itoa(atom))
}

// source returns the path of a script of this test.
func (a arena) source(name string) string {
	return filepath.Join(helper.Root(), "test/protocol", name)
}

// stopped reports whether the round is over.
func (a arena) stopped() bool {
	_, err := os.Lstat(a.stopFile())
	return !errors.Is(err, fs.ErrNotExist)
}

// environment is that of every contender, with the helper program at binary.
func (a arena) environment(binary string) []string {
	return append(need.Clean(),
		"HISTORY="+a.path, "HISTORY_SOURCE="+a.source(""), "HISTORY_TEST="+strconv.Itoa(os.Getpid()),
		"ADLOCK_SH="+filepath.Join(helper.Root(), "sh", "adlock.sh"), "ADLOCK_BIN="+binary,
		"ADLOCK_DIR="+a.locks(), "ADLOCK_PROGRAM="+program, "ADLOCK_HOST="+host)
}

func (a arena) keeper() (*lockdir.Locker, error) {
	dir, err := lockfile.Open(a.locks())
	if err != nil {
		return nil, err
	}
	return &lockdir.Locker{Dir: dir, Recorder: locker.Recorder{Log: &runlog.Log{Dir: a.locks(), Host: host}}}, nil
}

// entrant takes atoms for its own process, through package lockdir.
type entrant struct {
	arena
	keeper  *lockdir.Locker
	self    process.Identity
	attempt string
}

func (a arena) entrant() (*entrant, error) {
	keeper, err := a.keeper()
	if err != nil {
		return nil, err
	}
	self, err := process.Of(os.Getpid())
	return &entrant{arena: a, keeper: keeper, self: self}, err
}

// try is one attempt at an atom; work is its job.
func (e *entrant) try(attempt string, n int, elapsed, wait time.Duration, work func()) (verdict string, err error) {
	e.attempt = attempt
	if err := e.note(call, attempt, strconv.Itoa(n), strconv.FormatFloat(elapsed.Seconds(), 'f', 3, 64)); err != nil {
		return failed, err
	}
	outcome, err := e.keeper.Take(locker.Request{
		Atom: atomOf(n), Owner: e.self, Wait: wait, Pause: 100 * time.Millisecond,
		Limits: policy.Limits{IfElapsed: elapsed, ExpireAfter: expireAfter, Source: policy.Said},
	})
	if err != nil {
		return failed, errors.Join(err, e.note(end, attempt, failed))
	}
	if outcome.Verdict != locker.Acquired {
		return string(outcome.Verdict), e.note(end, attempt, string(outcome.Verdict))
	}
	if err := errors.Join(e.note(enter, attempt), e.occupy(n, work), e.note(leave, attempt)); err != nil {
		return failed, err
	}
	if err := e.keeper.Release(locker.ReleaseRequest{Name: atomOf(n).Name(), Token: outcome.Token}); err != nil {
		return lost, e.note(end, attempt, lost)
	}
	return released, e.note(end, attempt, released)
}

// occupy holds the atom's file during work.
func (e *entrant) occupy(n int, work func()) error {
	file, err := os.OpenFile(e.occupied(n), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = e.note(clash, e.attempt)
	}
	if err == nil {
		work()
	}
	return err
}

// keep copies the events to a place that outlives the test.
func (a arena) keep(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(a.notes.path)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := os.CreateTemp("", "adlock-history-*.events")
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	if _, err := kept.Write(text); err != nil {
		t.Fatal(err)
	}
	t.Logf("the events are kept in %s", kept.Name())
}
