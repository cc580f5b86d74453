package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
)

// selector is the variable of the environment that says which mutant a test
// binary is to be, and that its second processes inherit.
const selector = "ADLOCK_MUTANT"

// selectorFile goes into the package beside its own files.
const selectorFile = `package %s

import "os"

var mutant__ = os.Getenv("` + selector + `")
`

// schema is a file that holds all its mutants at once ("mutant schemata",
// Untch, Offutt and Harrold 1993): a function becomes as many copies as it has
// mutants, one as it was, and a dispatcher under its name. So a package is
// built once and not hundreds of times.
type schema struct {
	file  *ast.File
	text  strings.Builder
	line  int // that is written next
	spans []span
	from  finder // for its source and offsets
}

// span is where a mutant's copy stands.
type span struct{ mutant, first, last int }

// numbered is a mutant and its number within the package.
type numbered struct {
	mutant
	number int
}

// newSchema rewrites a file for its mutants. Those at the top level are left out.
func newSchema(path string, source []byte, mutants []numbered) (*schema, error) {
	s := &schema{line: 1, from: finder{source: source, set: token.NewFileSet()}}
	var err error
	if s.file, err = parser.ParseFile(s.from.set, path, source, parser.SkipObjectResolution|parser.ParseComments); err != nil {
		return nil, err
	}
	done := 0
	for _, decl := range s.file.Decls {
		fn, is := decl.(*ast.FuncDecl)
		if !is || fn.Body == nil {
			continue
		}
		var own []numbered
		for _, m := range mutants {
			if m.from >= s.from.offset(fn.Pos()) && m.to <= s.from.offset(fn.End()) {
				own = append(own, m)
			}
		}
		if len(own) == 0 {
			continue
		}
		s.write(string(source[done:s.from.offset(fn.Pos())]))
		s.dispatcher(fn, own)
		s.copied(fn, 0, source, 0)
		for _, m := range own {
			first := s.line
			s.copied(fn, m.number, m.apply(source), len(m.text)-(m.to-m.from))
			s.spans = append(s.spans, span{m.number, first, s.line})
		}
		done = s.from.offset(fn.End())
	}
	s.write(string(source[done:]))
	return s, nil
}

func (s *schema) write(text string) {
	s.text.WriteString(text)
	s.line += strings.Count(text, "\n")
}

func twin(name string, number int) string { return name + "__" + strconv.Itoa(number) }

// copied writes a function under another name, from a source that is longer by
// grown within it.
func (s *schema) copied(fn *ast.FuncDecl, number int, source []byte, grown int) {
	begin, name, end := s.from.offset(fn.Pos()), s.from.offset(fn.Name.Pos()), s.from.offset(fn.End())
	s.write(string(source[begin:name]) + twin(fn.Name.Name, number) + string(source[name+len(fn.Name.Name):end+grown]) + "\n\n")
}

// dispatcher writes the function that goes on in the copy that was chosen.
func (s *schema) dispatcher(fn *ast.FuncDecl, own []numbered) {
	receiver, call := "", ""
	if fn.Recv != nil {
		receiver, call = "(r__ "+s.from.text(fn.Recv.List[0].Type)+") ", "r__."
	}
	generic := ""
	if fn.Type.TypeParams != nil {
		generic = s.from.text(fn.Type.TypeParams)
	}
	parameters, arguments := s.parameters(fn.Type.Params)
	results, leave := "", "; return"
	if fn.Type.Results != nil {
		results, leave = s.from.text(fn.Type.Results)+" ", ""
		call = "return " + call
	}
	s.write("func " + receiver + fn.Name.Name + generic + "(" + parameters + ") " + results + "{\n\tswitch mutant__ {\n")
	for _, m := range own {
		s.write(fmt.Sprintf("\tcase %q: %s%s(%s)%s\n", strconv.Itoa(m.number), call, twin(fn.Name.Name, m.number), arguments, leave))
	}
	s.write("\t}\n\t" + call + twin(fn.Name.Name, 0) + "(" + arguments + ")\n}\n\n")
}

// parameters gives every parameter a name, and passes them on.
func (s *schema) parameters(list *ast.FieldList) (declared, passed string) {
	var declare, pass []string
	for _, field := range list.List {
		for range max(1, len(field.Names)) {
			name := "p__" + strconv.Itoa(len(pass))
			declare = append(declare, name+" "+s.from.text(field.Type))
			if _, variadic := field.Type.(*ast.Ellipsis); variadic {
				name += "..."
			}
			pass = append(pass, name)
		}
	}
	return strings.Join(declare, ", "), strings.Join(pass, ", ")
}

// at returns the mutant whose copy has a line; 0: none has.
func (s *schema) at(line int) int {
	for _, sp := range s.spans {
		if sp.first <= line && line < sp.last {
			return sp.mutant
		}
	}
	return 0
}
