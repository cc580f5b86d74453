package protocol

import (
	"strings"
	"testing"
)

// history reads events, one a line.
func history(t *testing.T, text string) []stormEvent {
	t.Helper()
	var events []stormEvent
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		e, err := parseStorm(line)
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	return events
}

func TestTheJudgeFindsEachBrokenPromiseAndNoOther(t *testing.T) {
	for name, c := range map[string]struct{ history, promise string }{
		"one after the other": {`
			call A 1.00 atom=a0
			in A 1.01 5
			out A 1.02 0
			end A 1.03 0
			call B 1.03 atom=a0
			in B 1.04 6
			out B 1.05 0
			end B 1.06 0`, ""},
		"the second is denied": {`
			call A 1.00 atom=a0
			in A 1.01 5
			call B 1.02 atom=a0
			end B 1.03 75
			out A 1.04 0
			end A 1.05 0`, ""},
		"two at once": {`
			call A 1.00 atom=a0
			call B 1.00 atom=a0
			in A 1.01 5
			in B 1.01 6
			out A 1.02 0
			out B 1.02 0
			end A 1.03 0
			end B 1.03 0`, "two jobs at once"},
		"one that was ended inside another": {`
			call A 1.00 atom=a0
			call B 1.00 atom=a0
			in A 1.01 5
			sig B 1.01 KILL
			in B 1.01 6
			end B 1.02 137
			out A 1.03 0
			end A 1.03 0`, "two jobs at once"},
		"a shell that crashes": {`
			call A.1 1.00 atom=a0
			got A.1 1.01 0 acquired
			in A.1 1.01 5
			exit A 1.02 139`, ""},
		"a script that no newcomer ends": {`
			call A.1 1.00 atom=a0
			got A.1 1.01 0 acquired
			in A.1 1.01 5
			exit A 1.02 143`, "ended by a signal"},
		"in two atoms": {`
			call A 1.00 atom=a0
			call B 1.00 atom=a1
			in A 1.01 5
			in B 1.01 6
			out A 1.02 0
			out B 1.02 0
			end A 1.03 0
			end B 1.03 0`, ""},
		"an earlier job holds the pipe": {`
			call A 1.00 atom=a0
			clash A 1.01 x B`, "processes live"},
		"readers together": {`
			call A 1.00 atom=r0 mode=s
			call B 1.00 atom=r0 mode=s
			in A 1.01 5
			in B 1.01 6
			out A 1.02 0
			out B 1.02 0
			end A 1.03 0
			end B 1.03 0`, ""},
		"a writer among readers": {`
			call A 1.00 atom=r0 mode=s
			call B 1.00 atom=r0 mode=s
			call C 1.00 atom=r0 mode=x
			in A 1.01 5
			in B 1.01 6
			out B 1.02 0
			in C 1.02 7
			out A 1.03 0
			out C 1.03 0`, "two jobs at once"},
		"a reader beside a writer": {`
			call A 1.00 atom=r0 mode=x
			call B 1.00 atom=r0 mode=s
			in A 1.01 5
			in B 1.02 6
			out B 1.03 0
			out A 1.04 0`, "two jobs at once"},
		"two of two slots": {`
			call A 1.00 atom=s0 slots=2
			call B 1.00 atom=s1 slots=2
			in A 1.01 5
			in B 1.01 6
			out A 1.02 0
			out B 1.02 0`, ""},
		"three of two slots": {`
			call A 1.00 atom=s0 slots=2
			call B 1.00 atom=s1 slots=2
			call C 1.00 atom=s2 slots=2
			in A 1.01 5
			in B 1.01 6
			in C 1.01 7
			out C 1.02 0
			out A 1.02 0
			out B 1.02 0`, "3 jobs at once where 2 may be"},
		"soon enough": {`
			call A 1.00 atom=a0
			in A 1.01 5
			out A 1.02 0
			end A 1.03 0
			call B 2.00 atom=a0 elapsed=1000
			in B 2.03 5
			out B 2.04 0
			end B 2.05 0`, ""},
		"too soon": {`
			call A 1.00 atom=a0
			in A 1.01 5
			out A 1.02 0
			end A 1.03 0
			call B 1.50 atom=a0 elapsed=1000
			in B 1.51 5
			out B 1.52 0
			end B 1.53 0`, "too soon"},
		"too soon after a library's release": {`
			call A.1 1.00 atom=a0
			got A.1 1.00 0 acquired
			in A.1 1.01 5
			out A.1 1.02 0
			rel A.1 1.03 0 acquired
			call B 1.50 atom=a0 elapsed=1000
			in B 1.51 5
			out B 1.52 0
			end B 1.53 0`, "too soon"},
		"soon after a run that was killed": {`
			call A 1.00 atom=a0
			in A 1.01 5
			sig A 1.02 KILL
			end A 1.03 137
			call B 1.50 atom=a0 elapsed=1000
			in B 1.51 5
			out B 1.52 0
			end B 1.53 0`, ""},
		"soon after a run that was taken over at its end": {`
			call A 1.00 atom=a0
			in A 1.01 5
			call B 1.02 atom=a0 elapsed=1000 limit=0
			out A 1.03 0
			end A 1.04 0
			in B 1.04 5
			out B 1.05 0
			end B 1.06 0`, ""},
		"soon after a failure that does not count": {`
			call A 1.00 atom=a0 code=3 unstamps=true
			in A 1.01 5
			out A 1.02 3
			end A 1.03 3
			call B 1.50 atom=a0 elapsed=1000
			in B 1.51 5
			out B 1.52 0
			end B 1.53 0`, ""},
		"ended before ExpireAfter": {`
			call A 1.00 atom=a0
			in A 1.01 5
			call B 1.50 atom=a0 limit=1000
			end A 1.60 143
			exit A 1.60 143`, "before ExpireAfter"},
		"ended at ExpireAfter": {`
			call A 1.00 atom=a0
			in A 1.01 5
			call B 2.10 atom=a0 limit=1000
			end A 2.20 143
			exit A 2.20 143
			in B 2.20 6
			out B 2.20 0
			end B 2.20 0`, ""},
		"ended at its own ExpireAfter by a run that says none": {`
			call A 1.00 atom=a0 limit=1000
			in A 1.01 5
			call B 2.10 atom=a0
			end A 2.20 143
			exit A 2.20 143
			in B 2.20 6
			out B 2.20 0
			end B 2.20 0`, ""},
		"ended at its own ExpireAfter by a script that says never": {`
			call A.1 1.00 atom=a0 limit=1000
			got A.1 1.01 0 acquired
			in A.1 1.01 5
			call B.1 2.10 atom=a0
			exit A 2.20 143
			got B.1 2.20 0 acquired
			in B.1 2.20 6
			out B.1 2.20 0
			rel B.1 2.20 0 acquired`, "ended by a signal"},
		"ended, though no newcomer may": {`
			call A 1.00 atom=a0
			call B 1.00 atom=a0 limit=0
			end B 1.01 75
			in A 1.02 5
			end A 2.20 143
			exit A 2.20 143`, "before ExpireAfter"},
		"ended by the test": {`
			call A 1.00 atom=a0
			in A 1.01 5
			sig A 1.20 TERM 0
			end A 1.21 143
			exit A 1.21 143`, ""},
		"a script ended after it has released": {`
			call A.1 1.00 atom=a0
			got A.1 1.00 0 acquired
			in A.1 1.01 5
			out A.1 1.02 0
			rel A.1 1.03 0 acquired
			call B 1.03 atom=a0 limit=0
			exit A 1.10 143`, "holding nothing that had expired"},
		"a script ended whose atom it has lost": {`
			call A.1 1.00 atom=a0
			got A.1 1.00 0 acquired
			in A.1 1.01 5
			call B 1.01 atom=a0 limit=0
			out A.1 1.02 0
			rel A.1 1.03 75 lost
			exit A 1.10 143`, ""},
		"lost without another owner": {`
			call A.1 1.00 atom=a0
			got A.1 1.00 0 acquired
			in A.1 1.01 5
			out A.1 1.02 0
			rel A.1 1.03 75 lost`, "denied, and its job ran"},
		"enforced": {`
			call A 1.00 atom=a0 limit=1000 enforce=true
			in A 1.01 5
			end A 2.05 124
			exit A 2.05 124`, ""},
		"a command that is a run of its own enforces": {`
			call A 1.00 atom=a0
			call A.w 1.00 atom=w0 limit=1000 enforce=true
			in A 1.01 0
			in A.w 1.01 5
			out A.w 2.03 0
			out A 2.03 0
			end A 2.05 124
			exit A 2.05 124`, ""},
		"a command that is a run of its own enforces too early": {`
			call A 1.00 atom=a0
			call A.w 1.00 atom=w0 limit=1000 enforce=true
			in A 1.01 0
			in A.w 1.01 5
			end A 1.50 124
			exit A 1.50 124`, "before ExpireAfter"},
		"enforced too early": {`
			call A 1.00 atom=a0 limit=1000 enforce=true
			in A 1.01 5
			end A 1.50 124
			exit A 1.50 124`, "before ExpireAfter"},
		"0 and never run": {`
			call A 1.00 atom=a0
			end A 1.02 0`, "did not run to its end"},
		"75 and run": {`
			call A 1.00 atom=a0
			in A 1.01 5
			out A 1.02 0
			end A 1.02 75`, "denied, and its job ran"},
		"75 and run, as the job says": {`
			call A 1.00 atom=a0 code=75
			in A 1.01 5
			out A 1.02 75
			end A 1.02 75`, ""},
		"another status than the job's": {`
			call A 1.00 atom=a0 code=3
			in A 1.01 5
			out A 1.02 3
			end A 1.02 0`, "its job ended with 3"},
		"denied, and run after that": {`
			call A 1.00 atom=a0
			end A 1.02 75
			in A 1.03 5`, "its job ran after that"},
		"a helper was stopped and then killed": {`
			call A 1.00 atom=g0
			sig A 1.01 STOP 1
			sig A 1.02 KILL 1
			end A 1.03 19
			exit A 1.03 19`, ""},
		"a helper was stopped": {`
			call A 1.00 atom=g0
			end A 1.03 19`, "not one of those that can be"},
		"a call has failed": {`
			call A 1.00 atom=a0
			end A 1.02 71`, "not one of those that can be"},
		"stuck without a process to end": {`
			call A 1.00 atom=a0
			end A 1.02 77`, "no process was to be ended"},
		"a verdict that there is not": {`
			call A.1 1.00 atom=a0
			got A.1 1.02 75 none`, "with the verdict none"},
		"a denial, and the lock names the denied": {`
			call A.1 1.00 atom=a0
			got A.1 1.02 75 busy
			owns A.1 1.03 5`, "told it holds none"},
		"noted twice by one process": {`
			call A 1.00 atom=a0
			in A 1.01 5
			in A 1.01 5
			out A 1.02 0
			end A 1.03 0`, ""},
		"run by two processes": {`
			call A 1.00 atom=a0
			in A 1.01 5
			in A 1.01 6
			out A 1.02 0
			end A 1.03 0`, "one attempt ran its job twice"},
		"run twice": {`
			call A 1.00 atom=a0
			in A 1.01 5
			in A 1.02 6`, "twice"},
		"a bystander is ended": {`stranger z1 1.00 5 143`, "belongs to no job"},
		"a bystander is ended by a process on the stage": {`
			sender z1 1.00 7
			stranger z1 1.00 5 143`, "belongs to no job"},
		"a bystander is ended from outside the stage": {`
			sender z1 1.00 0
			stranger z1 1.00 5 143`, ""},
		"an atom is held for ever":    {`remains stage 1.00 a0 75`, "cannot be taken again"},
		"a process stays for ever":    {`hangs stage 1.00 5`, "does not come to its end"},
		"a program crashes":           {`trace A 1.00 panic`, "crashed"},
		"an event without an attempt": {`in A 1.00 5`, "was not made"},
	} {
		t.Run(name, func(t *testing.T) {
			var promises []string
			for _, v := range judge(history(t, c.history)) {
				promises = append(promises, v.promise)
			}
			found := strings.Join(promises, "; ")
			if c.promise == "" && found != "" || !strings.Contains(found, c.promise) {
				t.Errorf("found %q, want %q", found, c.promise)
			}
		})
	}
}

func TestTermsAreReadAsTheyAreWritten(t *testing.T) {
	want := stormTerms{
		atom: "s12", shared: true, elapsed: 40e6, limit: 0, enforce: true,
		slots: 2, code: 3, denied: 99, unstamps: true, wait: 50e6,
	}
	if got := termsOf(strings.Fields(want.String())); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := want.family(); got != "s" {
		t.Errorf("the family is %q", got)
	}
}

func TestAViolationIsReportedWithTheEventsAroundIt(t *testing.T) {
	events := history(t, `
		call A 1.00 atom=a0
		call C 1.00 atom=a1
		in A 1.01 5
		call B 1.01 atom=a0
		in B 1.02 6
		out A 1.03 0`)
	told := judge(events)[0].tell(events)
	if !strings.Contains(told, "=>") || !strings.Contains(told, "two jobs at once") || strings.Contains(told, "a1") {
		t.Error(told)
	}
}
