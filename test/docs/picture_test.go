package docs

// These tests check the pictures in viewers that support no style sheets, or only part of them:
// mail readers, librsvg, ImageMagick.

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"maps"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"adlock/lib/insight/timeline"
	"adlock/test/support/must"
	"adlock/test/support/need"
	"adlock/test/support/story"
)

// pictures are the pictures of the source tree and those that the programs draw, by name.
func pictures(t *testing.T) map[string][]byte {
	t.Helper()
	chart, err := timeline.Build(story.Day().Events(), timeline.Options{
		Since: story.Midnight, Until: story.Midnight.Add(24 * time.Hour), Columns: timeline.SVGColumns,
	})
	must.Do(t, err)
	all := map[string][]byte{"timeline": chart.SVG(), "wide": chart.Wide(), "narrow": chart.Narrow()}
	for _, path := range []string{"../sim/sim.svg", "demo.svg"} {
		if all[path], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
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

func TestNoColourDependsOnAStyleSheet(t *testing.T) {
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

func TestLibrsvgShowsThePicturesInTheirColours(t *testing.T) {
	need.Tools(t, "rsvg-convert")
	for name, svg := range pictures(t) {
		seen := colours(render(t, svg))
		if seen["ground"] < 50 || seen["black"] > 1 || seen["red"] == 0 || seen["green"]+seen["blue"] == 0 {
			t.Errorf("%s: percent of the pixels, by colour: %v", name, seen)
		}
	}
}

func render(t *testing.T, svg []byte) image.Image {
	t.Helper()
	convert := exec.Command("rsvg-convert", "--width=800", "--keep-aspect-ratio")
	convert.Stdin = bytes.NewReader(svg)
	out := must.Get(convert.Output())(t)
	return must.Get(png.Decode(bytes.NewReader(out)))(t)
}

// colours is the share of each colour in a picture, in percent. librsvg draws a colour that it
// does not know as black.
func colours(shown image.Image) map[string]float64 {
	seen, bounds := map[string]float64{}, shown.Bounds()
	percent := 100 / float64(bounds.Dx()*bounds.Dy())
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			seen[nameOf(color.NRGBAModel.Convert(shown.At(x, y)).(color.NRGBA))] += percent
		}
	}
	return seen
}

func nameOf(c color.NRGBA) string {
	r, g, b := int(c.R), int(c.G), int(c.B)
	switch {
	case c.A < 128:
		return "nothing"
	case r > 240 && g > 240 && b > 240:
		return "ground"
	case r < 10 && g < 10 && b < 10:
		return "black"
	case r > g+80 && r > b+80:
		return "red"
	case g > r+60 && g > b+30:
		return "green"
	case b > r+80 && b > g+30:
		return "blue"
	}
	return "other"
}
