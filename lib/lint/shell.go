package lint

import (
	"adlock/lib/crontab"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

func literal(w *syntax.Word) (text string, whole bool) { return crontab.Literal(w, "") }

func is(w *syntax.Word, text string) bool {
	got, whole := literal(w)
	return whole && got == text
}

func nameOf(call *syntax.CallExpr) string {
	word := wordOf(call.Args)
	if word == "" {
		return ""
	}
	return path.Base(word)
}

func callOf(s *syntax.Stmt) *syntax.CallExpr {
	call, _ := s.Cmd.(*syntax.CallExpr)
	return call
}

func calls(n syntax.Node, yield func(*syntax.CallExpr)) {
	syntax.Walk(n, func(n syntax.Node) bool {
		if call, ok := n.(*syntax.CallExpr); ok && len(call.Args) > 0 {
			yield(call)
		}
		return true
	})
}

func has(n syntax.Node, names ...string) (found bool) {
	calls(n, func(c *syntax.CallExpr) { found = found || slices.Contains(names, nameOf(c)) })
	return found
}

var variables = []string{"$", "!", "PPID", "BASHPID", "RANDOM", "SRANDOM", "SECONDS", "EPOCHSECONDS", "EPOCHREALTIME"}

func changing(w *syntax.Word) (part string) {
	syntax.Walk(w, func(n syntax.Node) bool {
		switch p := n.(type) {
		case *syntax.ParamExp:
			if p.Param == nil || p.Length || part != "" {
				return part == ""
			}
			if slices.Contains(variables, p.Param.Value) {
				part = "$" + p.Param.Value
			}
		case *syntax.CmdSubst:
			if command := unlike(p); command != "" && part == "" {
				part = "$(" + command + ")"
			}
			return false
		}
		return part == ""
	})
	return part
}

// unlike returns a command in s whose output changes from run to run, such as date(1) for the current time; "" if none.
func unlike(s *syntax.CmdSubst) (command string) {
	for _, stmt := range s.Stmts {
		calls(stmt, func(c *syntax.CallExpr) {
			switch name := nameOf(c); name {
			case "date":
				if !slices.ContainsFunc(c.Args[1:], isOtherDate) {
					command = name
				}
			case "mktemp", "tempfile", "uuidgen":
				command = name
			}
		})
	}
	return command
}

func isOtherDate(w *syntax.Word) bool {
	text, whole := literal(w)
	return !whole && !strings.HasPrefix(text, "+") || strings.HasPrefix(text, "-r") || strings.HasPrefix(text, "-d") ||
		strings.HasPrefix(text, "--d") || strings.HasPrefix(text, "--r")
}
