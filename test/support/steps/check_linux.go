package steps

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"adlock/lib/runlog"
	"adlock/test/support/helper"
)

// Newcomers starts n newcomers at once and returns how many got the atom. Each newcomer that got it
// holds it until all have their answer.
func (s *Stage) Newcomers(n int) int {
	s.t.Helper()
	var all []*helper.Process
	for range n {
		all = append(all, s.newcomer())
	}
	held := func(p *helper.Process) bool { return strings.Contains(p.Output(), "held\n") }
	for _, p := range all {
		helper.Eventually(s.t, "a newcomer has its answer", func() bool { return held(p) || p.Ended() })
	}
	count := 0
	for _, p := range all {
		if !held(p) {
			if status := p.Wait(s.t); status != 75 || p.Output() != "" {
				s.t.Errorf("a newcomer ended with %d: %s", status, p.Output())
			}
			continue
		}
		count++
	}
	if inside := s.Inside(); inside > 1 {
		s.t.Errorf("%d are inside at once: %v", inside, s.journal())
	}
	for _, p := range all {
		if held(p) {
			s.Open("HOLD")
			if status := p.Wait(s.t); status != 0 {
				s.t.Errorf("a newcomer that got the atom ended with %d: %s", status, p.Output())
			}
		}
	}
	return count
}

func (s *Stage) newcomer() *helper.Process {
	job := `echo "$$ inside" >>"$JOURNAL"; echo held; read -r x <"$HOLD"; echo "$$ outside" >>"$JOURNAL"`
	args := append([]string{helper.Binary(s.t), "run", "--program", "p", "--host", "h", "--operator", "o", "--operand", "x"}, strings.Fields(terms)...)
	return helper.Command{Args: append(args, "--", "sh", "-c", job), Env: s.env()}.Start(s.t)
}

// NoTwoSharedTheAtom fails the test if two processes were inside the atom at any time, or a job
// ran without a lock.
func (s *Stage) NoTwoSharedTheAtom() {
	s.t.Helper()
	inside := 0
	for _, line := range s.journal() {
		switch line[1] {
		case "inside":
			inside++
		case "outside":
			inside--
		default:
			s.t.Errorf("%v", line)
		}
		if inside > 1 {
			s.t.Errorf("two were inside at once: %v", s.journal())
		}
	}
}

// Last returns the last lock's mtime, zero if there is no last lock; it fails the test if the mtime
// has gone back since the previous call.
func (s *Stage) Last() time.Time {
	s.t.Helper()
	info, err := os.Stat(filepath.Join(s.Dir, "last."+Name))
	if errors.Is(err, fs.ErrNotExist) && s.floor.IsZero() {
		return time.Time{}
	}
	if err != nil {
		s.t.Errorf("the last lock is gone: %v", err)
		return time.Time{}
	}
	if info.ModTime().Before(s.floor) {
		s.t.Errorf("the last lock was set back from %v to %v", s.floor, info.ModTime())
	}
	s.floor = info.ModTime()
	return s.floor
}

// Completed reports whether the step ends a run: a release, or an `adlock run` whose job ran.
func (s *Stage) Completed() bool {
	return s.scenario.Ends || s.scenario.Runs && s.JobRan()
}

// Stamped reports whether the last lock was stamped after the step began.
func (s *Stage) Stamped() bool { return s.Last().After(s.began) }

// Locked reports whether there is an active lock, a reader's included.
func (s *Stage) Locked() bool {
	_, err := os.Lstat(filepath.Join(s.Dir, "lock."+Name))
	readers, _ := filepath.Glob(filepath.Join(s.Dir, "read."+Name+".*")) // the pattern is valid
	return err == nil || len(readers) > 0
}

// BystandersAreUnhurt fails the test if an uninvolved process got a signal.
func (s *Stage) BystandersAreUnhurt() {
	s.t.Helper()
	pids := s.says("bystander")
	if len(pids) != 2 {
		s.t.Fatalf("%d bystanders", len(pids))
	}
	for _, pid := range pids {
		text, err := os.ReadFile("/proc/" + pid + "/status")
		if err != nil {
			s.t.Errorf("bystander %s: %v", pid, err)
			continue
		}
		for line := range strings.Lines(string(text)) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), ":\t")
			if (key == "SigPnd" || key == "ShdPnd") && strings.Trim(value, "0") != "" ||
				key == "State" && strings.ContainsAny(value[:1], "TZX") {
				s.t.Errorf("bystander %s: %s %s", pid, key, value)
			}
		}
	}
}

// Temporaries returns the temp.* files in the lock directory, and fails the test if an unknown
// file is there.
func (s *Stage) Temporaries() []string {
	s.t.Helper()
	entries, err := os.ReadDir(s.Dir)
	if err != nil {
		s.t.Fatal(err)
	}
	var list []string
	for _, entry := range entries {
		prefix, _, _ := strings.Cut(entry.Name(), ".")
		switch prefix {
		case "temp":
			list = append(list, filepath.Join(s.Dir, entry.Name()))
		case "lock", "last", "read":
		default:
			s.t.Errorf("%s is in the lock directory", entry.Name())
		}
	}
	return list
}

// TemporariesAreSwept fails the test if a temporary file older than a minute outlives the next
// takeover of a dead owner's lock.
func (s *Stage) TemporariesAreSwept() {
	s.t.Helper()
	debris := s.Temporaries()
	if len(debris) == 0 {
		return
	}
	for _, path := range debris {
		s.age(path)
	}
	dead := helper.Command{Args: []string{"bash", "-c", deadOwner}, Env: s.env()}
	if result := dead.Run(s.t); result.Status != 0 {
		s.t.Fatalf("%d: %s", result.Status, result.Err)
	}
	if held := s.Newcomers(1); held != 1 {
		s.t.Error("the dead owner's lock was not reclaimed")
	}
	if left := s.Temporaries(); len(left) != 0 {
		s.t.Errorf("left behind for good: %v", left)
	}
}

// age makes a temporary file two minutes old, unless it is the other name of a
// lock that is in place.
func (s *Stage) age(path string) {
	s.t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		s.t.Fatal(err)
	}
	if info.Sys().(*syscall.Stat_t).Nlink > 1 {
		return
	}
	then := time.Now().Add(-2 * time.Minute)
	if err := os.Chtimes(path, then, then); err != nil {
		s.t.Fatal(err)
	}
}

// Runlog reads the runlog and returns the number of events of the program `old` in it; a damaged
// line fails the test, unless torn allows it.
func (s *Stage) Runlog(torn bool) int {
	s.t.Helper()
	old := 0
	for event, err := range runlog.Read(s.LogDir, "h", math.MaxInt64) {
		var damaged *runlog.DamagedLine
		if err != nil && !(torn && errors.As(err, &damaged)) && !errors.Is(err, fs.ErrNotExist) {
			s.t.Errorf("the record: %v", err)
		}
		if event.Program == "old" {
			old++
		}
	}
	return old
}

// RunlogIsWhole fails the test if a line of the runlog was lost.
func (s *Stage) RunlogIsWhole(torn bool) {
	s.t.Helper()
	old := s.Runlog(torn)
	if s.scenario.LogFull && old != OldLines {
		s.t.Errorf("%d of %d lines of the record are left", old, OldLines)
	}
}

// JobRan reports whether the job of `adlock run` ran.
func (s *Stage) JobRan() bool { return len(s.journal()) > 0 }
