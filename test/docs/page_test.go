//go:build soak

package docs

// These tests open the page that `adlock report --html` makes in a real browser, as wide as a
// telephone and as a desktop, in light and dark colours. ADLOCK_TEST_ARTEFACTS=DIR keeps the page
// and its screenshots.

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"adlock/lib/insight/report"
	"adlock/lib/insight/timeline"
	"adlock/test/support/must"
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

// reportPage makes the page of a day with some of everything and with hostile names, and returns
// its address.
func reportPage(t *testing.T, dir string) string {
	t.Helper()
	s := story.Day()
	for i, words := range hostile {
		job := s.Job("cgi run "+words, 0, time.Hour)
		job.Run(time.Duration(i)*time.Hour, 20*time.Minute, 0)
		job.Hang(time.Duration(i+2)*time.Hour, time.Hour, 99)
	}
	now := story.Midnight.Add(24 * time.Hour)
	r := must.Get(report.Build(s.Events(), report.Options{Now: now}))(t)
	chart := must.Get(timeline.Build(s.Events(), timeline.Options{Until: now, Margin: true, Columns: timeline.SVGColumns}))(t)
	text := must.Get(r.HTML(chart))(t)
	path := filepath.Join(dir, "report.html")
	must.Do(t, os.WriteFile(path, text, 0o644))
	return (&url.URL{Scheme: "file", Path: path}).String()
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

func TestThePageIsReadableInABrowser(t *testing.T) {
	dir := artefacts(t)
	address := reportPage(t, dir)
	b := newBrowser(t)
	b.openTab()
	for _, width := range []int{400, 1400} {
		for _, scheme := range []string{"light", "dark"} {
			name := "report-" + strconv.Itoa(width) + "-" + scheme
			t.Run(name, func(t *testing.T) {
				b.t = t
				b.show(address, width, scheme)
				shot := b.screenshot()
				must.Do(t, os.WriteFile(filepath.Join(dir, name+".png"), shot, 0o644))
				for _, complaint := range b.complaints(address) {
					t.Error(complaint)
				}
				wantFit(t, b, width)
				wantScheme(t, shot, scheme)
			})
		}
	}
	b.t = t
}

// small lists text of less than 9 pixels, and wide the elements that do not fit the window.
const (
	small = `[...document.querySelectorAll('text,p,dd,dt,li,td,th,h2')].filter(e => {
		const box = e.getBoundingClientRect(), svg = e.ownerSVGElement
		const scale = svg ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 1
		return box.width > 0 && parseFloat(getComputedStyle(e).fontSize) * scale < 9 }).map(e => e.textContent)`
	wide = `[...document.body.querySelectorAll('*')].filter(e => !e.ownerSVGElement && e.getBoundingClientRect().right > innerWidth + 1).map(e => e.tagName + ' ' + e.className)`
)

func wantFit(t *testing.T, b *browser, width int) {
	t.Helper()
	var scroll int
	if b.evaluate("document.documentElement.scrollWidth", &scroll); scroll > width {
		t.Errorf("the page is %d pixels wide", scroll)
	}
	for what, expression := range map[string]string{"too small": small, "too wide": wide} {
		var found []string
		if b.evaluate(expression, &found); len(found) > 0 {
			t.Errorf("%s: %q", what, found)
		}
	}
	var title string
	if b.evaluate("document.title", &title); title == "taken" {
		t.Error("a name was carried out")
	}
	var pictures int
	if b.evaluate("[...document.querySelectorAll('svg')].filter(e => e.getBoundingClientRect().width > 300).length", &pictures); pictures < 4 {
		t.Errorf("%d pictures are shown", pictures)
	}
}

// wantScheme checks the colour in the corner of the page, and that the page has a drawing.
func wantScheme(t *testing.T, shot []byte, scheme string) {
	t.Helper()
	shown := must.Get(png.Decode(bytes.NewReader(shot)))(t)
	if light := luminance(shown.At(2, 2)) > 200; light != (scheme == "light") {
		t.Errorf("the page is %v at its corner", shown.At(2, 2))
	}
	if n := strong(shown); n < 1000 {
		t.Errorf("%d pixels have a strong colour", n)
	}
}

func luminance(c color.Color) uint8 { return color.GrayModel.Convert(c).(color.Gray).Y }

func strong(shown image.Image) (n int) {
	for y := shown.Bounds().Min.Y; y < shown.Bounds().Max.Y; y++ {
		for x := shown.Bounds().Min.X; x < shown.Bounds().Max.X; x++ {
			c := color.NRGBAModel.Convert(shown.At(x, y)).(color.NRGBA)
			if max(c.R, c.G, c.B)-min(c.R, c.G, c.B) > 90 {
				n++
			}
		}
	}
	return n
}
