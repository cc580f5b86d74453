package main

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"adlock/lib/atom"
	"adlock/lib/insight/history"
	"adlock/lib/learn"
	"adlock/lib/limit"
	"adlock/lib/policy"
	"adlock/lib/runlog"
	"adlock/test/support/golden"
	"adlock/test/support/helper"
	"adlock/test/support/story"
)

// odd is an atom whose operand has bytes that are no text, markup, and a control character.
var odd = atom.Atom{Program: "p", Host: "dax", Operator: "run", Operand: "<a&b> \"c\\d\"\n\x1b\xff\xfe é"}

func TestEventsAsJSONMatchTheGoldenFile(t *testing.T) {
	p := newPlace(t)
	s := &story.Story{}
	job := s.Job("p run "+odd.Operand, 1500*time.Millisecond, limit.Never)
	job.Run(time.Second, 61250*time.Millisecond, 3)
	job.Hang(time.Hour, 2*time.Hour+time.Nanosecond, 4711)
	job.Deny(4*time.Hour, "too-soon", 1, 0)
	job.Add(5*time.Hour, runlog.Event{Kind: runlog.Starved, Count: 10, Verdict: "busy", Wait: time.Minute, Reason: "denied 10 times"})
	job.Add(6*time.Hour, runlog.Event{Kind: runlog.Clock, PID: 7, Age: runlog.Some(-1100 * time.Hour)})
	p.write(t, s)
	golden.Check(t, "events.json", p.ok(t, "log", "--json"))
}

func TestEveryFieldOfAnEventIsInJSON(t *testing.T) {
	p := newPlace(t)
	log := runlog.Log{Dir: p.dir, Host: "dax"}
	fields := reflect.TypeFor[runlog.Event]()
	for i := range fields.NumField() {
		e := runlog.Event{Time: story.Midnight, Kind: "some"}
		switch f := reflect.ValueOf(&e).Elem().Field(i); f.Kind() {
		case reflect.String:
			f.SetString("text")
		case reflect.Int, reflect.Int64:
			f.SetInt(1)
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Struct:
			if set := f.FieldByName("Set"); set.IsValid() {
				set.SetBool(true)
			}
		}
		must(t, log.Append(e))
	}
	lines := strings.Split(p.ok(t, "log", "--json"), "\n")
	for i := range fields.NumField() {
		var object map[string]any
		key, _, _ := strings.Cut(fields.Field(i).Tag.Get("log"), ",")
		if err := json.Unmarshal([]byte(lines[i]), &object); err != nil || object[key] == nil {
			t.Errorf("%s is not in %s (%v)", key, lines[i], err)
		}
	}
}

func TestStatusAsJSONMatchesTheGoldenFile(t *testing.T) {
	t.Parallel()
	limits := policy.Limits{IfElapsed: 15 * time.Minute, ExpireAfter: limit.Never, Source: policy.Learned}
	rows := []*row{
		{Called: atom.Called{Name: "p.dax.run.x"}, State: "damaged", Why: "no such format"},
		{Called: atom.Called{Name: "p.dax.run.y", Atom: odd}, State: "idle", Completed: story.Midnight.Add(123456789), DueIn: runlog.Some(-90 * time.Second),
			Limits: limits, LimitsKnown: true, Takeable: true, Why: "due"},
		{Called: atom.Called{Name: "p.dax.run.z"}, State: "running", Held: true, Age: 3250 * time.Millisecond, Since: story.Midnight, Owner: 4711, UID: 1 << 30,
			DueIn: runlog.Some(time.Duration(0)), Why: "busy", Readers: 2, Slot: 1, Slots: 3, Failed: 2,
			Last:    &history.Run{Outcome: history.Failed, End: story.Midnight, Status: runlog.Some(137), Signal: "KILL"},
			Waiting: []waiter{{pid: 7, since: story.Midnight, most: time.Minute}, {pid: 8, since: story.Midnight, most: limit.Never}}},
	}
	golden.Check(t, "status.json", string(arrayOf(rows, (*row).object)))
}

func TestTuneAsJSONMatchesTheGoldenFile(t *testing.T) {
	t.Parallel()
	all := []*tuned{
		{Called: atom.Called{Name: "p.dax.run.x"}, learned: learned(), ifElapsed: limit.Never, asksExpireAfter: true},
		{Called: atom.Called{Name: "p.dax.run.y", Atom: odd}, learned: learned(), ifElapsed: 15 * time.Minute, asksIfElapsed: true},
	}
	golden.Check(t, "tune.json", string(arrayOf(all, (*tuned).object)))
}

func TestMistakesAsJSONAreOneArray(t *testing.T) {
	p := newPlace(t)
	path := file(t, "odd", "* * * * *  adlock run --name \"$(date)\" -- /bin/true\n")
	p.command("check", "--json", path).Run(t).Is(t, 1, `[{"file":"`+path+`","line":1,"what":"a name that changes",`+
		`"reason":"$(date) makes another lock in each run, so no run excludes another","cure":"name what is locked, not the run"}]`+"\n", "")
	p.command("check", "--json", file(t, "good", "* * * * *  /bin/true\n")).Run(t).Is(t, 0, "[]\n", "")
}

func TestTheDoctorsFindingsAsJSONAreOneArray(t *testing.T) {
	p := newPlace(t)
	c := p.command("doctor", "--json")
	c.Env = append(c.Env, "ADLOCK_LOGDIR="+p.dir+"/not/there")
	r := c.Run(t)
	found := regexp.MustCompile(`^\[\{.*\{"grade":("ok","what":"lock directory","text":"` + p.dir + `[^"]*"|"warn","what":"lock directory","text":"` + p.dir + `[^"]*","cure":"[^"]+")\},.*` +
		`\{"grade":"fail","what":"runlog","text":"[^"]+","cure":"[^"]+"\},.*\}\]\n$`)
	if !json.Valid([]byte(r.Out)) || !found.MatchString(r.Out) || r.Err != "" {
		t.Errorf("%+v", r)
	}
}

func learned() learn.State {
	var s learn.State
	for range 10 {
		s.Succeeded(time.Minute)
	}
	return s
}

func TestNoOutputHasUnprintableCharacters(t *testing.T) {
	p := newPlace(t)
	const odd = "a\u009bb\u202ec\u2028d\x7fe\U000e0041f\ufeff"
	run := p.command("run", "--program=p"+odd, "--host=h"+odd, "--operator=o"+odd, "--operand="+odd, "--if-elapsed=1h", "--verbose", "--", "true")
	refused := p.command("status", odd)
	outputs := map[string]string{}
	for name, c := range map[string]helper.Command{"run": run, "denied": run, "error": refused} {
		r := c.Run(t)
		outputs[name] = r.Out + r.Err
	}
	for _, verb := range []string{
		"status", "status --json", "log", "log --json", "report", "report --json", "report --csv",
		"report --html -", "timeline", "timeline --svg -", "metrics", "tune", "tune --json",
	} {
		outputs[verb] = p.ok(t, strings.Fields(verb)...)
	}
	last, _ := filepath.Glob(p.dir + "/last.*")
	p.ok(t, "pause", "--for", "never", "--why", odd, strings.TrimPrefix(filepath.Base(last[0]), "last."))
	outputs["paused"] = p.ok(t, "status")
	has(t, outputs["paused"], "paused: ")
	tab := file(t, "tab"+odd, "* * * * * flock -n /run/x /bin/a; '/bin/b"+odd+"'\n")
	outputs["check"] = p.command("check", tab).Run(t).Out
	has(t, outputs["check"], ":1: only the first is locked: ")
	for verb, text := range outputs {
		for _, r := range text {
			if unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) && r != '\n' {
				t.Errorf("%s: %+q in %+q", verb, r, text)
				break
			}
		}
	}
}
