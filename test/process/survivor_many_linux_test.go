//go:build soak

package process

import (
	"os"
	"strings"
	"testing"

	"adlock/lib/record"
	"adlock/test/support/helper"
)

// A lock has room for some 1,100 members.
func TestAnEndingOfManyProcessesThatIsCutShortFreesTheAtomLater(t *testing.T) {
	const many = 1300
	start := `i=0; while [ $i -lt ` + itoa(many) + ` ]; do sleep 1000 & i=$((i+1)); done; echo all >"$ADLOCK_DIR/all"; wait`
	for claim, begin := range map[string]func(*helper.Atom) *helper.Process{
		"a script":     func(a *helper.Atom) *helper.Process { return a.Owner(t, start) },
		"a supervisor": func(a *helper.Atom) *helper.Process { return a.Supervised(t, start) },
	} {
		a := helper.NewAtom(t)
		owner := begin(a)
		helper.Eventually(t, "all have started", func() bool { _, err := os.Stat(a.Dir + "/all"); return err == nil })
		newcomer := helper.Command{Args: []string{"sh", "-c", "exec $run --expire-after=0 --pause=30s echo ran"}, Env: a.Env()}.Start(t)
		helper.Eventually(t, "the ending has begun", func() bool { return strings.Contains(a.Runlog(), "event=signal") })
		newcomer.Kill(t)
		if lock, err := os.ReadFile(a.Lock()); err != nil || !strings.Contains(string(lock), record.ManySurvivors) {
			t.Fatalf("%s: %v\n%s", claim, err, lock)
		}
		a.Newcomer(t).Denied(t)
		a.Newcomer(t, "--expire-after=0", "--pause=1s").Ran(t)
		helper.Eventually(t, "the job is gone", func() bool { return len(helper.Session(owner.PID)) == 0 })
	}
}
