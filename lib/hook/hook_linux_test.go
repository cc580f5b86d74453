package hook

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"adlock/lib/process"
	"adlock/lib/runlog"
	"adlock/test/support/check"
	"adlock/test/support/helper"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

// The waiter is this program again.
func TestMain(m *testing.M) {
	if short, err := time.ParseDuration(os.Getenv("HOOK_TEST_PATIENCE")); err == nil {
		hookTimeout = short
	}
	process.OrphanMain()
	Main()
	os.Exit(m.Run())
}

// happened is an event of an atom.
func happened(kind Kind) Event {
	return Event{Kind: kind, Text: "run \x1b nightly:\nfailed", Event: runlog.Event{
		Program: "backup", Host: "dax", Operator: "run", Operand: "nightly", PID: 811,
		Token: "0123456789abcdef0123456789abcdef", Status: runlog.Some(3), Duration: runlog.Some(61500 * time.Millisecond),
	}}
}

// call calls a hook for an event and returns what it writes to the file "out".
func call(t *testing.T, h *Hook, e Event) (*runlog.Log, func() string) {
	t.Helper()
	log := &runlog.Log{Dir: helper.Dir(t), Host: "dax", Store: "ftp://vault/locks"}
	out := filepath.Join(t.TempDir(), "out")
	h.Env = append(need.Clean(), "ADLOCK_HOOK=another", "ADLOCK_HOOK_RUNS=1", "ADLOCK_COUNT=7", "GOMAXPROCS=1", "OUT="+out)
	h.Tell(log, e)
	return log, func() string {
		text, _ := os.ReadFile(out)
		return string(text)
	}
}

func newest(log *runlog.Log) (newest runlog.Event) {
	for e := range log.Newest(1 << 20) {
		return e
	}
	return newest
}

func TestAHookGetsItsEventAndNoHookForItsOwnLocks(t *testing.T) {
	_, out := call(t, &Hook{Command: `env | grep -E "^(ADLOCK|GOMAX)" | sort >"$OUT.new"; mv "$OUT.new" "$OUT"`}, happened(Fail))
	want := "ADLOCK_ATOM=backup.dax.run.nightly\nADLOCK_EVENT=fail\nADLOCK_HOOK=:\nADLOCK_HOOK_RUNS=0\nADLOCK_PID=811\n" +
		"ADLOCK_RUN=01234567-89ab-cdef-0123-456789abcdef\nADLOCK_SECONDS=61\nADLOCK_STATUS=3\nADLOCK_TEXT=run ? nightly:; failed\n"
	helper.Eventually(t, "the hook has run", func() bool { return out() != "" })
	check.Equal(t, "the hook found", out(), want)
}

func TestStartAndSuccessCallTheHookOnlyOnRequest(t *testing.T) {
	for _, kind := range []Kind{Start, Success, Fail} {
		for _, runs := range []bool{false, true} {
			_, out := call(t, &Hook{Command: `echo "$ADLOCK_EVENT" >"$OUT"`, Runs: runs}, happened(kind))
			if !runs && kind != Fail {
				continue // that the hook is not called is checked below, in h.late
			}
			helper.Eventually(t, string(kind)+" was told", func() bool { return out() == string(kind)+"\n" })
		}
	}
	h := &Hook{Command: "true"}
	h.Hold()
	h.Tell(nil, happened(Start))
	h.Tell(nil, happened(Success))
	check.Equal(t, "news of start and success that it did not ask for", len(h.late), 0)
}

func TestAHookIsAnOrphanWithoutInheritedDescriptors(t *testing.T) {
	read, write, err := os.Pipe()
	must.Do(t, err)
	defer read.Close()
	inherited := must.Get(dup(write))(t)
	defer inherited.Close()
	write.Close()
	_, out := call(t, &Hook{Command: `ls -l /proc/$$/fd >"$OUT.new"; mv "$OUT.new" "$OUT"`}, happened(Fail))
	helper.Eventually(t, "the hook has run", func() bool { return out() != "" })
	if strings.Contains(out(), "pipe:") {
		t.Errorf("the hook has\n%s", out())
	}
	if children := helper.Children(os.Getpid()); len(children) > 0 {
		t.Errorf("this process has children: %v", children)
	}
}

func TestAFailedHookIsLogged(t *testing.T) {
	log, _ := call(t, &Hook{Command: "exit 9"}, happened(Ended))
	helper.Eventually(t, "the failure is noted", func() bool { return newest(log).Kind == runlog.Hook })
	e := newest(log)
	if e.Status != runlog.Some(9) || e.Reason != "the hook for ended: failed" || e.Operand != "nightly" || e.Program != "backup" || e.Host != "dax" || e.Store != log.Store {
		t.Errorf("%+v", e)
	}
	log, _ = call(t, &Hook{Command: "kill -TERM $$"}, happened(Ended))
	helper.Eventually(t, "the failure is noted", func() bool { return newest(log).Signal == "TERM" })
}

func TestAFailedStartOfAHookIsPrintedIfItIsNotLogged(t *testing.T) {
	h := &Hook{Command: strings.Repeat("x", 1<<17)} // longer than execve(2) takes
	for dir, logged := range map[string]bool{"": false, "/nowhere": false, helper.Dir(t): true} {
		said := helper.Stderr(t, func() { h.Tell(&runlog.Log{Dir: dir, Host: "dax"}, happened(Fail)) })
		if !logged != strings.HasPrefix(said, "adlock: the hook for fail: cannot be started: ") || logged && said != "" {
			t.Errorf("%q: %s", dir, said)
		}
	}
}

func TestAHungHookIsEndedWithItsChildren(t *testing.T) {
	t.Setenv("HOOK_TEST_PATIENCE", "300ms")
	log, _ := call(t, &Hook{Command: "sleep 613 & sleep 613"}, happened(Stuck))
	helper.Eventually(t, "the end is noted", func() bool { return newest(log).Kind == runlog.Hook })
	check.Equal(t, "the end", newest(log).Reason, "the hook for stuck: ended: took too long")
	helper.Eventually(t, "nothing is left", func() bool { return len(helper.With("HOOK_TEST_PATIENCE=300ms")) == 0 })
}

func TestHeldEventsReachTheHookOnceTheyAreLetGo(t *testing.T) {
	h := &Hook{Command: `echo told >"$OUT"`}
	h.Hold()
	_, out := call(t, h, happened(Unwritten))
	if len(h.late) != 1 || len(helper.Children(os.Getpid())) != 0 {
		t.Errorf("%d are kept", len(h.late))
	}
	h.LetGo()
	helper.Eventually(t, "it is told", func() bool { return out() == "told\n" })
	check.Equal(t, "kept for another time", len(h.late), 0)
}

func TestAHookGetsOnlyVariablesThatItsEventHas(t *testing.T) {
	e := Event{Kind: Lost, Text: strings.Repeat("x", 10000), Event: runlog.Event{Program: "p", Host: "h", Operator: "o", Operand: strings.Repeat("y", 1<<17), OwnerToken: "abc", Owner: 4, Age: runlog.Some(2 * time.Hour), Signal: "TERM", Count: 100}}
	var names []string
	for _, variable := range e.variables() {
		name, value, _ := strings.Cut(variable, "=")
		names = append(names, name)
		if len(value) > longestText {
			t.Errorf("%s is too long", name)
		}
	}
	want := []string{"ADLOCK_HOOK", "ADLOCK_HOOK_RUNS", "ADLOCK_EVENT", "ADLOCK_ATOM", "ADLOCK_TEXT", "ADLOCK_RUN", "ADLOCK_OWNER", "ADLOCK_SIGNAL", "ADLOCK_SECONDS", "ADLOCK_COUNT"}
	check.Slices(t, "the variables", names, want)
}

// dup is another descriptor of a file, which is passed on.
func dup(file *os.File) (*os.File, error) {
	fd, err := syscall.Dup(int(file.Fd()))
	return os.NewFile(uintptr(fd), "inherited"), err
}
