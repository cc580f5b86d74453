package protocol

import (
	"fmt"
	"strings"
	"testing"

	"adlock/test/support/must"
)

// history reads events, one a line or behind a semicolon.
func history(t *testing.T, text string) []stormEvent {
	t.Helper()
	var events []stormEvent
	for line := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '\n' || r == ';' }) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		e := must.Get(parseStorm(line))(t)
		events = append(events, e)
	}
	return events
}

// The parts of histories: a run of an atom, with its terms, and a script that has one by the library.
func runs(id string, at float64, terms string) string {
	return fmt.Sprintf("call %s %.2f atom=%s; in %s %.2f 5;", id, at, terms, id, at)
}

func ends0(id string, at float64) string {
	return fmt.Sprintf("out %s %.2f 0; end %s %.2f 0;", id, at, id, at)
}

func ran(id string, at float64, terms string) string { return runs(id, at, terms) + ends0(id, at+0.01) }

func killed(id string, at float64) string {
	return fmt.Sprintf("sig %s %.2f KILL; end %s %.2f 137;", id, at, id, at)
}

func asks(id string, at float64, terms, got string) string {
	return fmt.Sprintf("call %s %.2f atom=%s; got %s %.2f %s;", id, at, terms, id, at, got)
}

func holds(id string, at float64, terms string) string {
	return asks(id, at, terms, "0 acquired") + fmt.Sprintf("in %s %.2f 5;", id, at)
}

func gives(id string, at float64) string {
	return fmt.Sprintf("out %s %.2f 0; rel %s %.2f 0 acquired;", id, at, id, at)
}

func TestTheStormJudgeReportsEachBreachAndNoSoundHistory(t *testing.T) {
	a, aEnds, aRan := runs("A", 1, "a0"), ends0("A", 1.04), ran("A", 1, "a0")
	script, scriptRan := holds("A.1", 1, "a0"), holds("A.1", 1, "a0")+gives("A.1", 1.02)
	reads, slot, slotRan := runs("A", 1, "r0 mode=s"), runs("A", 1, "s0 slots=2"), ran("A", 1, "s0 slots=2")
	outer := a + runs("A.w", 1, "w0 limit=1000 enforce=true")
	const aTermed, aEnforced = "end A 2.2 143; exit A 2.2 143;", "end A 2.05 124; exit A 2.05 124;"
	const early, aEnforcedEarly = "before ExpireAfter", "end A 1.5 124; exit A 1.5 124;"
	const two, notHeld = "two jobs at once", "it was not held"
	for name, c := range map[string]struct{ history, promise string }{
		"two at once":                       {a + runs("B", 1, "a0") + aEnds + ends0("B", 1.04), two},
		"one that was ended inside another": {a + "sig B 1 KILL;" + runs("B", 1, "a0") + "end B 1.02 137;" + aEnds, two},
		"an earlier job has a lock":         {"call A 1 atom=a0; clash A 1.01 x B", "processes live"},

		"a writer among readers":   {reads + ran("B", 1, "r0 mode=s") + ran("C", 1.02, "r0 mode=x") + aEnds, two},
		"a reader beside a writer": {runs("A", 1, "r0 mode=x") + ran("B", 1.02, "r0 mode=s") + aEnds, two},
		"three of two slots": {slot + runs("B", 1, "s1 slots=2") + ran("C", 1.01, "s2 slots=2") + aEnds + ends0("B", 1.04),
			"3 jobs at once where 2 may be"},

		"too soon":                          {aRan + ran("B", 1.5, "a0 elapsed=1000"), "too soon"},
		"too soon after a script's release": {scriptRan + ran("B", 1.5, "a0 elapsed=1000"), "too soon"},
		"soon after a run that was killed":  {a + killed("A", 1.03) + ran("B", 1.5, "a0 elapsed=1000"), ""},
		"soon after a run that was taken over at its end": {a + "call B 1.02 atom=a0 elapsed=1000 limit=0;" + aEnds +
			"in B 1.04 5;" + ends0("B", 1.05), ""},
		"soon after a failure that does not count": {runs("A", 1, "a0 code=3 unstamps=true") + "out A 1.02 3; end A 1.03 3;" +
			ran("B", 1.5, "a0 elapsed=1000"), ""},

		"denied, and none held it":    {aRan + "call B 1.5 atom=a0; end B 1.51 75", notHeld},
		"busy, and none held it":      {aRan + asks("B.1", 1.5, "a0 elapsed=9000", "75 busy"), notHeld},
		"busy after a death":          {a + killed("A", 1) + asks("B.1", 1, "a0", "75 busy"), ""},
		"busy after a death and next": {a + killed("A", 1) + ran("B", 2, "a0") + asks("C.1", 3, "a0", "75 busy"), notHeld},
		"busy beside one denied":      {"call A 1 atom=a0;" + asks("B.1", 1, "a0", "75 busy") + "end A 1 75", notHeld},
		"busy, second look":           {"call A 1 atom=a0 elapsed=9;" + asks("B.1", 1, "a0", "75 busy") + "end A 1 75", ""},
		"full, and none has a slot":   {slotRan + asks("B.1", 1.5, "s1 slots=2", "75 full"), notHeld},
		"too soon and due":            {aRan + asks("B.1", 9, "a0 elapsed=1000", "75 too-soon"), "no completion was so near"},
		"too soon beside one":         {"mark m 0;" + runs("A", 9, "a0") + asks("B.1", 9, "a0 elapsed=9", "75 too-soon"), ""},

		"ended before ExpireAfter": {a + "call B 1.5 atom=a0 limit=1000; end A 1.6 143; exit A 1.6 143", early},
		"ended at ExpireAfter":     {a + "call B 2.1 atom=a0 limit=1000;" + aTermed + "in B 2.2 6;" + ends0("B", 2.2), ""},
		"ended at its own limit by a run that says none": {runs("A", 1, "a0 limit=1000") + "call B 2.1 atom=a0;" + aTermed +
			"in B 2.2 6;" + ends0("B", 2.2), ""},
		"ended at its own limit by a script that says never": {holds("A.1", 1, "a0 limit=1000") + "call B.1 2.1 atom=a0;" +
			"exit A 2.2 143; got B.1 2.2 0 acquired; in B.1 2.2 6;" + gives("B.1", 2.2), "ended by a signal"},
		"ended by no newcomer":      {"call A 1 atom=a0; call B 1 atom=a0 limit=0; end B 1 75; in A 1 5;" + aTermed, early},
		"a shell that crashes":      {script + "exit A 1.02 139", ""},
		"a script no newcomer ends": {script + "exit A 1.02 143", "ended by a signal"},
		"a script ended after it has released": {scriptRan + "call B 1.03 atom=a0 limit=0; exit A 1.1 143",
			"holding nothing that had expired"},
		"a script ended whose atom it has lost": {script + "call B 1.01 atom=a0 limit=0; out A.1 1.02 0;" +
			"rel A.1 1.03 75 lost; exit A 1.1 143", ""},
		"lost without another owner":      {script + "out A.1 1.02 0; rel A.1 1.03 75 lost", "denied, and its job ran"},
		"enforced":                        {runs("A", 1, "a0 limit=1000 enforce=true") + aEnforced, ""},
		"enforced too early":              {runs("A", 1, "a0 limit=1000 enforce=true") + aEnforcedEarly, early},
		"an inner run enforces":           {outer + "out A.w 2.03 0; out A 2.03 0;" + aEnforced, ""},
		"an inner run enforces too early": {outer + aEnforcedEarly, early},

		"0 and never run":             {"call A 1 atom=a0; end A 1.02 0", "did not run to its end"},
		"75 and run":                  {a + "out A 1.02 0; end A 1.02 75", "denied, and its job ran"},
		"another status than the job": {runs("A", 1, "a0 code=3") + "out A 1.02 3; end A 1.02 0", "its job ended with 3"},
		"denied, and run after that":  {"call A 1 atom=a0; end A 1.02 75; in A 1.03 5", "its job ran after that"},
		"a helper stopped and killed": {"call A 1 atom=g0; sig A 1 STOP 1; sig A 1 KILL 1; end A 1 19; exit A 1 19", ""},
		"ksh93's trapped signal":      {"sig A 1 USR1 0 5 ksh;" + asks("A.1", 1, "a0", "10 none"), ""},
		"another's trapped signal":    {"sig A 1 USR1 0 5 dash;" + asks("A.1", 1, "a0", "10 none"), "not one of those that can be"},
		"a helper stopped":            {"call A 1 atom=g0; end A 1.03 19", "not one of those that can be"},
		"stuck with nothing to end":   {"call A 1 atom=a0; end A 1.02 77", "no process was to be ended"},
		"a verdict that there is not": {asks("A.1", 1, "a0", "75 none"), "with the verdict none"},
		"a lock names the denied":     {asks("A.1", 1, "a0", "75 busy") + "owns A.1 1.03 5", "told it holds none"},
		"noted twice by one process":  {a + "in A 1.00 5;" + aEnds, ""},
		"run by two processes":        {a + "in A 1.00 6;" + aEnds, "one attempt ran its job twice"},

		"a bystander ended":              {"stranger z1 1 5 143", "belongs to no job"},
		"a bystander ended from outside": {"sender z1 1 0; stranger z1 1 5 143", ""},
		"an atom is held for ever":       {"remains stage 1 a0 75", "cannot be taken again"},
		"a process stays for ever":       {"hangs stage 1 5", "does not come to its end"},
		"a program crashes":              {"trace A 1 panic", "crashed"},
		"an event without an attempt":    {"in A 1 5", "was not made"},
	} {
		t.Run(name, func(t *testing.T) {
			var promises []string
			for _, v := range judge(history(t, c.history)) {
				promises = append(promises, v.promise)
			}
			found := strings.Join(promises, "; ")
			if c.promise == "" && found != "" || !strings.Contains(found, c.promise) {
				t.Errorf("found %q, want %q in\n%s", found, c.promise, c.history)
			}
		})
	}
}
