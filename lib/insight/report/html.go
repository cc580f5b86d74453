package report

import (
	"bytes"
	_ "embed" // page.html
	"fmt"
	"html/template"
	"time"

	"adlock/lib/insight/history"
	"adlock/lib/insight/terminal"
)

//go:embed page.html
var page string

var pageTemplate = template.Must(template.New("page").Parse(page))

// pageData is what page.html shows. The template escapes its texts, and svg.go escapes those of the pictures.
type pageData struct {
	Light, Dark  template.CSS // variables of the colours
	Style        template.CSS // of the pictures
	Period       string
	Damaged      int
	Wide, Narrow template.HTML
	Atoms        []pageAtom
	Advised      bool
}

type pageAtom struct {
	Name, Host                   string
	Picture                      template.HTML // of its runtimes; "": there is none
	Runs, Runtime, Denied, Limit string        // "": nothing to say
	Endings                      []pageEnding
	Before                       int // how many endings there were before those
	Advice                       []advice
}

type pageEnding struct{ At, Owner, Age, By string }

// HTML is the report as one page, without scripts and without other files. chart must be of the same events.
func (r *Report) HTML(chart *Chart) ([]byte, error) {
	light, dark := variables()
	data := pageData{
		Light: template.CSS(light), Dark: template.CSS(dark), Style: template.CSS(StyleSheet()),
		Period: r.period(), Damaged: r.Damaged,
	}
	if len(chart.Lanes) > 0 {
		data.Wide, data.Narrow = template.HTML(chart.Wide()), template.HTML(chart.Narrow())
	}
	runtimes := map[string]template.HTML{}
	for _, lane := range chart.Lanes {
		runtimes[lane.Atom.String()] = template.HTML(chart.runtimes(lane))
	}
	for _, a := range r.atoms {
		shown := r.pageAtom(a)
		shown.Picture = runtimes[a.Atom.String()]
		data.Atoms = append(data.Atoms, shown)
		data.Advised = data.Advised || len(a.Advice) > 0
	}
	var w bytes.Buffer
	err := pageTemplate.Execute(&w, data)
	return w.Bytes(), err
}

func (r *Report) pageAtom(a *summary) pageAtom {
	shown := pageAtom{
		Name: terminal.Clean(a.Words()), Host: terminal.Clean(a.Host),
		Runs:    a.runs(false) + fmt.Sprintf("; held %s, %.1f%% of the time", terminal.Duration(a.Held), 100*r.share(a)),
		Runtime: a.runtime(), Denied: a.denied(), Limit: a.limits(),
		Before: a.Outcomes[history.Ended] - len(a.Endings), Advice: a.Advice,
	}
	for _, e := range a.Endings {
		shown.Endings = append(shown.Endings, pageEnding{e.End.Local().Format(time.DateTime), terminal.Clean(e.Owner()), terminal.Age(e.Held), terminal.Clean(ender(e))})
	}
	return shown
}
