package cli

// These tests try limits with the value auto through the helper, the library, and their output.

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"adlock/test/support/helper"
)

// library begins a script that acquires the atom, with the variables of ofLibrary.
var library = ". " + filepath.Join(helper.Root(), "sh/adlock.sh") + "; "

func ofLibrary(a *helper.Atom) []string {
	return []string{"ADLOCK_BIN=" + a.Bin, "ADLOCK_PROGRAM=p", "ADLOCK_HOST=dax", "ADLOCK_IF_ELAPSED=0"}
}

// Each limit is learned from 100 runs of 3 minutes.
const taught = "learn.runs=100\nlearn.mean=5.193\nlearn.deviation=0.1\nlearn.longest=5.3\n"

func teach(t *testing.T, a *helper.Atom) {
	t.Helper()
	must(t, os.WriteFile(a.Last(), []byte(taught), 0o600))
	setCompleted(t, a, time.Now().Add(-24*time.Hour))
}

func setCompleted(t *testing.T, a *helper.Atom, at time.Time) {
	t.Helper()
	must(t, os.Chtimes(a.Last(), at, at))
}

func memory(t *testing.T, a *helper.Atom) string {
	t.Helper()
	text := get(os.ReadFile(a.Last()))(t)
	return string(text)
}

func tune(t *testing.T, a *helper.Atom, options ...string) helper.Result {
	t.Helper()
	return helper.Command{Args: append([]string{a.Bin, "tune"}, options...), Env: a.Env()}.Run(t)
}

var wantWords = helper.Contains

func TestAnAtomLearnsFromRunsByOptionVariableAndLibrary(t *testing.T) {
	a := newAtom(t)
	a.Newcomer(t, "--expire-after=auto").Ran(t)
	a.More = []string{"ADLOCK_EXPIRE_AFTER=auto"}
	a.Newcomer(t).Ran(t)
	a.More = ofLibrary(a)
	a.Shell(t, library+"adlock_get o x '' auto && adlock_release").Is(t, 0, "…", "…")
	a.Shell(t, library+"adlock_with o x 0 auto -- false").Is(t, 1, "…", "…")
	wantWords(t, memory(t, a), "learn.runs=3\n")
	setCompleted(t, a, time.Now().Add(-time.Hour))
	a.Shell(t, library+"adlock_get o x auto auto && (exit 0) && adlock_release").Is(t, 0, "…", "…")
	wantWords(t, memory(t, a), "learn.runs=4\n")
	a.Shell(t, library+"adlock_get o x auto auto; echo $ADLOCK_VERDICT").Is(t, 0, "too-soon\n", "")
}

// taughtAtom is an atom with a learned limit. Its newcomers watch an owner for two seconds.
func taughtAtom(t *testing.T) *helper.Atom {
	t.Helper()
	a := helper.NewAtom(t)
	a.Bin, a.More = helper.BriefBinary(t), []string{"ADLOCK_EXPIRE_AFTER=auto"}
	teach(t, a)
	return a
}

// batch prints regularly, and works a little for it.
const batch = "while sleep 0.2; do echo x; done >/dev/null"

func TestAJobThatPrintsOutlivesItsLearnedLimit(t *testing.T) {
	t.Parallel()
	for claim, start := range map[string]func(*helper.Atom) *helper.Process{
		"a script": func(a *helper.Atom) *helper.Process { return a.Owner(t, batch) },
		"a run":    func(a *helper.Atom) *helper.Process { return a.Supervised(t, batch) },
		"enforced": func(a *helper.Atom) *helper.Process {
			a.More = append(a.More, "ADLOCK_ENFORCE=1")
			return a.Supervised(t, batch)
		},
	} {
		a := taughtAtom(t)
		owner := start(a)
		backdate(t, a, time.Hour)
		r := a.Newcomer(t)
		if r.Status != 75 || owner.Ended() || !strings.HasPrefix(r.Err, "adlock: o x: overdue, and works (") || !strings.Contains(r.Err, "has run for 1h") {
			t.Errorf("%s: ended %v, said %q", claim, owner.Ended(), r.Err)
		}
		asks := a.More
		a.More = append(ofLibrary(a), asks...)
		a.Shell(t, library+"adlock_get o x 0 auto; echo $? $ADLOCK_VERDICT").Is(t, 0, "75 busy\n", "…")
		a.More = asks
		wantWords(t, a.Newcomer(t, "--dry-run").Out, "; it would be watched first, and ended if it is idle\n")
		wantWords(t, a.Runlog(), "event=overdue ", " work=")
		wantWords(t, helper.Command{Args: []string{helper.Binary(t), "status"}, Env: a.Env()}.Run(t).Out, "overdue, and works (")
		a.Newcomer(t, "--expire-after=30m").Ran(t)
	}
}

func backdate(t *testing.T, a *helper.Atom, d time.Duration) {
	t.Helper()
	text := get(os.ReadFile(a.Lock()))(t)
	_, rest, _ := strings.Cut(string(text), "\nmonotonic=")
	value, _, _ := strings.Cut(rest, "\n")
	began := get(time.ParseDuration(value))(t)
	a.Rewrite(t, "monotonic", (began - d).String())
}

func TestTuneShowsAndResetsWhatIsLearned(t *testing.T) {
	a := newAtom(t)
	wantWords(t, tune(t, a).Out, "no atom has learned anything")
	teach(t, a)
	wantWords(t, tune(t, a).Out, "p o x", "100", "3m", "10m")
	wantWords(t, tune(t, a, "--explain").Out, "IfElapsed: 100 successful runs: typically 3m", "= 9m58s")
	wantWords(t, tune(t, a, "--json").Out, `"atom":"p.dax.o.x"`, `"runs":100`, `"expire_after_seconds":600,`)
	wantWords(t, tune(t, a, "p", "o", "x").Out, "p o x", "100", "3m", "10m")
	for _, words := range [][]string{{"nobody"}, {"--atom", "nobody"}, {"--reset", "nobody"}} {
		tune(t, a, words...).Refused(t, 64, `no atom matches "nobody"`)
	}
	completed := stamp(t, a)
	tune(t, a, "--reset", "p o x").Is(t, 0, "", "")
	if memory(t, a) != "" || !stamp(t, a).Equal(completed) {
		t.Errorf("after the reset: %q, completed %s", memory(t, a), stamp(t, a))
	}
	wantWords(t, tune(t, a, "--json").Out, "[]")
	wantWords(t, tune(t, a, "x").Out, `no atom that matches "x" has learned anything`)
}

func stamp(t *testing.T, a *helper.Atom) time.Time {
	t.Helper()
	info := get(os.Stat(a.Last()))(t)
	return info.ModTime()
}

func TestTuneShowsAnAtomThatHasLearnedNothingYet(t *testing.T) {
	a := newAtom(t)
	a.Newcomer(t, "--if-elapsed=0").Ran(t)
	wantWords(t, tune(t, a, "--explain").Out, "no atom has learned anything")
	a.More = []string{"ADLOCK_EXPIRE_AFTER=auto"}
	a.Supervised(t, "sleep 1000")
	wantWords(t, tune(t, a, "--explain").Out, "p o x", "never", "ExpireAfter: 0 successful runs, fewer than 5: no limit until there are 5")
}
