package runlog

import (
	"go/ast"
	goparser "go/parser"
	"go/token"
	"slices"
	"strconv"
	"testing"

	"adlock/test/support/must"
)

// A kind that is not in Kinds cannot be selected, and has no metric.
func TestKindsHasEveryKind(t *testing.T) {
	file := must.Get(goparser.ParseFile(token.NewFileSet(), "event.go", nil, 0))(t)
	var declared []Kind
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if ok && len(spec.Values) == 1 {
			if kind, isName := spec.Type.(*ast.Ident); isName && kind.Name == "Kind" {
				text := must.Get(strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value))(t)
				declared = append(declared, Kind(text))
			}
		}
		return true
	})
	if !slices.Equal(declared, Kinds()) || len(declared) < 10 {
		t.Errorf("declared are %v, Kinds has %v", declared, Kinds())
	}
}
