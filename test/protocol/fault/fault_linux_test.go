// Package fault lets each of adlock's system calls that touch a lock or the runlog fail in each
// possible way, one at a time.
package fault

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"adlock/lib/fault"
	"adlock/test/support/check"
	"adlock/test/support/helper"
	"adlock/test/support/must"
	"adlock/test/support/need"
	"adlock/test/support/steps"
)

func TestMain(m *testing.M) { helper.Main(m) }

// failure is one way to fail.
type failure struct {
	what   string   // strace's name for it
	words  string   // the system's message
	status []int    // what a script gets; none: it must not notice
	calls  []string // the calls that can fail so; nil: all
}

var (
	creates = []string{"openat", "linkat", "renameat", "write", "mkdirat", "utimensat"}
	changes = append(slices.Clone(creates), "unlinkat", "fchmod")
	names   = []string{"openat", "linkat", "renameat", "unlinkat", "mkdirat", "utimensat"}
)

var faults = []failure{
	{"error=ENOSPC", "no space left on device", []int{fault.StatusIO}, creates},
	{"error=EIO", "input/output error", []int{fault.StatusIO}, nil},
	{"error=EROFS", "read-only file system", []int{fault.StatusCannotCreate}, changes},
	{"error=EMFILE", "too many open files", []int{fault.StatusSystem}, []string{"openat"}},
	{"error=ENOLCK", "no locks available", []int{fault.StatusSystem}, []string{"flock"}},
	{"error=EACCES", "permission denied", []int{fault.StatusCannotCreate, fault.StatusNotPermitted}, names},
	{"error=EINTR", "", nil, nil},
	{"retval=2", "no space left on device", []int{fault.StatusIO}, []string{"write"}},
}

func TestAFailedSystemCallIsReportedAndTheAtomStaysUsable(t *testing.T) {
	drawn := steps.Drawn(t)
	for _, scenario := range steps.Scenarios {
		t.Run(scenario.Name, func(t *testing.T) {
			t.Parallel()
			points, met := 0, 0
			for _, call := range drawn[scenario.Name] {
				ways := waysOf(call.Name)
				for i, f := range ways {
					points += len(call.Points)
					met += failEach(t, scenario, f, call, func(p steps.Point) bool { return need.Soak || p.Turn%len(ways) == i })
				}
			}
			if need.Soak && (points < 50 || met < 50) {
				t.Errorf("%d points, %d faults: the calls were not found", points, met)
			}
			t.Logf("%d points, %d faults", points, met)
		})
	}
}

// waysOf are the ways in which that call can fail. If only one call of each place is tried, the places take turns.
func waysOf(call string) (ways []failure) {
	for _, f := range faults {
		if f.calls == nil || slices.Contains(f.calls, call) {
			ways = append(ways, f)
		}
	}
	return ways
}

// failEach lets each such call of the step that is wanted fail in turn, and returns how many failed. If one place in
// the program repeats a call, as for the runlog, two are enough, except in a long soak.
func failEach(t *testing.T, scenario steps.Scenario, f failure, call steps.Call, wanted func(steps.Point) bool) int {
	met, seen := 0, map[string]int{}
	for _, point := range call.Points {
		if seen[point.Same]++; !wanted(point) || seen[point.Same] > 2 && os.Getenv("ADLOCK_SOAK") == "" {
			continue
		}
		at := steps.Injection{Call: call.Name, What: f.what, When: point.When}
		name := fmt.Sprintf("%s-%s-%d", f.what[strings.Index(f.what, "=")+1:], at.Call, at.When)
		t.Run(name, func(t *testing.T) {
			if failAt(t, scenario, f, at) {
				met++
			}
		})
	}
	return met
}

func failAt(t *testing.T, scenario steps.Scenario, f failure, at steps.Injection) bool {
	s := steps.NewStage(t, scenario, at)
	s.Open("JOBGATE") // the job need not wait
	status := s.Play()
	s.Last()
	call := s.Met(at)
	checkStatus(t, scenario, f, call, status, s)
	if s.Completed() && s.Trouble() == "" && (s.Locked() || !s.Stamped()) {
		t.Error("the run was not released and stamped, and nothing was said")
	}
	took := s.Newcomers(1) == 1
	switch {
	case scenario.Owns && status == scenario.Want && took:
		t.Error("the lock that was acquired is not held")
	case scenario.Owns && status != scenario.Want && !took:
		t.Error("the lock that was not acquired is held")
	}
	s.EndActor()
	check.Equal(t, "newcomers that got the atom", s.Newcomers(1), 1)
	s.Last()
	s.NoTwoSharedTheAtom()
	s.BystandersAreUnhurt()
	s.TemporariesAreSwept()
	s.RunlogIsWhole(f.what == "retval=2")
	if t.Failed() {
		t.Logf("status %d after %s\n%s", status, call, s.Trouble())
	}
	return call != ""
}

// ending matches the message about an ended owner.
var ending = regexp.MustCompile(`(?m)^adlock: .*: ended process \d+ by force(, as asked)?: it had run for .*\n`)

func checkStatus(t *testing.T, scenario steps.Scenario, f failure, call string, status int, s *steps.Stage) {
	if strings.HasPrefix(call, "write(2<") {
		return // the message itself: an ending makes more writes before it at one time than at another
	}
	trouble := s.Trouble()
	if scenario.Kills {
		told := len(ending.FindAllString(trouble, -1))
		if told > 1 || told == 0 && status == scenario.Want {
			t.Errorf("the ending of the owner was said %d times", told)
		}
		trouble = ending.ReplaceAllString(trouble, "")
	}
	if trouble != "" && (strings.Count(trouble, "\n") != 1 || !strings.HasPrefix(trouble, "adlock: ") || !strings.Contains(trouble, f.words)) {
		t.Error("the message is not one line with the system's words")
	}
	if scenario.Runs && s.JobRan() != (status == steps.JobStatus) {
		t.Error("the status is not the job's, or the job has not run")
	}
	if status == scenario.Want {
		if trouble != "" && f.status == nil {
			t.Error("an interruption is no fault")
		}
		return
	}
	if strings.Contains(call, "LOG") {
		t.Error("a failing record changed the status")
	}
	if !slices.Contains(f.status, status) {
		t.Errorf("the status is %d, want one of %v", status, f.status)
	}
	if trouble == "" {
		t.Error("nothing was said")
	}
}

// coarse is an atom on a disk that keeps times in whole seconds: ext4 with the inodes of ext3.
func coarse(t *testing.T) *helper.Atom {
	t.Helper()
	need.Root(t)
	need.Tools(t, "mkfs.ext4", "mount", "umount")
	image, mount := filepath.Join(t.TempDir(), "image"), t.TempDir()
	must.Do(t, os.WriteFile(image, make([]byte, 4<<20), 0o600))
	if r := (helper.Command{Args: []string{"mkfs.ext4", "-q", "-I", "128", image}}).Run(t); r.Status != 0 {
		t.Fatal(r.Err)
	}
	if r := (helper.Command{Args: []string{"mount", "-o", "loop", image, mount}}).Run(t); r.Status != 0 {
		need.Skip(t, "mount: "+r.Err)
	}
	t.Cleanup(func() {
		if r := (helper.Command{Args: []string{"umount", "--lazy", mount}}).Run(t); r.Status != 0 {
			t.Error(r.Err)
		}
	})
	return &helper.Atom{Dir: filepath.Join(mount, "locks"), Bin: helper.Binary(t)}
}

// A stamp in whole seconds lies up to a second before the completion.
func TestIfElapsedIsKeptOnADiskWithTimesInWholeSeconds(t *testing.T) {
	t.Parallel()
	a := coarse(t)
	var last time.Time
	for range 8 {
		r := a.Shell(t, "$run --if-elapsed=1s --wait=20s --wait-elapsed -- date +%s.%N")
		seconds, err := strconv.ParseFloat(strings.TrimSpace(r.Out), 64)
		if r.Status != 0 || err != nil {
			t.Fatalf("%+v: %v", r, err)
		}
		start := time.UnixMicro(int64(seconds * 1e6))
		if apart := start.Sub(last); apart < time.Second {
			t.Errorf("it started %v after the start before", apart)
		}
		last = start
	}
}
