package report

import "strings"

// Colour is a colour of a picture, in one form for light and one for dark surroundings. Each shape has the
// light colour as an attribute: mail readers drop style sheets, and librsvg and ImageMagick support no
// variables in them. In dark surroundings, a style sheet replaces that attribute, by class and media query.
type Colour struct{ name, light, dark string }

var (
	Ground = Colour{"ground", "#ffffff", "#15191f"}
	Strip  = Colour{"lane", "#f6f7f9", "#1b2027"}
	Line   = Colour{"line", "#e2e5e9", "#2c333c"}
	Ink    = Colour{"ink", "#1c2128", "#e3e7ec"}
	Dim    = Colour{"dim", "#636c76", "#8f99a5"}
	Good   = Colour{"good", "#2da160", "#43b878"}
	Bad    = Colour{"bad", "#d23c3c", "#f0605f"}
	Now    = Colour{"now", "#2f7ed8", "#5aa2f2"} // running, in force
	Odd    = Colour{"odd", "#b07a08", "#dfa937"}
	Full   = Colour{"full", "#9a5bd0", "#bb86ea"}
)

var colours = [...]Colour{Ground, Strip, Line, Ink, Dim, Good, Bad, Now, Odd, Full}

const Font = `font-family="system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif"`

func Fill(c Colour) string { return `class="fill-` + c.name + `" fill="` + c.light + `"` }

func Stroke(c Colour) string {
	return `class="stroke-` + c.name + `" fill="none" stroke="` + c.light + `"`
}

func Outline(fill, stroke Colour) string {
	return `class="fill-` + fill.name + ` stroke-` + stroke.name + `" fill="` + fill.light + `" stroke="` + stroke.light + `"`
}

// StyleSheet returns the rules for dark surroundings.
func StyleSheet() string {
	var w strings.Builder
	w.WriteString("\n@media(prefers-color-scheme:dark){\n")
	for _, c := range colours {
		w.WriteString(".fill-" + c.name + "{fill:" + c.dark + "}.stroke-" + c.name + "{stroke:" + c.dark + "}\n")
	}
	w.WriteString("}\n")
	return w.String()
}

// variables returns the colours as variables for the style sheet of a page (--ink and so on).
func variables() (light, dark string) {
	for _, c := range colours {
		light += "--" + c.name + ":" + c.light + ";"
		dark += "--" + c.name + ":" + c.dark + ";"
	}
	return light, dark
}
