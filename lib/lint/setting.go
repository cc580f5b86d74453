package lint

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"adlock/lib/config"
)

const prefix = "ADLOCK_"

// besides are the variables, without their prefix, that are no settings of a line: of the
// library and of stores, and those that a job or a hook is given.
var besides = []string{
	"AGENT", "BIN", "FTP_CACERT", "FTP_PASSWORD_FILE",
	"ATOM", "COUNT", "EVENT", "FENCE", "OWNER", "PID", "RUN", "SECONDS", "SIGNAL", "STATUS", "TEXT", "VERDICT",
}

// unread tells of a variable that is written nearly as one of ours: nobody reads it, and
// nobody would ever say so. Any other name is somebody else's, as is one of another first
// letter, where hardly anybody slips.
func (c *Checker) unread(f *findings, line int, name string) {
	bare, ours := strings.CutPrefix(name, prefix)
	if !ours {
		return
	}
	known := slices.Clone(besides)
	for _, setting := range c.Settings {
		known = append(known, strings.TrimPrefix(setting, prefix))
	}
	if slices.Contains(known, bare) {
		return
	}
	if meant := config.Nearest(bare, known); meant != "" && meant[0] == bare[0] {
		f.add(line, "a setting that nobody reads", name+" is not known", "did you mean "+prefix+meant+"?")
	}
}

// assigned tells of such variables that are set in a text, and not used in it.
func (c *Checker) assigned(f *findings, text string, n syntax.Node, lineOf func(syntax.Node) int) {
	look := func(n syntax.Node, name string) {
		if !strings.Contains(text, "$"+name) && !strings.Contains(text, "${"+name) {
			c.unread(f, lineOf(n), name)
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
