package report

import (
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"adlock/lib/atom"
	"adlock/lib/insight/history"
	"adlock/lib/limit"
	"adlock/lib/runlog"
	"adlock/test/support/golden"
	"adlock/test/support/must"
	"adlock/test/support/story"
)

// chartOf is the chart of a story from midnight on.
func chartOf(t *testing.T, s *story.Story, until time.Duration, o ChartOptions) *Chart {
	t.Helper()
	o.Since, o.Until = story.Midnight, story.Midnight.Add(until)
	return must.Get(BuildChart(s.Events(), o))(t)
}

func dayChart(t *testing.T, columns int) *Chart {
	t.Helper()
	return chartOf(t, story.Day(), 24*time.Hour, ChartOptions{Columns: columns})
}

func TestLanesOfSimilarAtomsHaveDistinctNames(t *testing.T) {
	events := func(yield func(runlog.Event, error) bool) {
		for i, place := range []string{"dax /srv/a/data", "vax /srv/a/data", "dax /home/user/projects/one make all", "dax /home/user/projects/two make all"} {
			host, operand, _ := strings.Cut(place, " ")
			e := runlog.Event{
				Time: story.Midnight.Add(time.Minute), Kind: runlog.Release, Program: "job", Operator: "run", Operand: operand, Host: host,
				Token: strconv.Itoa(i), Duration: runlog.Some(time.Second),
			}
			if !yield(e, nil) {
				return
			}
		}
	}
	chart := must.Get(BuildChart(events, ChartOptions{Until: story.Midnight.Add(time.Hour), Columns: ChartColumns(80)}))(t)
	picture := ChartText{Width: 80, Unicode: true}.Render(chart)
	for _, want := range []string{"a/data on dax ", "a/data on vax ", "…/one", "…/two"} {
		if !strings.Contains(picture, want) {
			t.Errorf("no lane is called %q in\n%s", want, picture)
		}
	}
}

func TestTheTextTimelineMatchesTheGoldenFiles(t *testing.T) {
	golden.Check(t, "chart.txt", ChartText{Width: 120, Unicode: true}.Render(dayChart(t, ChartColumns(120))))
	golden.Check(t, "chart_ascii.txt", ChartText{Width: 80}.Render(dayChart(t, ChartColumns(80))))
}

func TestTimelineLinesFitTheWidthOfTheTerminal(t *testing.T) {
	for _, width := range []int{40, 80, 132, 300} {
		text := ChartText{Width: width, Unicode: true}.Render(dayChart(t, ChartColumns(width)))
		for line := range strings.Lines(text) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
				t.Errorf("%d columns in a terminal of %d: %s", n, width, line)
			}
		}
	}
}

// The golden files have no colours.
func TestEachColourOfATimelineIsResetAfterItsText(t *testing.T) {
	text := ChartText{Width: 80, Unicode: true, Paint: true}.Render(dayChart(t, ChartColumns(80)))
	if n := strings.Count(text, "\x1b[0m"); n == 0 || n*2 != strings.Count(text, "\x1b[") {
		t.Error("a colour is not taken back")
	}
}

func TestTheSVGTimelineIsWellFormedWithoutLinksOrScripts(t *testing.T) {
	picture := string(dayChart(t, SVGColumns).SVG())
	decoder := xml.NewDecoder(strings.NewReader(picture))
	titles := 0
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		must.Do(t, err)
		if start, ok := token.(xml.StartElement); ok {
			switch start.Name.Local {
			case "title":
				titles++
			case "a", "script", "image", "foreignObject":
				t.Errorf("<%s> in the picture", start.Name.Local)
			}
		}
	}
	for _, want := range []string{
		"mirror &lt;a&amp;b&gt;", "prefers-color-scheme:dark", "ended by force by 4711", `role="graphics-document"`,
		"status 23", "found dead by 6001", " too soon", ">too soon, paused<", "running", "ExpireAfter 1h30m",
	} {
		if !strings.Contains(picture, want) {
			t.Errorf("nothing says %q", want)
		}
	}
	if titles < 100 {
		t.Errorf("%d titles", titles)
	}
}

// A chart's size is bounded by its columns, not by the runlog.
func TestATimelineMergesAndCountsTheRunsInOneColumn(t *testing.T) {
	s := &story.Story{}
	job := s.Job("a b c", 0, time.Hour)
	for i := range 20000 {
		job.Run(time.Duration(i)*time.Second, 100*time.Millisecond, 0)
		job.Deny(time.Duration(i)*time.Second+500*time.Millisecond, "busy", 1, 0)
	}
	overlap := s.Job("reader run x", 0, time.Hour)
	overlap.Run(0, 7180*time.Second, 0)
	overlap.Run(7100*time.Second, time.Minute, 0)
	chart := chartOf(t, s, 20000*time.Second, ChartOptions{Columns: 100})
	lane, runs, denied := chart.Lanes[0], 0, 0
	for _, b := range lane.Bars {
		runs += b.Count
	}
	for _, tick := range lane.Ticks {
		denied += tick.Count()
	}
	if len(lane.Bars) > 2*100 || len(lane.Ticks) > 100 || runs != 20000 || denied != 20000 || len(chart.Lanes[1].Bars) != 2 {
		t.Errorf("%d bars, %d ticks, %d runs, %d denied", len(lane.Bars), len(lane.Ticks), runs, denied)
	}
}

func TestAnOpenRunIsDrawnToTheEndUnlessItIsLost(t *testing.T) {
	s := &story.Story{}
	s.Job("a b c", 0, time.Hour).Open(time.Minute)
	until := story.Midnight.Add(30 * time.Minute)
	for _, state := range [...]history.Outcome{history.Running, history.Lost, history.Orphaned, history.Stopped} {
		chart := chartOf(t, s, 30*time.Minute, ChartOptions{Columns: 10, State: func(string) history.Outcome { return state }})
		b, crossed := chart.Lanes[0].Bars[0], strings.Contains(string(chart.SVG()), `stroke-dasharray="2 2"`)
		if b.Outcome != state || (state == history.Lost) == b.End.Equal(until) || crossed != (state == history.Stopped) {
			t.Errorf("%s until %v, crossed: %v", b.Outcome, b.End, crossed)
		}
	}
}

func TestTheTimelineFollowsTheOptionsFromStartAndReplace(t *testing.T) {
	s := &story.Story{}
	s.Job("replaced run x", 0, 0).Run(0, time.Hour, 0)
	j := s.Job("a b c", 0, 0)
	j.Add(0, runlog.Event{Kind: runlog.Acquire, Token: "t", IfElapsed: runlog.Some(time.Hour), FromStart: true})
	j.Add(40*time.Minute, runlog.Event{Kind: runlog.Release, Token: "t", Duration: runlog.Some(40 * time.Minute)})
	lanes := chartOf(t, s, 3*time.Hour, ChartOptions{Columns: 10}).Lanes
	if due := lanes[0].Bars[0].due().Sub(story.Midnight); due > time.Hour || due < 50*time.Minute {
		t.Errorf("due at %v", due)
	}
	if lanes[1].Bars[0].overran() {
		t.Error("it is past ExpireAfter 0")
	}
}

func TestTheMarginOfATimelineDoesNotExtendARun(t *testing.T) {
	s := &story.Story{}
	s.Job("a b c", 0, time.Hour).Open(0)
	until := story.Midnight.Add(50 * time.Minute)
	chart := chartOf(t, s, 50*time.Minute, ChartOptions{Columns: 10, Margin: true})
	if b := chart.Lanes[0].Bars[0]; !chart.to.Equal(until.Add(time.Minute)) || !b.End.Equal(until) {
		t.Errorf("the chart ends at %v, the run at %v", chart.to, b.End)
	}
}

func TestATimelineShowsOnlyItsPeriod(t *testing.T) {
	from, to := story.Midnight.Add(9*time.Hour+30*time.Minute), story.Midnight.Add(10*time.Hour)
	chart := must.Get(BuildChart(story.Day().Events(), ChartOptions{Since: from, Until: to, Columns: 100, State: func(string) history.Outcome { return history.Lost },
		Match: func(a atom.Atom) bool { return a.Program == "backup" }}))(t)
	if !chart.from.Equal(from) || len(chart.Lanes) != 1 {
		t.Fatalf("from %v, %d lanes", chart.from, len(chart.Lanes))
	}
	lane := chart.Lanes[0]
	if len(lane.Bars) != 1 || lane.Bars[0].Outcome != history.Running || len(lane.Ticks) != 4 {
		t.Errorf("%d bars, %d ticks: the job that hung was running all the time", len(lane.Bars), len(lane.Ticks))
	}
}

func TestTheTimelineIsLabelledAtRoundTimes(t *testing.T) {
	defer func() { time.Local = time.UTC }()
	for _, c := range []struct {
		zone   string
		month  time.Month
		day    int
		period time.Duration
		want   string
	}{
		{"UTC", 11, 20, 10 * time.Second, "01:02:04 01:02:06 01:02:08 01:02:10 01:02:12"},
		{"UTC", 11, 20, time.Hour, "01:15 01:30 01:45 02:00"},
		{"UTC", 11, 20, 24 * time.Hour, "06:00 12:00 18:00 Nov 21"},
		{"UTC", 11, 20, 30 * 24 * time.Hour, "Nov 21 Nov 28 Dec 5 Dec 12 Dec 19"},
		{"Europe/Berlin", 10, 24, 5 * 24 * time.Hour, "Oct 25 Oct 26 Oct 27 Oct 28 Oct 29"},
		{"Europe/Berlin", 10, 25, 24 * time.Hour, "06:00 12:00 18:00 Oct 26"},
		{"Europe/Berlin", 3, 28, 30 * time.Hour, "06:00 12:00 18:00 Mar 29 06:00"},
		{"Europe/Berlin", 3, 29, 3 * time.Hour, "03:00 04:00 05:00"},
		{"America/Santiago", 9, 5, 30 * time.Hour, "06:00 12:00 18:00 01:00 06:00"},
	} {
		time.Local = must.Get(time.LoadLocation(c.zone))(t)
		from := time.Date(2026, c.month, c.day, 1, 2, 3, 0, time.Local)
		var labels []string
		for _, m := range (&Chart{from: from, to: from.Add(c.period)}).scale(6) {
			labels = append(labels, m.label)
		}
		if got := strings.Join(labels, " "); got != c.want {
			t.Errorf("%s, %v: %s, want %s", c.zone, c.period, got, c.want)
		}
	}
}

// A narrow picture has two lines of legend or more, and names above their lanes.
func TestNarrowAndWideTimelinesHaveTheSameBars(t *testing.T) {
	chart := dayChart(t, SVGColumns)
	for name, c := range map[string]struct {
		picture []byte
		width   string
	}{"wide": {chart.Wide(), "1200"}, "narrow": {chart.Narrow(), "400"}} {
		picture := string(c.picture)
		if !strings.Contains(picture, `viewBox="0 0 `+c.width+" ") || strings.Contains(picture, "<style>") || !strings.Contains(picture, `id="`+name+`-title"`) {
			t.Errorf("%s begins %.300s", name, picture)
		}
		if got, want := strings.Count(picture, `<g class="b">`), strings.Count(string(chart.SVG()), `<g class="b">`); got != want {
			t.Errorf("%s has %d bars, want %d", name, got, want)
		}
	}
	w := &svg{layout: narrow, chart: chart}
	places, _ := w.places()
	for i, e := range legend {
		if places[i].x+e.width > w.width {
			t.Errorf("%q ends at %d", e.text, places[i].x+e.width)
		}
	}
}

func TestRuntimesOfAnyLengthFitTheirPicture(t *testing.T) {
	for _, held := range []time.Duration{0, time.Nanosecond, time.Second, 400 * 24 * time.Hour} {
		for _, limits := range []time.Duration{0, time.Second, limit.Never} {
			s := &story.Story{}
			job := s.Job("p run x", limits, limits)
			job.Run(0, held, 0)
			job.Run(held+time.Minute, held/2, 1)
			chart := chartOf(t, s, 2*held+time.Hour, ChartOptions{Columns: SVGColumns})
			picture := string(chart.runtimes(chart.Lanes[0]))
			for _, y := range regexp.MustCompile(`M[-\d.]+ ([-\w.]+)V([-\w.]+)"`).FindAllStringSubmatch(picture, -1) {
				for _, text := range y[1:] {
					if at, err := strconv.ParseFloat(text, 64); err != nil || at < graphTop || at > graphTop+graphHeight {
						t.Errorf("held %v, limits %v: a run is drawn at %s", held, limits, text)
					}
				}
			}
			if strings.Contains(picture, "NaN") || strings.Contains(picture, "Inf") || strings.Count(picture, "stroke-width=\"5\"") < 4 {
				t.Errorf("held %v, limits %v: %s", held, limits, picture)
			}
		}
	}
}
