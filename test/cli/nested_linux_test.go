package cli

import (
	"os"
	"strings"
	"testing"

	"adlock/lib/run"
	"adlock/test/support/helper"
)

// nested returns a command whose job, named a, of the program `job`, runs the script first and then the
// helper program with the words; status returns the status of that nested run.
func (s *stage) nested(options, first string, words ...string) (status func() string, c helper.Command) {
	s.Helper()
	inner := first + helper.Binary(s) + " run --program job " + strings.Join(words, " ") + " true"
	c = s.command(append(job(strings.Fields(options)...), "sh", "-c", inner+`; echo $? >"$0.new"; mv "$0.new" "$0"`, s.dir+"/status")...)
	return func() string {
		text, _ := os.ReadFile(s.dir + "/status")
		return strings.TrimSpace(string(text))
	}, c
}

func TestAJobInheritsNoSettingOfItsOwnLock(t *testing.T) {
	s := newStage(t)
	kept := map[string]string{
		"ADLOCK_LOGDIR": s.dir, "ADLOCK_STORE": s.locks, "ADLOCK_VERBOSE": "1", "ADLOCK_DIR": s.locks,
		"ADLOCK_HOST": host, "ADLOCK_HOOK": "true", "ADLOCK_HOOK_RUNS": "1", "ADLOCK_SYSLOG": "1",
	}
	said := map[string]string{
		"ADLOCK_PROGRAM": "p", "ADLOCK_OPERATOR": "o", "ADLOCK_OPERAND": "x", "ADLOCK_EXIT_DENIED": "7", "ADLOCK_JITTER": "0", "ADLOCK_ONCE_PER": "1m",
		"ADLOCK_IF_ELAPSED": "1m", "ADLOCK_EXPIRE_AFTER": "1h", "ADLOCK_WAIT": "forever", "ADLOCK_SLOTS": "1", "ADLOCK_NOW": "1000000000",
		"ADLOCK_PAUSE": "1s", "ADLOCK_STARVING": "3", "ADLOCK_NOTICE": "1h", "ADLOCK_FLOCK": s.dir,
	}
	words := []string{"run", "env"}
	for variable, value := range kept {
		words = append(words, variable+"="+value)
	}
	for _, o := range run.Options() {
		switch {
		case kept[o.Env] != "":
		case said[o.Env] != "":
			words = append(words, o.Env+"="+said[o.Env])
		case o.Arg == "":
			words = append(words, o.Env+"=0")
		case o.Env != "ADLOCK_NAME": // in a run of its own: it excludes ADLOCK_OPERAND
			t.Errorf("this test has no value for %s", o.Env)
		}
	}
	out := "\n" + s.want(0, words...).Out + s.want(0, "ADLOCK_NAME=x", "run", "env").Out
	for variable, value := range kept {
		if !strings.Contains(out, "\n"+variable+"="+value+"\n") {
			t.Errorf("%s is not inherited", variable)
		}
	}
	for _, o := range run.Options() {
		if kept[o.Env] == "" && strings.Contains(out, "\n"+o.Env+"=") {
			t.Errorf("%s is inherited", o.Env)
		}
	}
}

func TestANestedRunDoesNotHangAtTheSlotOfItsOwnJob(t *testing.T) {
	const orphan = `kill -KILL $PPID; while kill -0 $PPID 2>/dev/null; do sleep 0.05; done; `
	given := []string{"--name", "b", "--slots", "1", "--verbose", "--wait"}
	for claim, c := range map[string]struct {
		outer, first string // options of the outer run; what its job does first
		inner        []string
		env          []string
		want         string
	}{
		"inherited": {inner: []string{"--name", "b"},
			env: []string{"ADLOCK_SLOTS=1", "ADLOCK_WAIT=forever"}, want: "0"},
		"given": {outer: "--slots 1", inner: append(given, "forever"), want: "75"},
		"given, after its supervisor was killed": {outer: "--slots 1", first: orphan, inner: append(given, "forever"),
			want: "75"},
		"given, for some time": {outer: "--slots 1", inner: append(given, "1s"), want: "75"},
	} {
		t.Run(claim, func(t *testing.T) {
			s := newStage(t)
			status, command := s.nested(c.outer, c.first, c.inner...)
			command.Env = append(command.Env, c.env...)
			r := command.Run(s)
			helper.Eventually(t, "the nested run has ended", func() bool { return status() != "" })
			told := oneLine(r.Err) && strings.Contains(r.Err, "full: an atom of job is running")
			if status() != c.want || c.first == "" && c.want != "0" && !told {
				t.Errorf("the nested run ended with %q: %s", status(), r.Err)
			}
		})
	}
}

func TestANestedRunDoesNotWaitForeverForItsOwnAtom(t *testing.T) {
	for claim, options := range map[string][2]string{"an owner": {"", ""}, "a reader": {"--shared", ""}, "a writer": {"", "--shared"}} {
		t.Run(claim, func(t *testing.T) {
			s := newStage(t)
			status, c := s.nested(options[0], "", "--name", "a", "--wait", "forever", "--verbose", options[1])
			if r := c.Run(s); status() != "75" || !oneLine(r.Err) || !strings.Contains(r.Err, "busy: ") {
				t.Errorf("the nested run ended with %q: %s", status(), r.Err)
			}
		})
	}
}
