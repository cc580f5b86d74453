package cli

// These tests show that every question about an atom has one answer: in the same situation, the dry run, `adlock
// run`, a script that sources the library and `adlock status` must give the same verdict or error, for the same
// reason, with the same figures. The situations are real: programs, processes, lock directories, and servers for
// stores. Only time does not pass: records are rewritten to what they would say later.

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"adlock/lib/limit"
	"adlock/test/support/check"
	"adlock/test/support/helper"
)

// withLocksmith returns the helper program, with its partner programs beside it.
func withLocksmith(t testing.TB) string {
	t.Helper()
	program := helper.Binary(t)
	locksmith.once.Do(func() { locksmith.err = helper.Build(filepath.Join(filepath.Dir(program), "adlock-locksmith")) })
	must(t, locksmith.err)
	return program
}

var locksmith struct {
	once sync.Once
	err  error
}

// where is a set of the places in which a situation is tried.
type where int

const (
	inDirectory where = 1 << iota
	onEtcd
	onFTP

	inStores   = onEtcd | onFTP
	everywhere = inDirectory | inStores
)

// situation is a row of the table.
type situation struct {
	claim string
	where where
	setUp func(w *world) // what there is before the first question; nil: nothing
	ask   string         // the newcomer's options; --now=D is D from now
	want  reason         // the answer to all

	status reason // status's answer, if it depends on the newcomer's options; "none": it lists no such atom
	script reason // a script's answer, if it differs from that of `adlock run`
}

func TestRunScriptAndStatusAgreeInEachSituation(t *testing.T) {
	for name, c := range map[string]struct {
		at   where
		open func(testing.TB) func(testing.TB) place
	}{
		"in a directory": {inDirectory, newDirectory}, "on etcd": {onEtcd, newEtcd}, "on FTP": {onFTP, newFTP},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			newPlace := c.open(t)
			for _, s := range situations {
				if s.where&c.at != 0 {
					t.Run(s.claim, func(t *testing.T) { t.Parallel(); s.prove(t, newPlace) })
				}
			}
		})
	}
}

// prove asks in each way. A newcomer that takes the atom changes the situation, so it is set up anew for the script.
func (s *situation) prove(t *testing.T, newPlace func(testing.TB) place) {
	w := s.world(t, newPlace(t))
	asked := time.Now()
	dry := s.dryRun(w)
	s.statusAgrees(w)
	s.runAgrees(w, dry, asked)
	s.scriptAgrees(s.world(t, newPlace(t)))
}

func (s *situation) world(t *testing.T, p place) *world {
	w := newWorld(t, p, strings.Fields(s.ask))
	if s.setUp != nil {
		s.setUp(w)
	}
	return w
}

func (s *situation) dryRun(w *world) reason {
	r := w.run("--dry-run")
	text, _, _ := strings.Cut(r.Out, "\n")
	got := reason(text)
	if r.Status != s.want.status() || r.Err != "" || !got.alike(s.want, w.elapsed()) {
		w.Errorf("dry run: status %d, %q, errors %q\nwant %q", r.Status, got, r.Err, s.want)
	}
	return got
}

// runAgrees compares the result of `adlock run`, and its message when denied, with the dry run.
func (s *situation) runAgrees(w *world, dry reason, asked time.Time) {
	before := len(w.record())
	r := w.run("--verbose")
	if r.Status != s.want.status() || (r.Out == "ran\n") != s.want.granted() {
		w.Errorf("run: status %d, output %q, errors %q\nwant what %q says", r.Status, r.Out, r.Err, s.want)
	}
	if !s.want.granted() {
		// Two seconds: ages are shown in whole seconds, and an FTP server reports times in whole seconds.
		if told := denial(r.Err); !agrees(told, dry, time.Since(asked)+2*time.Second) {
			w.Errorf("run says %q, the dry run %q", told, dry)
		}
		return
	}
	record := w.record()[before:]
	for words, event := range eventOf {
		if strings.Contains(record, event) != strings.Contains(string(dry), words) {
			w.Errorf("the dry run says %q, run %+v, and the record has\n%s", dry, r, record)
		}
	}
}

// denial is the reason on a newcomer's standard error, without the owner: the last line. A line
// before it may report that the owner is overdue. A newcomer that was started by the owner's job also
// names the owner, which denial leaves out.
func denial(text string) reason {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	text, _, _ = strings.Cut(lines[len(lines)-1], "; process ")
	text = regexp.MustCompile(`: not run: (.*); it was started from within the job of .*`).ReplaceAllString(text, ": $1")
	return reason(regexp.MustCompile(`^adlock: .*?: (too soon|busy|full|paused|stuck): `).ReplaceAllString(text, "$1: "))
}

// agrees compares a denial with the dry run. A newcomer that finds an owner stuck says why, and
// what may be done; the dry run says since when, and why.
func agrees(told, dry reason, slack time.Duration) bool {
	why, stuck := strings.CutPrefix(string(told), "stuck: ")
	if !stuck {
		return told.alike(dry, slack)
	}
	why, _, _ = strings.Cut(why, "; ")
	return dry.verdict() == "stuck" && strings.HasSuffix(dry.words(), ", and "+reason(why).words())
}

func (s *situation) scriptAgrees(w *world) {
	want := s.want
	if s.script != "" {
		want = s.script
	}
	r := w.script()
	said := strings.Fields(r.Out)
	if len(said) != 2 || statuses[said[1]] != want.status() || said[1] != want.verdict() || said[0] != itoa(want.status()) {
		w.Errorf("script: %q, errors %q\nwant what %q says", r.Out, r.Err, want)
	}
	if told := denial(r.Err); !want.granted() && !agrees(told, want, w.elapsed()) {
		w.Errorf("script: %q\nwant %q", told, want)
	}
}

// statusAgrees compares status's answer, which is about a newcomer with the owner's options.
func (s *situation) statusAgrees(w *world) {
	want := reason(strings.Replace(string(s.want), " (its owner's)", "", 1)) // status asks as the owner did
	if s.status != "" {
		want = s.status
	}
	r := w.ask(nil, w.bin, "status", "--json", "--atom="+helper.AtomName)
	var rows []struct {
		Takeable bool
		Why      reason
	}
	if err := json.Unmarshal([]byte(r.Out), &rows); err != nil || r.Status != 0 || r.Err != "" {
		w.Fatalf("status: %+v (%v)", r, err)
	}
	if want == "none" {
		check.Equal(w.T, "atoms", len(rows), 0)
		return
	}
	if len(rows) != 1 || rows[0].Takeable != want.granted() || !rows[0].Why.alike(want, w.elapsed()) {
		w.Errorf("status: %+v\nwant %q", rows, want)
	}
}

// writeFile writes a lock as another tool would, or a damaged one.
func writeFile(t testing.TB, path, text string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(text), 0o600))
}

// reason is an answer in the words of the dry run: "busy: running for 3m, …". Its first word is the verdict.
type reason string

func (r reason) granted() bool {
	return strings.HasPrefix(string(r), "free: ") || strings.HasPrefix(string(r), "expired: ")
}

// verdict is $ADLOCK_VERDICT of a script with this answer.
func (r reason) verdict() string {
	if r.granted() {
		return "acquired"
	}
	word, _, _ := strings.Cut(string(r), ": ")
	return strings.ReplaceAll(word, " ", "-")
}

// statuses are the exit statuses of a newcomer by its verdict.
var statuses = map[string]int{"acquired": 0, "busy": 75, "too-soon": 75, "full": 75, "paused": 75, "stuck": 77}

func (r reason) status() int { return statuses[r.verdict()] }

// eventOf maps the words of a dry run to the runlog's event of a newcomer that removes another owner's lock.
var eventOf = map[string]string{
	"would be ended":    "event=takeover",
	"would be replaced": "event=reclaim",
	"would be cleared":  "event=empty",
}

var pid = regexp.MustCompile(`\bprocess [0-9]+\b`)

// ownersMachine is the owner's machine, which only a store names.
var ownersMachine = regexp.MustCompile(`(running for [^ ,]+) on [^ ,]+`)

func (r reason) withoutMachine() string { return ownersMachine.ReplaceAllString(string(r), "$1") }

var figure = regexp.MustCompile(`-?\b([0-9]+[wdhms])+\b`)

// alike reports whether two reasons have the same words, and figures that differ at most by the
// slack: the time between them.
func (r reason) alike(other reason, slack time.Duration) bool {
	if r.words() != other.words() {
		return false
	}
	theirs := figure.FindAllString(other.withoutMachine(), -1)
	for i, text := range figure.FindAllString(r.withoutMachine(), -1) {
		if (seconds(text) - seconds(theirs[i])).Abs() > slack {
			return false
		}
	}
	return true
}

// words are the reason without its figures and machine, and without pids, which differ from world to world.
func (r reason) words() string {
	return pid.ReplaceAllString(figure.ReplaceAllString(r.withoutMachine(), "…"), "process #")
}

func seconds(text string) time.Duration {
	text, negative := strings.CutPrefix(text, "-")
	d, _ := limit.Parse(text) // the expression matches only durations
	if negative {
		return -d
	}
	return d
}
