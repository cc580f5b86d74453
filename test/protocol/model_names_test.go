package protocol

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"adlock/test/support/helper"
	"adlock/test/support/must"
)

const (
	protocol   = "adlock.pml"
	job        = "job.pml"
	standstill = "standstill.pml"
	inStore    = "lease.pml"
	questions  = "agent.pml"
)

// A step names its function, as (package.Type.name) or (package.name).
func TestEveryStepNamesAFunctionThatExists(t *testing.T) {
	declared := declarations(t, filepath.Join(helper.Root(), "lib"))
	named := regexp.MustCompile(`\(([a-z]+(?:\.[A-Za-z]+){1,2})\)`)
	for _, file := range []string{job, standstill, inStore} {
		text := must.Get(os.ReadFile(file))(t)
		_, steps, _ := strings.Cut(string(text), "*/") // the first comment explains the form of the names
		found := named.FindAllStringSubmatch(steps, -1)
		if len(found) == 0 {
			t.Errorf("%s names no function", file)
		}
		for _, match := range found {
			if !declared[match[1]] {
				t.Errorf("%s: no %s", file, match[1])
			}
		}
	}
}

// declarations returns the functions, methods, fields and variables of the
// packages below dir.
func declarations(t *testing.T, dir string) map[string]bool {
	t.Helper()
	declared := map[string]bool{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		for _, declaration := range file.Decls {
			for _, name := range names(declaration) {
				declared[file.Name.Name+"."+name] = true
			}
		}
		return nil
	})
	must.Do(t, err)
	return declared
}

func names(declaration ast.Decl) (list []string) {
	switch d := declaration.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			return []string{d.Name.Name}
		}
		of := d.Recv.List[0].Type
		if star, is := of.(*ast.StarExpr); is {
			of = star.X
		}
		if receiver, is := of.(*ast.Ident); is {
			return []string{receiver.Name + "." + d.Name.Name}
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.ValueSpec:
				for _, name := range s.Names {
					list = append(list, name.Name)
				}
			case *ast.TypeSpec:
				fields, is := s.Type.(*ast.StructType)
				if !is {
					continue
				}
				for _, field := range fields.Fields.List {
					for _, name := range field.Names {
						list = append(list, s.Name.Name+"."+name.Name)
					}
				}
			}
		}
	}
	return list
}
