package docs

// Mail readers, librsvg and ImageMagick support no style sheets, or only part of them.

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"adlock/lib/insight/report"
	"adlock/test/support/must"
	"adlock/test/support/story"
)

// pictures are the pictures of the source tree and those that the programs draw, by name.
func pictures(t *testing.T) map[string][]byte {
	t.Helper()
	chart, err := report.BuildChart(story.Day().Events(), report.ChartOptions{
		Since: story.Midnight, Until: story.Midnight.Add(24 * time.Hour), Columns: report.SVGColumns,
	})
	must.Do(t, err)
	all := map[string][]byte{"timeline": chart.SVG(), "wide": chart.Wide(), "narrow": chart.Narrow()}
	for _, path := range []string{"../sim/sim.svg", "demo.svg"} {
		all[path] = must.Get(os.ReadFile(path))(t)
	}
	return all
}

// paints are the colours of an element, by its own and its ancestors' attributes.
type paints map[string]string

// unpainted returns the first shape whose colour only a style sheet sets.
func unpainted(svg []byte) error {
	if bytes.Contains(svg, []byte("var(")) {
		return errors.New("a colour is a variable")
	}
	decoder := xml.NewDecoder(bytes.NewReader(svg))
	open := []paints{{}}
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch token := token.(type) {
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.StartElement:
			p := maps.Clone(open[len(open)-1])
			for _, a := range token.Attr {
				p[a.Name.Local] = a.Value
			}
			open = append(open, p)
			switch token.Name.Local {
			case "rect", "circle", "path", "line", "text":
				if !literal(p["fill"]) && !literal(p["stroke"]) || p["fill"] == "" {
					return fmt.Errorf("<%s> %v has no colour of its own", token.Name.Local, token.Attr)
				}
			}
		}
	}
}

func literal(colour string) bool { return strings.HasPrefix(colour, "#") }

func TestPicturesNeedNoStyleSheetForTheirColours(t *testing.T) {
	for name, svg := range pictures(t) {
		if err := unpainted(svg); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, bad := range []string{
		`<svg><rect class="ok"/></svg>`, `<svg><rect fill="var(--ok)"/></svg>`, `<svg><path fill="none" class="s"/></svg>`,
		`<svg><style>.a{fill:var(--b)}</style><rect fill="#fff"/></svg>`, `<svg><g fill="#fff"/><text>x</text></svg>`,
	} {
		if unpainted([]byte(bad)) == nil {
			t.Errorf("%s is found to be painted", bad)
		}
	}
}
