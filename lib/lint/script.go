package lint

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"adlock/lib/atom"
	"adlock/lib/limit"
)

// script is what is known of one shell script.
type script struct {
	*Checker
	findings
	path, text string
	file       *syntax.File

	values    map[string]*syntax.Word // of variables that are set once
	functions map[string]bool         // that it defines
	called    map[string]*syntax.CallExpr
	sources   bool // other files than the library; or others source it
	loads     bool // the library
	parallel  bool // it starts processes beside itself

	errexit     *syntax.CallExpr // from there on set -e is on; the zero call: from the beginning
	someErrexit bool             // it is on or off where this is not followed
}

// The library's functions.
const (
	get, release, with, guard = "adlock_get", "adlock_release", "adlock_with", "adlock_guard"
)

// script checks a script, or a part of one that others source: whole is which.
func (c *Checker) script(path, text, shell string, whole bool) ([]Mistake, error) {
	s, err := parseScript(path, text, shell, whole)
	if err != nil {
		line, reason := lineOf(err)
		return nil, fmt.Errorf("is not understood as a script of %s: line %d: %s", shell, line, reason)
	}
	s.Checker = c
	s.check()
	return s.findings, nil
}

func parseScript(path, text, shell string, whole bool) (*script, error) {
	file, err := parse(text, dialects[shell])
	if err != nil {
		return nil, err
	}
	s := &script{path: path, text: text, file: file, sources: !whole, values: map[string]*syntax.Word{}, functions: map[string]bool{}, called: map[string]*syntax.CallExpr{}}
	first, _, _ := strings.Cut(text, "\n")
	for _, word := range strings.Fields(first) {
		if whole && isErrexit(word) {
			s.errexit = &syntax.CallExpr{}
		}
	}
	for _, stmt := range file.Stmts {
		if call := callOf(stmt); call != nil && s.errexit == nil && nameOf(call) == "set" && turns(call, "-") {
			s.errexit = call
		}
	}
	syntax.Walk(file, s.learn)
	return s, nil
}

// errexits tells whether set -e is on at a call.
func (s *script) errexits(call *syntax.CallExpr) bool {
	return s.errexit != nil && (len(s.errexit.Args) == 0 || call.Pos().After(s.errexit.Pos()))
}

// isErrexit tells options of a shell that have an e among them.
func isErrexit(word string) bool {
	return len(word) > 1 && word[0] == '-' && word[1] != '-' && strings.Contains(word, "e") && strings.Trim(word[1:], "abefhkmnopuvxBCEHPT") == ""
}

// learn notes what a node tells of the script.
func (s *script) learn(n syntax.Node) bool {
	switch n := n.(type) {
	case *syntax.FuncDecl:
		if n.Name != nil {
			s.functions[n.Name.Value] = true
		}
	case *syntax.Assign:
		if n.Name != nil {
			_, twice := s.values[n.Name.Value]
			s.values[n.Name.Value] = n.Value
			if twice || n.Append {
				s.values[n.Name.Value] = nil
			}
		}
	case *syntax.Stmt:
		s.parallel = s.parallel || n.Background
	case *syntax.CallExpr:
		s.learnCall(n)
	}
	return true
}

func (s *script) learnCall(call *syntax.CallExpr) {
	name := nameOf(call)
	if s.called[name] == nil && name != "" {
		s.called[name] = call
	}
	switch name {
	case "set":
		s.someErrexit = s.someErrexit || turns(call, "+") || turns(call, "-") && call != s.errexit
	case "xargs", "parallel", "make":
		s.parallel = true
	case ".", "source":
		if s.isLibrary(call) {
			s.loads = true
		} else {
			s.sources = true
		}
	case "eval":
		s.sources = true // of what it does nothing is known
	}
}

// turns tells whether a call of set turns -e on, or off where the sign is +.
func turns(call *syntax.CallExpr, sign string) bool {
	for i, w := range call.Args {
		text, _ := literal(w)
		if text == "--" {
			return false
		}
		if isErrexit(strings.Replace(text, sign, "-", 1)) && strings.HasPrefix(text, sign) ||
			text == sign+"o" && i+1 < len(call.Args) && is(call.Args[i+1], "errexit") {
			return true
		}
	}
	return false
}

// isLibrary tells whether a call sources the library.
func (s *script) isLibrary(call *syntax.CallExpr) bool {
	if len(call.Args) < 2 {
		return false
	}
	return strings.HasSuffix(s.source(call.Args[1]), "adlock.sh") || strings.HasSuffix(s.resolved(call.Args[1]), "adlock.sh")
}

// resolved is the source of what a variable was set to, where a word is just that.
func (s *script) resolved(w *syntax.Word) string {
	name := strings.Trim(s.source(w), "${}")
	if value := s.values[name]; value != nil {
		return s.source(value)
	}
	return ""
}

// source is a node as the text has it, without quotes at both ends.
func (s *script) source(n syntax.Node) string {
	from, to := int(n.Pos().Offset()), int(n.End().Offset())
	if from > to || to > len(s.text) {
		return ""
	}
	return strings.Trim(s.text[from:to], `"'`)
}

// saysLock tells whether a text says anything of locks.
func (s *script) saysLock() bool {
	for _, name := range []string{get, with, guard, release, "adlock", "flock"} {
		if s.called[name] != nil {
			return true
		}
	}
	return s.loads
}

func (s *script) check() {
	if s.functions[get] || s.functions[guard] {
		return // the library itself, or one in its place
	}
	s.checkPairs()
	s.checkLoaded()
	calls(s.file, s.checkCall)
	s.statements(s.file.Stmts, false)
	s.checkGuard()
	s.assigned(s.Checker, s.text, s.file, line)
}

// checkPairs looks for a get without a release, and the other way round. What another
// file or a trap does, this one may not show: its words are enough.
func (s *script) checkPairs() {
	has := func(word string) bool { return strings.Contains(s.text, word) }
	switch {
	case s.sources:
	case s.called[get] != nil && !has(release):
		s.add(line(s.called[get]), "a get without a release", "the atom never completes: the next run finds the lock of one that has died", "say adlock_release where the work is done")
	case s.called[release] != nil && !has(get) && !has(guard):
		s.add(line(s.called[release]), "a release without a get", "nothing is held here", "say adlock_get before the work, in a condition")
	}
}

// checkLoaded looks for the line that the functions come from.
func (s *script) checkLoaded() {
	if s.loads || s.sources || strings.Contains(s.text, "adlock.sh") {
		return
	}
	for _, name := range []string{get, with, guard} {
		if call := s.called[name]; call != nil {
			s.add(line(call), "the library is not loaded", name+" is a function of adlock.sh, which nothing here sources", "say . /full/path/adlock.sh || exit 69 above")
			return
		}
	}
}

// checkCall looks at one call, wherever it stands.
func (s *script) checkCall(call *syntax.CallExpr) {
	args := call.Args[1:]
	if why := miscalled(nameOf(call), args); why != "" {
		s.add(line(call), "a call that is refused", why, "say it as sh adlock.sh --help has it")
		return
	}
	switch name := nameOf(call); name {
	case get, with:
		s.checkTake(call, args)
	case guard:
		t := terms{ifElapsed: at(args, 0), expireAfter: at(args, 1)}
		if file, err := filepath.Abs(s.path); err == nil {
			t.atom = atom.Atom{Program: filepath.Base(file), Host: s.Host, Operator: "guard", Operand: file}
		}
		s.limits(&s.findings, line(call), t)
	case ".", "source":
		if s.isLibrary(call) {
			s.checkPath(call)
		}
	}
	s.noVerb(line(call), call)
	v := s.readInvocation(call)
	if v == nil || s.isRefused(v) {
		return
	}
	s.checkName(call, v.said("if-elapsed"), v.named())
	if v.program == "adlock" {
		s.limits(&s.findings, line(call), s.termsOf(v))
	}
}

// miscalled is why a function of the library refuses so many words; "" where it takes them,
// or where only the run tells how many there are.
func miscalled(function string, args []*syntax.Word) string {
	switch n, known := len(args), !slices.ContainsFunc(args, isMany); {
	case function == get && known && (n < 2 || n > 6):
		return "adlock_get takes no lock without two to six words"
	case function == guard && known && n > 2:
		return "adlock_guard takes two words at most, and ends the script"
	case function == with:
		end := min(2, n) // -- may be operator or operand
		for end < n && !is(args[end], "--") {
			end++
		}
		if !slices.ContainsFunc(args[:end], isMany) && (end < 2 || end > 6 || end+1 >= n) {
			return "adlock_with runs nothing without two to six words, -- and a command"
		}
	}
	return ""
}

// isMany tells whether a word may become several words in the run, or none.
func isMany(w *syntax.Word) bool {
	for _, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.SglQuoted:
		case *syntax.Lit:
			if strings.ContainsAny(p.Value, "*?[{") {
				return true
			}
		case *syntax.DblQuoted:
			if slices.ContainsFunc(p.Parts, isList) {
				return true
			}
		default:
			return true
		}
	}
	return false
}

// isList tells whether a part of a quoted word is all arguments, or all of an array.
func isList(part syntax.WordPart) bool {
	p, is := part.(*syntax.ParamExp)
	return is && (p.Index != nil || p.Param == nil || p.Param.Value == "@")
}

// isRefused tells of options that `adlock run` does not take, whatever the environment.
func (s *script) isRefused(v *invocation) bool {
	return s.optionRefused(line(v.call), "command", s.refusal(v, nil, v.said("if-elapsed"), v.said("expire-after")))
}

// checkName looks for a name that is another in each run. What is to be done once only
// may be named by a date, and what a script starts beside itself by the script.
func (s *script) checkName(call *syntax.CallExpr, ifElapsed *syntax.Word, words []*syntax.Word) {
	d, _ := durationOf(ifElapsed)
	if text, whole := literal(ifElapsed); (text == "" && whole || ifElapsed == nil) && strings.Contains(s.text, "ADLOCK_IF_ELAPSED") {
		d = limit.Never // as far as is known
	}
	if !isNever(d) && !s.parallel {
		s.changes(line(call), words, s.values)
	}
}

// checkTake looks at the words of adlock_get, and of adlock_with up to its --.
func (s *script) checkTake(call *syntax.CallExpr, args []*syntax.Word) {
	if end := slices.IndexFunc(args, func(w *syntax.Word) bool { return is(w, "--") }); end >= 0 {
		args = args[:end]
	}
	if len(args) < 2 {
		return
	}
	t := terms{ifElapsed: at(args, 2), expireAfter: at(args, 3)}
	s.checkName(call, t.ifElapsed, args[:2])
	operator, whole1 := literal(args[0])
	operand, whole2 := literal(args[1])
	if whole1 && whole2 && !strings.Contains(s.text, "ADLOCK_PROGRAM") && !strings.Contains(s.text, "ADLOCK_HOST") && len(args) < 5 {
		t.atom = atom.Atom{Program: filepath.Base(s.path), Host: s.Host, Operator: operator, Operand: operand}
	}
	s.limits(&s.findings, line(call), t)
}

func at(words []*syntax.Word, i int) *syntax.Word {
	if i < len(words) {
		return words[i]
	}
	return nil
}

// checkPath looks at where a script that cron starts finds the library.
func (s *script) checkPath(call *syntax.CallExpr) {
	text, whole := literal(call.Args[1])
	file, err := filepath.Abs(s.path)
	if !whole || filepath.IsAbs(text) || err != nil || s.called["cd"] != nil ||
		s.called[guard] == nil && !strings.HasPrefix(file, "/etc/cron") {
		return
	}
	s.add(line(call), "the library by a relative path", text+" is looked for where cron starts the script, which is not where it lies", "write the full path")
}
