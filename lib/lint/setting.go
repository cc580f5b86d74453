package lint

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// noSetting tells of a variable that is written nearly as one of ours: nobody reads it, and
// nobody would ever say so. Any other name is somebody else's.
func (f *findings) noSetting(c *Checker, line int, name string) {
	if c.Nearest == nil || !strings.HasPrefix(name, "ADLOCK_") {
		return
	}
	if meant := c.Nearest(name); meant != "" {
		f.add(line, "a variable that sets nothing", "adlock reads no "+name, "say "+meant)
	}
}

// assigned tells of such variables that are set in a text, and not used in it.
func (f *findings) assigned(c *Checker, text string, n syntax.Node, lineOf func(syntax.Node) int) {
	look := func(n syntax.Node, name string) {
		if !strings.Contains(text, "$"+name) && !strings.Contains(text, "${"+name) {
			f.noSetting(c, lineOf(n), name)
		}
	}
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Assign:
			if n.Name != nil {
				look(n, n.Name.Value)
			}
		case *syntax.CallExpr:
			for _, name := range passed(n) {
				look(n, name)
			}
		}
		return true
	})
}

// passed are the variables that a command sets which takes them as words.
func passed(call *syntax.CallExpr) (names []string) {
	if !slices.Contains([]string{"export", "readonly", "env"}, nameOf(call)) {
		return nil
	}
	for _, word := range call.Args[1:] {
		text, _ := literal(word)
		if name, _, set := strings.Cut(text, "="); set {
			names = append(names, name)
		}
	}
	return names
}
