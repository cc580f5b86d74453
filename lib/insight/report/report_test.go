package report

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"adlock/lib/insight/history"
	"adlock/lib/limit"
	"adlock/lib/runlog"
	"adlock/test/support/golden"
	"adlock/test/support/must"
	"adlock/test/support/story"
)

// Times are shown in local time.
func TestMain(m *testing.M) {
	time.Local = time.UTC
	os.Exit(m.Run())
}

func build(t *testing.T, s *story.Story, since, until time.Duration) *Report {
	t.Helper()
	return must.Get(Build(s.Events(), Options{Since: story.Midnight.Add(since), Now: story.Midnight.Add(until)}))(t)
}

func TestReportOfADayMatchesTheGoldenFiles(t *testing.T) {
	r := build(t, story.Day(), 0, 24*time.Hour)
	golden.Check(t, "day.txt", r.Text(false))
	golden.Check(t, "day.json", encoded(t, r))
	golden.Check(t, "day.csv", sheet(t, r))
}

func encoded(t *testing.T, r *Report) string {
	t.Helper()
	var w strings.Builder
	e := json.NewEncoder(&w)
	e.SetEscapeHTML(false)
	must.Do(t, e.Encode(r.Object()))
	return w.String()
}

func sheet(t *testing.T, r *Report) string {
	t.Helper()
	var w strings.Builder
	must.Do(t, CSV(&w, false, r))
	return w.String()
}

// job builds a report of one job.
func job(t *testing.T, ifElapsed, expireAfter time.Duration, play func(*story.Job)) *summary {
	t.Helper()
	s := &story.Story{}
	play(s.Job("p run x", ifElapsed, expireAfter))
	return build(t, s, 0, 24*time.Hour).atoms[0]
}

func TestAReportBeginsWithAtomsThatNeedAttention(t *testing.T) {
	s := &story.Story{}
	play := func(words string, play func(*story.Job)) { play(s.Job(words, 0, time.Hour)) }
	play("a run well", func(j *story.Job) { j.Run(0, time.Minute, 0) })
	play("b run starves", func(j *story.Job) { j.Deny(0, "full", 20, time.Minute) })
	play("c run recovered", func(j *story.Job) { j.Run(0, time.Minute, 1); j.Run(time.Hour, time.Minute, 0) })
	play("d run failed", func(j *story.Job) { j.Run(0, time.Minute, 0); j.Run(time.Hour, time.Minute, 1) })
	play("e run hung", func(j *story.Job) { j.Hang(0, time.Hour, 7) })
	play("f run stuck", func(j *story.Job) { j.Deny(0, "stuck", 1, 0) })
	var order []string
	for _, a := range build(t, s, 0, 24*time.Hour).atoms {
		order = append(order, a.Operand)
	}
	if got, want := strings.Join(order, " "), "failed hung stuck starves well recovered"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// part adds a part of a history to a job.
type part func(*story.Job)

func runs(n int, every, held time.Duration, status int) part {
	return func(j *story.Job) {
		for i := range n {
			j.Run(time.Duration(i)*every, held, status)
		}
	}
}

func runAt(at, held time.Duration, status int) part {
	return func(j *story.Job) { j.Run(at, held, status) }
}

func hangAt(at, held time.Duration) part { return func(j *story.Job) { j.Hang(at, held, 7) } }

func denials(at time.Duration, why string, n int, every time.Duration) part {
	return func(j *story.Job) { j.Deny(at, why, n, every) }
}

// again adds a part n times, at intervals of every: what makes the part that begins at a time.
func again(n int, every time.Duration, what func(at time.Duration) part) part {
	return func(j *story.Job) {
		for i := range n {
			what(time.Duration(i) * every)(j)
		}
	}
}

// deniedFrom makes denials, for again, that begin so long after the time.
func deniedFrom(after time.Duration, why string, n int, every time.Duration) func(at time.Duration) part {
	return func(at time.Duration) part { return denials(at+after, why, n, every) }
}

func TestAReportAdvisesOnlyIfTheHistoryGivesAReason(t *testing.T) {
	const s, m, h = time.Second, time.Minute, time.Hour
	late := func(j *story.Job) {
		j.Open(0)
		j.Add(3*h, runlog.Event{Kind: runlog.Overdue, Age: runlog.Some(3 * h)})
	}
	for _, c := range []struct {
		claim                  string
		ifElapsed, expireAfter time.Duration
		play                   []part
		kind, words            string // "": no advice
	}{
		{"all is well", 15 * m, h, []part{runs(20, 20*m, 3*m, 0), denials(m, "busy", 3, m)}, "", ""},
		{"never completed", 0, 21 * m,
			[]part{again(5, h, func(at time.Duration) part { return hangAt(at, 21*m) })}, "expire-after",
			"no run has completed, and 5 of 5 were ended by force (ExpireAfter is 21m): " +
				"find out why the job does not end, as a longer limit may only end it later"},
		{"close to the limit", 0, 20 * m, []part{runs(19, h, 18*m, 0), hangAt(19*h, 20*m)},
			"expire-after", "raise ExpireAfter to 40m"},
		{"hangs at times", 0, 2 * h, []part{runs(10, h, 3*m, 0), hangAt(11*h, 2*h)}, "", ""},
		{"a batch of 20 minutes, where five runs took 4 ms", 0, 15 * m,
			[]part{runs(5, h, 4*s/1000, 0), hangAt(5*h, 15*m)}, "", ""},
		{"cron asks each minute for what is to run once a day", 24 * h, limit.Never,
			[]part{runs(1, 0, m, 0), denials(2*m, "too-soon", 1200, m)}, "", ""},
		{"cron keeps a daemon alive", 0, 100 * h,
			[]part{runs(2, 8*h, 7*h, 0), again(2, 8*h, deniedFrom(m, "busy", 400, m))}, "", ""},
		{"what was stuck has been seen to", 0, h, []part{denials(0, "stuck", 3, m), runAt(h, m, 0)}, "", ""},
		{"what was stuck has been cleared", 0, h,
			[]part{denials(0, "stuck", 3, m), func(j *story.Job) { j.Add(h, runlog.Event{Kind: runlog.Clear}) }}, "", ""},
		{"failed, and was mended", 0, h, []part{runs(5, h, m, 7), runAt(6*h, m, 0)}, "", ""},
		{"overdue", 0, limit.Never, []part{late}, "overdue", "a run was overdue (told once, at 3h at the latest): if it hung"},
		{"overdue under a limit", 0, 4 * h, []part{late}, "overdue", "at 3h at the latest): its ExpireAfter is 4h: if it is meant"},
		{"spam", 15 * m, h, []part{runs(1, 0, m, 0), denials(2*m, "too-soon", 100, 10*s)},
			"spam", "asked for every 10s (median) though IfElapsed is 15m"},
		{"spam in one instant", 15 * m, h, []part{runs(1, 0, m, 0), denials(2*m, "too-soon", 100, 0)},
			"spam", "asked for every 1ms (median) though IfElapsed is 15m"},
		{"cron asks every minute, which is as it should be", 15 * m, h,
			[]part{runs(20, 20*m, m, 0), again(20, 20*m, deniedFrom(2*m, "too-soon", 14, m))}, "", ""},
		{"every second start is denied", m, h,
			[]part{runs(20, 2*m, 3*s, 0), again(20, 2*m, deniedFrom(m, "too-soon", 1, 0))},
			"from-start", "asked for every 1m, and IfElapsed 1m counts from completion: " +
				"every second start is denied; --from-start"},
		{"a longer interval from the start", m, h, []part{runs(20, 2*m, 3*s, 0), again(20, 2*m, deniedFrom(m, "too-soon", 1, 0)),
			func(j *story.Job) {
				j.Add(h, runlog.Event{Kind: runlog.Deny, IfElapsed: runlog.Some(m), FromStart: true})
			}}, "", ""},
		{"asked for by hand once more", m, h, []part{runs(20, m, s/2, 0), denials(21*m, "too-soon", 2, s)}, "", ""},
		{"limits cross", 15 * m, 5 * m, []part{runs(1, 0, m, 0)}, "limits", "ExpireAfter 5m is below IfElapsed 15m"},
		{"once only", limit.Never, 5 * m, []part{runs(1, 0, m, 0)}, "", ""},
		{"starves", 0, 10 * h, []part{runs(1, 0, 5*h, 0), denials(m, "full", 12, 10*m)},
			"starving", "denied 12 times in a row over 1h50m, until 2026-11-20 01:51:00: the program has too few slots"},
		{"overruns", 0, 10 * h,
			[]part{runs(4, 30*m, 25*m, 0), again(4, 30*m, deniedFrom(5*m, "busy", 5, 5*m))},
			"overrun", "asked for every 5m (medians) though a run takes 25m"},
		{"denials that are too soon are no starvation", h, 2 * h, []part{runs(1, 0, m, 0),
			denials(m, "busy", 4, s), denials(2*m, "too-soon", 50, m), denials(h, "busy", 4, s)}, "", ""},
		{"fails", 0, h, []part{runs(1, 0, m, 0), again(3, h, func(at time.Duration) part { return runAt(at+h, m, 7) })},
			"failing", "the last 3 runs failed (the last one: status 7)"},
		{"stuck", 0, h, []part{runs(1, 0, m, 0), denials(h, "stuck", 1, m)}, "stuck", "adlock clear p.dax.run.x"},
		{"dies", 0, h, []part{again(3, h, func(at time.Duration) part { return func(j *story.Job) { j.Die(at, m, 7) } })},
			"orphans", "3 of 3 runs died without a release"},
	} {
		a := job(t, c.ifElapsed, c.expireAfter, func(j *story.Job) {
			for _, play := range c.play {
				play(j)
			}
		})
		given := slices.ContainsFunc(a.Advice, func(advice advice) bool { return advice.Kind == c.kind && strings.Contains(advice.Text, c.words) })
		if c.kind == "" && len(a.Advice) > 0 || c.kind != "" && !given {
			t.Errorf("%s: %q", c.claim, a.Advice)
		}
	}
}

func TestAJobThatWasNotRunHasNotFailed(t *testing.T) {
	a := job(t, 0, time.Hour, func(j *story.Job) {
		j.Run(0, time.Minute, 7)
		for i := range 3 {
			j.Add(time.Duration(i+1)*time.Hour, runlog.Event{Kind: runlog.NotRun, PID: 7, Status: runlog.Some(74)})
		}
	})
	if got := a.runs(false); got != "1: 1 failed, 3 not run" || len(a.Advice) > 0 || a.trouble() != 2 {
		t.Errorf("%s; %q", got, a.Advice)
	}
}

func TestAReportCountsOnlyWhatFallsIntoItsPeriod(t *testing.T) {
	s := &story.Story{}
	j := s.Job("p run x", 0, 10*time.Hour)
	j.Run(0, time.Hour, 0)
	j.Run(2*time.Hour, 2*time.Hour, 0)
	j.Deny(150*time.Minute, "busy", 4, 20*time.Minute)
	j.Open(5 * time.Hour)
	r := build(t, s, 3*time.Hour, 6*time.Hour)
	a := r.atoms[0]
	if a.Runs != 2 || a.Outcomes[history.Succeeded] != 1 || a.Outcomes[history.Running] != 1 || a.Denials.Busy != 2 {
		t.Errorf("%d runs, %v, %d busy", a.Runs, a.Outcomes, a.Denials.Busy)
	}
	if !r.from.Equal(story.Midnight.Add(3*time.Hour)) || a.Held != 2*time.Hour {
		t.Errorf("from %v, held %v", r.from, a.Held)
	}
	if r := build(t, s, -time.Hour, 6*time.Hour); !r.from.Equal(story.Midnight) || r.atoms[0].Held != 4*time.Hour {
		t.Errorf("before all that is recorded: from %v, held %v", r.from, r.atoms[0].Held)
	}
}

func TestTimeThatSeveralRunsShareIsHeldOnce(t *testing.T) {
	a := job(t, 0, limit.Never, func(j *story.Job) {
		for begin, end := range map[time.Duration]time.Duration{0: 4, 1: 2, 3: 5, 6: 7} {
			j.Run(begin*time.Hour, (end-begin)*time.Hour, 0)
		}
	})
	if a.Held != 6*time.Hour || a.Runs != 4 {
		t.Errorf("%d runs held it for %v", a.Runs, a.Held)
	}
}

func TestASpreadsheetTakesNoNameForAFormula(t *testing.T) {
	s := &story.Story{}
	for _, operand := range []string{
		"=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "\x1b[2J\xff", "a,=b\"c", "plain", `\x0a=1`,
	} {
		s.Job("=p -o "+operand, 0, limit.Never).Add(0, runlog.Event{Kind: runlog.Empty})
	}
	text := sheet(t, build(t, s, 0, time.Hour))
	if strings.ContainsFunc(text, func(c rune) bool { return c < ' ' && c != '\n' }) || !utf8.ValidString(text) {
		t.Errorf("%q", text)
	}
	rows := must.Get(csv.NewReader(strings.NewReader(text)).ReadAll())(t)
	var operands []string
	for _, row := range rows[1:] {
		for _, field := range row {
			if field != "" && strings.ContainsAny(field[:1], "=+-@") {
				t.Errorf("%q is a formula", field)
			}
		}
		operands = append(operands, row[3])
	}
	slices.Sort(operands)
	want := []string{"'+1", "'-1", "'=1+1", "'@SUM(A1)", `\\x0a=1`, `\x09=1`, `\x0a=1`, `\x0d=1`, `\x1b[2J\xff`, `a,=b"c`, "plain"}
	if !slices.Equal(operands, want) {
		t.Errorf("got %q\nwant %q", operands, want)
	}
}

func TestAReportIsBuiltDespiteErrorsAndDamagedLines(t *testing.T) {
	events := func(yield func(runlog.Event, error) bool) {
		_ = yield(runlog.Event{}, &runlog.DamagedLine{}) &&
			yield(runlog.Event{Time: story.Midnight, Kind: runlog.Empty, Program: "p", Host: "h", Operator: "o", Operand: "x"}, nil) &&
			yield(runlog.Event{}, os.ErrPermission)
	}
	r, err := Build(events, Options{Now: story.Midnight})
	if err != os.ErrPermission || r.Damaged != 1 || len(r.atoms) != 1 {
		t.Errorf("%v, %+v", err, r)
	}
	earlier := Options{Since: story.Midnight.Add(-2 * time.Hour), Now: story.Midnight.Add(-time.Hour)} // the clock was set back
	if r, _ := Build(events, earlier); !strings.HasSuffix(r.period(), " (1h)") {
		t.Error(r.period())
	}
}

// tag matches an element of a page.
var tag = regexp.MustCompile(`<[a-zA-Z][^>]*>`)

func TestTheHTMLReportIsSelfContainedAndEscapesNames(t *testing.T) {
	s := story.Day()
	for _, words := range []string{
		`p "o'><script>alert(1)</script> <img src=x onerror=alert(1)>`, `<b> run </style><svg onload=alert(1)>`, "p run a\x1b[2Jb\u202ec", `p run {{.}} &amp;`,
	} {
		s.Job(words, 0, time.Hour).Hang(0, 2*time.Hour, 7)
	}
	text := string(pageOf(t, s, 24*time.Hour))
	for _, element := range tag.FindAllString(text, -1) {
		name := strings.ToLower(strings.Trim(strings.Fields(element)[0], "<>/"))
		switch {
		case slices.Contains([]string{"script", "img", "iframe", "object", "embed", "base", "form", "input", "b", "image", "use", "foreignobject"}, name):
			t.Errorf("the page has %s", element)
		case regexp.MustCompile(`\s(on\w+|src|style)=`).MatchString(regexp.MustCompile(`"[^"]*"`).ReplaceAllString(element, `""`)):
			t.Errorf("the page has %s", element)
		case name == "link" && element != `<link rel="icon" href="data:,">`, name == "a" && !strings.HasPrefix(element, `<a href="#atom-`):
			t.Errorf("the page leads to %s", element)
		}
	}
	if strings.Contains(text, "url(") || strings.Contains(text, "@import") || strings.ContainsAny(text, "\x1b\u202e") {
		t.Error("the page fetches something, or has control characters")
	}
	for _, want := range []string{
		"prefers-color-scheme:dark", "5 of 6 were ended by force (ExpireAfter is 40m): find out why", "1004", "IfElapsed is 15m, ExpireAfter is 40m", "1000: 1000 too soon",
		"p run {{.}} &amp;amp;", "a?[2Jb?c", "Runtimes and limits of backup run /srv/data", `name="viewport"`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("nothing says %q", want)
		}
	}
}

func pageOf(t *testing.T, s *story.Story, until time.Duration) []byte {
	t.Helper()
	o := ChartOptions{Until: story.Midnight.Add(until), Columns: SVGColumns}
	chart := must.Get(BuildChart(s.Events(), o))(t)
	return must.Get(build(t, s, 0, until).HTML(chart))(t)
}

func TestAnHTMLReportWithoutRunsHasNoChartOfRuntimes(t *testing.T) {
	empty, denials := &story.Story{}, &story.Story{}
	denials.Job("p run x", 0, time.Hour).Deny(time.Minute, "full", 3, time.Minute)
	nothing, denied := string(pageOf(t, empty, time.Hour)), string(pageOf(t, denials, time.Hour))
	if !strings.Contains(nothing, "Nothing is recorded of this period") || strings.Contains(nothing, "<svg") {
		t.Error(nothing)
	}
	if !strings.Contains(denied, "3: 3 full") || strings.Contains(denied, "Runtimes and limits") ||
		strings.Contains(denied, "NaN") {
		t.Error(denied)
	}
}
