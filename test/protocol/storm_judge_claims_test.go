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

// mustFind fails the test unless the judge found a breach of this promise; "": of none.
func mustFind(t *testing.T, text string, found []violation, promise string) {
	t.Helper()
	var promises []string
	for _, v := range found {
		promises = append(promises, v.promise)
	}
	if all := strings.Join(promises, "; "); promise == "" && all != "" || !strings.Contains(all, promise) {
		t.Errorf("found %q, want %q in\n%s", all, promise, text)
	}
}

// The parts of histories. An attempt begins at a second, and has its atom and its job at once.
func runs(id string, at float64, terms string) string {
	return fmt.Sprintf("call %s %.2f atom=%s; in %s %.2f 5;", id, at, terms, id, at)
}

func ends0(id string, at float64) string {
	return fmt.Sprintf("out %s %.2f 0; end %s %.2f 0;", id, at, id, at)
}

func ran(id string, at float64, terms string) string { return runs(id, at, terms) + ends0(id, at+0.01) }

// holds is a script that has an atom by the library, and gives what it does at its end.
func holds(id string, at float64, terms string) string {
	return fmt.Sprintf("call %s %.2f atom=%s; got %s %.2f 0 acquired; in %s %.2f 5;", id, at, terms, id, at, id, at)
}

func gives(id string, at float64) string {
	return fmt.Sprintf("out %s %.2f 0; rel %s %.2f 0 acquired;", id, at, id, at)
}

func TestTheJudgeFindsEachBrokenPromiseAndNoOther(t *testing.T) {
	const killedAt2 = "end A 2.2 143; exit A 2.2 143;"
	busy := runs("A", 1, "a0") + "call B 1.02 atom=a0; end B 1.03 75;" + ends0("A", 1.04)
	outer := runs("A", 1, "a0") + runs("A.w", 1, "w0 limit=1000 enforce=true")
	for name, c := range map[string]struct{ history, promise string }{
		"one after the other":       {ran("A", 1, "a0") + ran("B", 1.03, "a0"), ""},
		"the second is denied":      {busy, ""},
		"in two atoms":              {runs("A", 1, "a0") + runs("B", 1, "a1") + ends0("A", 1.02) + ends0("B", 1.02), ""},
		"two at once":               {runs("A", 1, "a0") + runs("B", 1, "a0") + ends0("A", 1.02) + ends0("B", 1.02), "two jobs at once"},
		"an earlier job has a lock": {"call A 1 atom=a0; clash A 1.01 x B", "processes live"},
		"one that was ended inside another": {runs("A", 1, "a0") + "sig B 1 KILL;" + runs("B", 1, "a0") + "end B 1.02 137;" +
			ends0("A", 1.03), "two jobs at once"},

		"readers together": {runs("A", 1, "r0 mode=s") + runs("B", 1, "r0 mode=s") + ends0("A", 1.02) + ends0("B", 1.02), ""},
		"a writer among readers": {runs("A", 1, "r0 mode=s") + runs("B", 1, "r0 mode=s") + ends0("B", 1.02) + runs("C", 1.02, "r0 mode=x") +
			ends0("A", 1.03) + ends0("C", 1.03), "two jobs at once"},
		"a reader beside a writer": {runs("A", 1, "r0 mode=x") + runs("B", 1.02, "r0 mode=s") + ends0("B", 1.03) + ends0("A", 1.04), "two jobs at once"},
		"two of two slots":         {runs("A", 1, "s0 slots=2") + runs("B", 1, "s1 slots=2") + ends0("A", 1.02) + ends0("B", 1.02), ""},
		"three of two slots": {runs("A", 1, "s0 slots=2") + runs("B", 1, "s1 slots=2") + ran("C", 1.01, "s2 slots=2") +
			ends0("A", 1.02) + ends0("B", 1.02), "3 jobs at once where 2 may be"},

		"soon enough":                       {ran("A", 1, "a0") + ran("B", 2.03, "a0 elapsed=1000"), ""},
		"too soon":                          {ran("A", 1, "a0") + ran("B", 1.5, "a0 elapsed=1000"), "too soon"},
		"too soon after a script's release": {holds("A.1", 1, "a0") + gives("A.1", 1.02) + ran("B", 1.5, "a0 elapsed=1000"), "too soon"},
		"soon after a run that was killed":  {runs("A", 1, "a0") + "sig A 1.02 KILL; end A 1.03 137;" + ran("B", 1.5, "a0 elapsed=1000"), ""},
		"soon after a run that was taken over at its end": {runs("A", 1, "a0") + "call B 1.02 atom=a0 elapsed=1000 limit=0;" +
			ends0("A", 1.03) + "in B 1.04 5;" + ends0("B", 1.05), ""},
		"soon after a failure that does not count": {runs("A", 1, "a0 code=3 unstamps=true") + "out A 1.02 3; end A 1.03 3;" +
			ran("B", 1.5, "a0 elapsed=1000"), ""},

		"denied, and none held it":                   {ran("A", 1, "a0") + "call B 1.5 atom=a0; end B 1.51 75", "it was not held"},
		"busy, and none held it":                     {ran("A", 1, "a0") + "call B.1 1.5 atom=a0 elapsed=9000; got B.1 1.51 75 busy", "it was not held"},
		"busy after a death":                         {runs("A", 1, "a0") + "sig A 1 KILL; end A 1 137; call B.1 1 atom=a0; got B.1 1 75 busy", ""},
		"busy after a death and the next run":        {runs("A", 1, "a0") + "sig A 1 KILL; end A 1 137;" + ran("B", 2, "a0") + "call C.1 3 atom=a0; got C.1 3 75 busy", "it was not held"},
		"busy beside one that was denied":            {"call A 1 atom=a0; call B.1 1 atom=a0; got B.1 1 75 busy; end A 1 75", "it was not held"},
		"busy at another's second look":              {ran("C", 1, "a0") + "call A 1 atom=a0 elapsed=900; call B.1 1 atom=a0; got B.1 1 75 busy; end A 1 75", ""},
		"full, and no other has a slot":              {ran("A", 1, "s0 slots=2") + "call B.1 1.5 atom=s1 slots=2; got B.1 1.51 75 full", "it was not held"},
		"full beside another":                        {runs("A", 1, "s0 slots=1") + "call B.1 1 atom=s1 slots=1; got B.1 1.01 75 full;" + ends0("A", 2), ""},
		"denied as too soon":                         {"mark m 1;" + ran("A", 9, "a0") + "call B.1 9.5 atom=a0 elapsed=1000; got B.1 9.51 75 too-soon", ""},
		"denied as too soon though it is due":        {ran("A", 1, "a0") + "call B.1 9 atom=a0 elapsed=1000; got B.1 9.01 75 too-soon", "no completion was so near"},
		"denied as too soon beside a run that lasts": {"mark m 1;" + runs("A", 9, "a0") + "call B.1 9 atom=a0 elapsed=1000; got B.1 9 75 too-soon", ""},

		"ended before ExpireAfter": {runs("A", 1, "a0") + "call B 1.5 atom=a0 limit=1000; end A 1.6 143; exit A 1.6 143", "before ExpireAfter"},
		"ended at ExpireAfter":     {runs("A", 1, "a0") + "call B 2.1 atom=a0 limit=1000;" + killedAt2 + "in B 2.2 6;" + ends0("B", 2.2), ""},
		"ended at its own ExpireAfter by a run that says none": {runs("A", 1, "a0 limit=1000") + "call B 2.1 atom=a0;" + killedAt2 +
			"in B 2.2 6;" + ends0("B", 2.2), ""},
		"ended at its own ExpireAfter by a script that says never": {holds("A.1", 1, "a0 limit=1000") + "call B.1 2.1 atom=a0; exit A 2.2 143;" +
			"got B.1 2.2 0 acquired; in B.1 2.2 6;" + gives("B.1", 2.2), "ended by a signal"},
		"ended, though no newcomer may": {"call A 1 atom=a0; call B 1 atom=a0 limit=0; end B 1.01 75; in A 1.02 5;" + killedAt2, "before ExpireAfter"},
		"ended by the test":             {runs("A", 1, "a0") + "sig A 1.2 TERM 0; end A 1.21 143; exit A 1.21 143", ""},
		"a shell that crashes":          {holds("A.1", 1, "a0") + "exit A 1.02 139", ""},
		"a script no newcomer ends":     {holds("A.1", 1, "a0") + "exit A 1.02 143", "ended by a signal"},
		"a script ended after it has released": {holds("A.1", 1, "a0") + gives("A.1", 1.02) + "call B 1.03 atom=a0 limit=0; exit A 1.1 143",
			"holding nothing that had expired"},
		"a script ended whose atom it has lost": {holds("A.1", 1, "a0") + "call B 1.01 atom=a0 limit=0; out A.1 1.02 0;" +
			"rel A.1 1.03 75 lost; exit A 1.1 143", ""},
		"lost without another owner": {holds("A.1", 1, "a0") + "out A.1 1.02 0; rel A.1 1.03 75 lost", "denied, and its job ran"},
		"enforced":                   {runs("A", 1, "a0 limit=1000 enforce=true") + "end A 2.05 124; exit A 2.05 124", ""},
		"enforced too early":         {runs("A", 1, "a0 limit=1000 enforce=true") + "end A 1.5 124; exit A 1.5 124", "before ExpireAfter"},
		"a command that is a run of its own enforces":           {outer + "out A.w 2.03 0; out A 2.03 0; end A 2.05 124; exit A 2.05 124", ""},
		"a command that is a run of its own enforces too early": {outer + "end A 1.5 124; exit A 1.5 124", "before ExpireAfter"},

		"0 and never run":              {"call A 1 atom=a0; end A 1.02 0", "did not run to its end"},
		"75 and run":                   {runs("A", 1, "a0") + "out A 1.02 0; end A 1.02 75", "denied, and its job ran"},
		"75 and run, as the job says":  {runs("A", 1, "a0 code=75") + "out A 1.02 75; end A 1.02 75", ""},
		"another status than the job":  {runs("A", 1, "a0 code=3") + "out A 1.02 3; end A 1.02 0", "its job ended with 3"},
		"denied, and run after that":   {"call A 1 atom=a0; end A 1.02 75; in A 1.03 5", "its job ran after that"},
		"a helper stopped, and killed": {"call A 1 atom=g0; sig A 1.01 STOP 1; sig A 1.02 KILL 1; end A 1.03 19; exit A 1.03 19", ""},
		"a helper stopped":             {"call A 1 atom=g0; end A 1.03 19", "not one of those that can be"},
		"a call has failed":            {"call A 1 atom=a0; end A 1.02 71", "not one of those that can be"},
		"stuck with nothing to end":    {"call A 1 atom=a0; end A 1.02 77", "no process was to be ended"},
		"a verdict that there is not":  {"call A.1 1 atom=a0; got A.1 1.02 75 none", "with the verdict none"},
		"a lock names the denied":      {"call A.1 1 atom=a0; got A.1 1.02 75 busy; owns A.1 1.03 5", "told it holds none"},
		"noted twice by one process":   {runs("A", 1, "a0") + "in A 1.00 5;" + ends0("A", 1.02), ""},
		"run by two processes":         {runs("A", 1, "a0") + "in A 1.00 6;" + ends0("A", 1.02), "one attempt ran its job twice"},
		"run twice":                    {runs("A", 1, "a0") + "in A 1.02 6", "twice"},

		"a bystander ended":              {"stranger z1 1 5 143", "belongs to no job"},
		"a bystander ended on the stage": {"sender z1 1 7; stranger z1 1 5 143", "belongs to no job"},
		"a bystander ended from outside": {"sender z1 1 0; stranger z1 1 5 143", ""},
		"an atom is held for ever":       {"remains stage 1 a0 75", "cannot be taken again"},
		"a process stays for ever":       {"hangs stage 1 5", "does not come to its end"},
		"a program crashes":              {"trace A 1 panic", "crashed"},
		"an event without an attempt":    {"in A 1 5", "was not made"},
	} {
		t.Run(name, func(t *testing.T) { mustFind(t, c.history, judge(history(t, c.history)), c.promise) })
	}
}

func TestTermsAreReadAsTheyAreWritten(t *testing.T) {
	want := stormTerms{
		atom: "s12", shared: true, elapsed: 40e6, limit: 0, enforce: true,
		slots: 2, code: 3, denied: 99, unstamps: true, wait: 50e6,
	}
	if got := termsOf(strings.Fields(want.String())); got != want || got.family() != "s" {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestAViolationIsReportedWithTheEventsAroundIt(t *testing.T) {
	events := history(t, runs("A", 1, "a0")+"call C 1 atom=a1;"+runs("B", 1.01, "a0")+"out A 1.03 0")
	told := judge(events)[0].tell(events)
	if !strings.Contains(told, "=>") || !strings.Contains(told, "two jobs at once") || strings.Contains(told, "a1") {
		t.Error(told)
	}
}
