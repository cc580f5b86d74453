//go:build soak

package docs

// These tests open the page that `adlock report --html` makes in a real browser, as wide as a telephone and as a
// desktop, in light and dark colours. ADLOCK_TEST_ARTEFACTS=DIR keeps the page and its screenshots.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"adlock/lib/insight/report"
	"adlock/test/support/helper"
	"adlock/test/support/must"
	"adlock/test/support/need"
	"adlock/test/support/story"
)

// hostile are names of atoms that must have no effect in a page.
var hostile = []string{
	`x "><script>document.title='taken'</script>`,
	`x <img src=http://127.0.0.1:9/picture onerror="document.title='taken'">`,
	`x ]]></style><style>body{width:3000px}</style>`,
	`x {{.Period}} 'onmouseover=alert(1) javascript:alert(1) &lt;`,
	"x long/" + string(bytes.Repeat([]byte("unbroken"), 60)),
}

// reportPage makes the page of a day with some of everything and with hostile names.
func reportPage(t *testing.T, dir string) {
	t.Helper()
	s := story.Day()
	for i, words := range hostile {
		job := s.Job("cgi run "+words, 0, time.Hour)
		job.Run(time.Duration(i)*time.Hour, 20*time.Minute, 0)
		job.Hang(time.Duration(i+2)*time.Hour, time.Hour, 99)
	}
	now := story.Midnight.Add(24 * time.Hour)
	r := must.Get(report.Build(s.Events(), report.Options{Now: now}))(t)
	chart := must.Get(report.BuildChart(s.Events(), report.ChartOptions{Until: now, Margin: true, Columns: report.SVGColumns}))(t)
	text := must.Get(r.HTML(chart))(t)
	must.Do(t, os.WriteFile(filepath.Join(dir, "report.html"), text, 0o644))
}

func artefacts(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("ADLOCK_TEST_ARTEFACTS")
	if dir == "" {
		return t.TempDir()
	}
	dir, err := filepath.Abs(dir)
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	must.Do(t, err)
	return dir
}

func TestTheReportsPageIsReadableInABrowser(t *testing.T) {
	need.Tools(t, "chromium")
	dir := artefacts(t)
	reportPage(t, dir)
	for _, width := range []string{"400", "1400"} {
		for _, scheme := range []string{"light", "dark"} {
			name := "report-" + width + "-" + scheme
			t.Run(name, func(t *testing.T) {
				frame := filepath.Join(dir, "frame.html")
				page := strings.NewReplacer("WIDTH", width, "SCHEME", scheme).Replace(framed)
				must.Do(t, os.WriteFile(frame, []byte(page), 0o644))
				flags := "--headless --no-sandbox --disable-gpu --disable-dev-shm-usage --hide-scrollbars --no-first-run " +
					"--allow-file-access-from-files --enable-logging=stderr --virtual-time-budget=10000 --dump-dom"
				args := append([]string{"chromium", "--user-data-dir=" + t.TempDir(), "--window-size=" + width + ",3000",
					"--screenshot=" + filepath.Join(dir, name+".png")}, strings.Fields(flags)...)
				r := helper.Command{Args: append(args, "file://"+frame), Env: []string{"HOME=" + t.TempDir()}}.Run(t)
				wantFit(t, r, width, scheme)
			})
		}
	}
}

// framed shows the page in a frame of that width and scheme, and finds in it text of less than 9
// pixels, elements that are too wide, wide pictures, and what it has fetched.
const framed = `<!doctype html><body style="margin:0">
<iframe id=frame style="width:WIDTHpx;height:3000px;border:0;color-scheme:SCHEME" src="report.html"></iframe>
<pre id=found></pre><script>frame.onload = () => {
	const page = frame.contentDocument, its = frame.contentWindow, all = words => [...page.querySelectorAll(words)]
	found.textContent = JSON.stringify({
		Scroll: page.documentElement.scrollWidth, Title: page.title, Ground: its.getComputedStyle(page.body).backgroundColor,
		Fetched: its.performance.getEntriesByType('resource').map(e => e.name),
		Pictures: all('svg').filter(e => e.getBoundingClientRect().width > 300).length,
		Small: all('text,p,dd,dt,li,td,th,h2').filter(e => {
			const box = e.getBoundingClientRect(), svg = e.ownerSVGElement
			const scale = svg ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 1
			return box.width > 0 && parseFloat(its.getComputedStyle(e).fontSize) * scale < 9 }).map(e => e.textContent),
		Wide: all('body *').filter(e => !e.ownerSVGElement && e.getBoundingClientRect().right > its.innerWidth + 1)
			.map(e => e.tagName + ' ' + e.className),
	})
}</script>`

func wantFit(t *testing.T, r helper.Result, width, scheme string) {
	t.Helper()
	var found struct {
		Scroll, Pictures     int
		Title, Ground        string
		Fetched, Small, Wide []string
	}
	_, text, _ := strings.Cut(r.Out, `<pre id="found">`)
	text, _, _ = strings.Cut(text, "</pre>")
	if err := json.Unmarshal([]byte(html.UnescapeString(text)), &found); err != nil {
		t.Fatalf("%v: %+v", err, r)
	}
	if most := must.Get(strconv.Atoi(width))(t); found.Scroll > most || len(found.Small)+len(found.Wide) > 0 {
		t.Errorf("too wide or too small: %+v", found)
	}
	if found.Title == "taken" || len(found.Fetched) > 0 || strings.Contains(r.Err, ":CONSOLE") {
		t.Errorf("a name was carried out: %+v\n%s", found, r.Err)
	}
	var red, green, blue int
	_, err := fmt.Sscanf(found.Ground, "rgb(%d, %d, %d)", &red, &green, &blue)
	if light := red+green+blue > 600; err != nil || light != (scheme == "light") || found.Pictures < 4 {
		t.Errorf("%d pictures are shown on %s", found.Pictures, found.Ground)
	}
}
