package lint

import (
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// statements looks at the statements of one list, and below them; asked is whether
// somebody looks at their status, or that cannot be told.
func (s *script) statements(list []*syntax.Stmt, asked bool) {
	for i, stmt := range list {
		var next *syntax.Stmt
		if i+1 < len(list) {
			next = list[i+1]
		}
		s.statement(stmt, next, asked)
	}
}

// statement looks at one, and at the one that follows in its list. What stands in a
// function, a pipe or the second part of a list is left alone: who calls it may ask.
func (s *script) statement(stmt, next *syntax.Stmt, asked bool) {
	switch cmd := stmt.Cmd.(type) {
	case *syntax.CallExpr:
		if !asked && !stmt.Negated && !stmt.Background {
			s.unasked(cmd, next)
		}
	case *syntax.Block:
		s.statements(cmd.Stmts, asked)
	case *syntax.Subshell:
		s.statements(cmd.Stmts, asked)
	case *syntax.IfClause:
		for c := cmd; c != nil; c = c.Else {
			s.condition(c.Cond, asked)
			s.statements(c.Then, asked)
		}
	case *syntax.WhileClause:
		s.condition(cmd.Cond, asked)
		s.statements(cmd.Do, asked)
	case *syntax.ForClause:
		s.statements(cmd.Do, asked)
	case *syntax.CaseClause:
		for _, item := range cmd.Items {
			s.statements(item.Stmts, asked)
		}
	}
}

// condition looks at a list whose last status is asked for.
func (s *script) condition(list []*syntax.Stmt, asked bool) {
	if len(list) > 0 {
		s.statements(list[:len(list)-1], asked)
	}
}

// unasked looks at a call whose status nobody asks for, save the next statement.
func (s *script) unasked(call *syntax.CallExpr, next *syntax.Stmt) {
	named := nameOf(call)
	library := (named == "." || named == "source") && s.isLibrary(call)
	if named != get && !library || s.someErrexit || next == nil {
		return
	}
	asks := asking.MatchString(s.source(next))
	switch {
	case library && !asks && !s.errexits(call):
		s.add(line(call), "the library unchecked", "where it cannot be loaded, bash goes on without a lock", "say . FILE || exit 69")
	case named == get && s.errexits(call):
		s.add(line(call), "set -e ends the script", "a denial is status 75, and nothing below is run", "say if adlock_get …; then, or adlock_get … || [ $? = 75 ]")
	case named == get && !asks:
		s.add(line(call), "runs though denied", "nobody asks whether the lock was taken", "say if adlock_get …; then")
	}
}

// asking is by what a statement asks how the one before it went.
var asking = regexp.MustCompile(`\$\{?\?|ADLOCK_VERDICT|\b(command -v|type) `)

// checkGuard looks at what stands above and below adlock_guard, where that is a
// statement of the script itself.
func (s *script) checkGuard() {
	at := slices.IndexFunc(s.file.Stmts, func(stmt *syntax.Stmt) bool { return s.guards(stmt) })
	if at < 0 {
		return
	}
	for _, stmt := range s.file.Stmts[:at] {
		s.above(stmt)
	}
	if !s.here(at) {
		return
	}
	for _, stmt := range s.file.Stmts[at:] {
		s.replaced(stmt)
	}
}

// guards tells whether a statement calls adlock_guard when the script comes to it.
func (s *script) guards(stmt *syntax.Stmt) bool {
	switch cmd := stmt.Cmd.(type) {
	case *syntax.CallExpr:
		return nameOf(cmd) == guard
	case *syntax.BinaryCmd:
		return s.guards(cmd.X) || s.guards(cmd.Y)
	case *syntax.Subshell, *syntax.Block:
		return has(stmt, guard)
	}
	return false
}

// here tells whether the script cannot be run again: its locks are beyond this
// machine, or it guards a subshell.
func (s *script) here(at int) bool {
	store, _ := literal(s.values["ADLOCK_STORE"])
	_, subshell := s.file.Stmts[at].Cmd.(*syntax.Subshell)
	return subshell || strings.Contains(store, "://")
}

// effects are commands that leave something behind, or tell somebody.
var effects = []string{"rm", "mv", "cp", "ln", "touch", "mktemp", "kill", "pkill", "killall", "mail", "mailx", "sendmail", "logger", "rsync", "scp",
	"ssh", "dd", "tar", "systemctl", "service", "mount", "umount", "echo", "printf"}

// above looks at a statement above the guard, which runs twice. One that stands in a
// condition may end the script, and is left alone.
func (s *script) above(stmt *syntax.Stmt) {
	call := callOf(first(stmt))
	if call == nil {
		return
	}
	switch name := nameOf(call); {
	case name == "cd":
		s.add(line(call), "adlock_guard below a cd", "the script is run again from the directory in which the library was sourced", "say adlock_guard above it")
	case slices.Contains(effects, name) && stmt.Cmd == syntax.Command(call):
		s.add(line(call), "runs twice", "what stands above adlock_guard runs once more when the guard runs the script again", "say "+name+" below it")
	}
}

// first is the first statement of a list with && or ||.
func first(stmt *syntax.Stmt) *syntax.Stmt {
	for {
		list, ok := stmt.Cmd.(*syntax.BinaryCmd)
		if !ok || list.Op == syntax.Pipe || list.Op == syntax.PipeAll {
			return stmt
		}
		stmt = list.X
	}
}

// replaced looks for a trap in the place of the guard's own.
func (s *script) replaced(stmt *syntax.Stmt) {
	calls(stmt, func(call *syntax.CallExpr) {
		if nameOf(call) != "trap" || len(call.Args) < 3 || strings.Contains(s.source(call.Args[1]), release) {
			return
		}
		action, whole := literal(call.Args[1])
		if !whole || s.functions[strings.TrimSpace(action)] || action == "" {
			return // a function may release
		}
		for _, w := range call.Args[2:] {
			if text, _ := literal(w); text == "EXIT" || text == "0" {
				s.add(line(call), "a trap after adlock_guard", "this script cannot be run again, so the guard is a trap on EXIT, which this one replaces", "say adlock_release in it, or adlock_get and adlock_release")
				return
			}
		}
	})
}
