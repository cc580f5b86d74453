package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
)

// mutant is one small change of a file: the bytes from..to become text.
type mutant struct {
	file     string // as seen from the module's root
	function string // that holds it; "" at the top level
	line     int
	column   int
	change   string // what becomes what
	source   string // the line, trimmed

	from, to int
	text     string
}

// key tells a mutant apart from the others whatever is added above its line.
func (m mutant) key() string {
	return strings.Join([]string{m.file, m.function, m.change, m.source}, ": ")
}

func (m mutant) String() string {
	return fmt.Sprintf("%s:%d: %s: %s: %s", m.file, m.line, m.function, m.change, m.source)
}

// apply returns the file with the change made.
func (m mutant) apply(source []byte) []byte {
	return append(append(bytes.Clone(source[:m.from]), m.text...), source[m.to:]...)
}

// finder walks through one file. Its changes are of the text, so that all else
// stays as it is, line numbers too.
type finder struct {
	file     string
	source   []byte
	set      *token.FileSet
	function string
	results  *ast.FieldList // of the innermost function
	found    []mutant
}

// find lists the mutants of a file in the order of the text.
func find(file string, source []byte) ([]mutant, error) {
	f := &finder{file: filepath.ToSlash(file), source: source, set: token.NewFileSet()}
	tree, err := parser.ParseFile(f.set, file, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, decl := range tree.Decls {
		f.function = ""
		if fn, is := decl.(*ast.FuncDecl); is {
			f.function = called(fn)
			f.inside(fn.Type, fn.Body)
		} else if gen := decl.(*ast.GenDecl); gen.Tok != token.IMPORT {
			ast.Walk(f, gen)
		}
	}
	return f.found, nil
}

// called is a function's name, with its receiver's where it has one.
func called(fn *ast.FuncDecl) string {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return fn.Name.Name
	}
	receiver := fn.Recv.List[0].Type
	if star, is := receiver.(*ast.StarExpr); is {
		receiver = star.X
	}
	if id, is := receiver.(*ast.Ident); is {
		return id.Name + "." + fn.Name.Name
	}
	return fn.Name.Name
}

func (f *finder) inside(sort *ast.FuncType, body *ast.BlockStmt) {
	if body == nil {
		return
	}
	outer := f.results
	f.results = sort.Results
	ast.Walk(f, body)
	f.results = outer
}

// Visit mutates one node, and goes on into it.
func (f *finder) Visit(node ast.Node) ast.Visitor {
	switch n := node.(type) {
	case *ast.FuncLit:
		f.inside(n.Type, n.Body)
		return nil
	case *ast.StructType, *ast.InterfaceType: // a tag is no constant
		return nil
	case *ast.BinaryExpr:
		f.binary(n)
	case *ast.UnaryExpr:
		if n.Op == token.NOT {
			f.replace(n, f.text(n.X))
		}
	case *ast.IncDecStmt:
		f.swap(n, n.TokPos, n.Tok, inverse[n.Tok])
	case *ast.AssignStmt:
		f.assignment(n)
	case *ast.ExprStmt, *ast.DeferStmt:
		f.remove(node)
	case *ast.BranchStmt:
		f.remove(n)
	case *ast.ReturnStmt:
		f.returned(n)
	case *ast.IfStmt:
		f.condition(n.Cond)
	case *ast.BasicLit:
		f.constant(n)
	case *ast.Ident:
		f.truth(n)
	}
	return f
}

var negated = map[token.Token]token.Token{
	token.EQL: token.NEQ, token.NEQ: token.EQL, token.LSS: token.GEQ, token.GEQ: token.LSS,
	token.GTR: token.LEQ, token.LEQ: token.GTR, token.LAND: token.LOR, token.LOR: token.LAND,
}

var shifted = map[token.Token]token.Token{
	token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
}

var inverse = map[token.Token]token.Token{
	token.ADD: token.SUB, token.SUB: token.ADD, token.MUL: token.QUO, token.QUO: token.MUL, token.REM: token.MUL,
	token.SHL: token.SHR, token.SHR: token.SHL, token.AND: token.OR, token.OR: token.AND, token.XOR: token.AND,
	token.AND_NOT: token.AND, token.INC: token.DEC, token.DEC: token.INC,
	token.ADD_ASSIGN: token.SUB_ASSIGN, token.SUB_ASSIGN: token.ADD_ASSIGN, token.MUL_ASSIGN: token.QUO_ASSIGN,
	token.QUO_ASSIGN: token.MUL_ASSIGN, token.OR_ASSIGN: token.AND_ASSIGN, token.AND_ASSIGN: token.OR_ASSIGN,
	token.XOR_ASSIGN: token.AND_ASSIGN, token.SHL_ASSIGN: token.SHR_ASSIGN, token.SHR_ASSIGN: token.SHL_ASSIGN,
}

func (f *finder) binary(n *ast.BinaryExpr) {
	if n.Op == token.ADD && joinsText(n) {
		return // text has no minus
	}
	for _, table := range []map[token.Token]token.Token{negated, shifted, inverse} {
		f.swap(n, n.OpPos, n.Op, table[n.Op])
	}
}

func joinsText(e ast.Expr) bool {
	switch n := e.(type) {
	case *ast.BinaryExpr:
		return joinsText(n.X) || joinsText(n.Y)
	case *ast.ParenExpr:
		return joinsText(n.X)
	case *ast.BasicLit:
		return n.Kind == token.STRING
	}
	return false
}

func (f *finder) assignment(n *ast.AssignStmt) {
	if n.Tok == token.DEFINE {
		return // what uses it would not compile
	}
	f.remove(n)
	f.swap(n, n.TokPos, n.Tok, inverse[n.Tok])
}

// returned swallows an error, and turns a truth that no other change turns.
func (f *finder) returned(n *ast.ReturnStmt) {
	if len(n.Results) == 0 {
		f.remove(n)
		return
	}
	if f.results == nil || len(n.Results) != f.results.NumFields() {
		return // the results of one call
	}
	last := n.Results[len(n.Results)-1]
	switch id, _ := f.results.List[len(f.results.List)-1].Type.(*ast.Ident); {
	case id == nil:
	case id.Name == "error" && f.text(last) != "nil":
		f.replace(last, "nil")
	case id.Name == "bool":
		f.condition(last)
	}
}

// condition turns a truth that is neither compared nor combined.
func (f *finder) condition(e ast.Expr) {
	switch e.(type) {
	case *ast.CallExpr, *ast.SelectorExpr, *ast.IndexExpr:
		f.replace(e, "!"+f.text(e))
	case *ast.Ident:
		if name := f.text(e); name != "true" && name != "false" {
			f.replace(e, "!"+name)
		}
	}
}

func (f *finder) constant(n *ast.BasicLit) {
	if n.Kind != token.INT {
		return
	}
	if value, err := strconv.ParseInt(n.Value, 0, 64); err == nil {
		f.replace(n, strconv.FormatInt(value+1, 10))
	}
}

func (f *finder) truth(n *ast.Ident) {
	switch n.Name {
	case "true":
		f.replace(n, "false")
	case "false":
		f.replace(n, "true")
	}
}

// swap exchanges an operator; for none there is nothing to do.
func (f *finder) swap(n ast.Node, at token.Pos, old, now token.Token) {
	if now == token.ILLEGAL {
		return
	}
	from := f.offset(at)
	f.add(at, short(f.text(n))+" with "+now.String(), from, from+len(old.String()), now.String())
}

func (f *finder) replace(n ast.Node, text string) {
	f.add(n.Pos(), short(f.text(n))+" => "+short(text), f.offset(n.Pos()), f.offset(n.End()), text)
}

// remove leaves an empty statement, and the lines that it took.
func (f *finder) remove(n ast.Node) {
	old := f.text(n)
	f.add(n.Pos(), "without "+short(old), f.offset(n.Pos()), f.offset(n.End()), strings.Repeat("\n", strings.Count(old, "\n")))
}

func (f *finder) add(at token.Pos, change string, from, to int, text string) {
	position := f.set.Position(at)
	f.found = append(f.found, mutant{
		file: f.file, function: f.function, line: position.Line, column: position.Column, change: change,
		source: strings.TrimSpace(lineAt(f.source, from)), from: from, to: to, text: text,
	})
}

func (f *finder) offset(at token.Pos) int { return f.set.Position(at).Offset }

func (f *finder) text(n ast.Node) string {
	return string(f.source[f.offset(n.Pos()):f.offset(n.End())])
}

func lineAt(source []byte, offset int) string {
	begin := bytes.LastIndexByte(source[:offset], '\n') + 1
	line, _, _ := bytes.Cut(source[begin:], []byte("\n"))
	return string(line)
}

// short is text on one line.
func short(text string) string { return strings.Join(strings.Fields(text), " ") }
