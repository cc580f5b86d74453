package cli

import (
	"strings"
	"testing"

	"adlock/test/support/helper"
)

// refusal is a situation without a verdict: every asker gets the same error.
type refusal struct {
	claim  string
	where  where
	setUp  func(w *world)
	ask    string
	want   int    // the exit status
	says   string // of the line on standard error
	status bool   // adlock status gives the same error
}

var refusals = []refusal{
	{claim: "a lock that is cut short", where: inDirectory, want: 74, says: "is cut short", status: true,
		setUp: func(w *world) { w.hold(0); writeFile(w, w.place.(directory).lock(), "1\nprogram=") }},
	{claim: "the lock of another atom under this name", where: inDirectory, want: 71, says: "is the lock of another atom",
		setUp: func(w *world) { w.hold(0); helper.Rewrite(w, w.place.(directory).lock(), "operand", `"z"`) }},
	{claim: "a reader where there are none", where: onFTP, ask: "--shared", want: 64, says: "many readers at once are not offered here"},
}

// prove asks in each way.
func (s *refusal) prove(t *testing.T, newPlace func(testing.TB) place) {
	w := newWorld(t, newPlace(t), strings.Fields(s.ask))
	if s.setUp != nil {
		s.setUp(w)
	}
	dry, run, script := w.run("--dry-run"), w.run(), w.script()
	for asker, r := range map[string]helper.Result{"dry run": dry, "run": run} {
		if r.Status != s.want || r.Out != "" || !strings.Contains(r.Err, s.says) || r.Err != strings.Replace(run.Err, "o x: not run: ", "", 1) && r != run {
			t.Errorf("%s: %+v, want status %d and one line with %q", asker, r, s.want, s.says)
		}
	}
	if strings.TrimSpace(script.Out) != itoa(s.want) || script.Err != run.Err {
		t.Errorf("script: %+v, want %d and %q", script, s.want, run.Err)
	}
	if s.status {
		s.statusSaysSo(w)
	}
}

func (s *refusal) statusSaysSo(w *world) {
	r := w.ask(nil, w.bin, "status", "--json", "--atom="+helper.AtomName)
	if !strings.Contains(r.Out, `"takeable":false`) || !strings.Contains(r.Out, s.says) {
		w.Errorf("status: %+v, want %q", r, s.says)
	}
}
