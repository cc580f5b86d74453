// House prints the table in lib/README.md of the parts of the product, called rooms: the packages
// below lib, the programs below cmd and the shell's files, each with its statements and the rooms
// that it imports, which all stand above it.
//
//	go run ./test/support/house [REVISION]        or make house [SINCE=REVISION]
//
// With a git revision it prints how many statements each room has gained or lost since. A
// statement is what the grammar calls one, or a declaration: comments, blank lines and line
// breaks do not count.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// room is one package, or one file of shell code.
type room struct {
	name       string // its path below lib, else from the top
	statements int    // for Linux, without tests
	imports    []string
}

func main() {
	rooms, err := survey(".")
	text := table(rooms)
	if err == nil && len(os.Args) > 1 {
		text, err = since(os.Args[1], rooms)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "house:", err)
		os.Exit(1)
	}
	fmt.Print(text)
}

// survey lists the rooms of the tree at dir, each after all rooms that it imports.
func survey(dir string) ([]room, error) {
	list := exec.Command("go", "list", "-json=ImportPath,Dir,GoFiles,Imports", "adlock/lib/...", "adlock/cmd/...")
	list.Dir, list.Stderr = dir, os.Stderr
	text, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var rooms []room
	for from := json.NewDecoder(bytes.NewReader(text)); ; {
		var found struct {
			ImportPath, Dir  string
			GoFiles, Imports []string
		}
		if err := from.Decode(&found); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		r := room{name: shortName(found.ImportPath)}
		for _, file := range found.GoFiles {
			n, err := goStatements(filepath.Join(found.Dir, file))
			if err != nil {
				return nil, err
			}
			r.statements += n
		}
		for _, path := range found.Imports {
			if strings.HasPrefix(path, "adlock/") {
				r.imports = append(r.imports, shortName(path))
			}
		}
		rooms = append(rooms, r)
	}
	rooms = order(rooms)
	for _, file := range []string{"sh/adlock.sh", "sh/guarded-crontabs", "sh/shell"} {
		n, err := shellStatements(filepath.Join(dir, file))
		if err != nil {
			return nil, err
		}
		rooms = append(rooms, room{name: file, statements: n})
	}
	return rooms, nil
}

func shortName(path string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path, "adlock/"), "lib/")
}

func goStatements(path string) (n int, err error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return 0, err
	}
	ast.Inspect(file, func(node ast.Node) bool {
		switch node.(type) {
		case *ast.BlockStmt, *ast.EmptyStmt, *ast.DeclStmt: // its contents count
		case ast.Stmt, *ast.FuncDecl, *ast.TypeSpec, *ast.ValueSpec:
			n++
		}
		return true
	})
	return n, nil
}

func shellStatements(path string) (n int, err error) {
	text, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer text.Close()
	file, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(text, path)
	if err != nil {
		return 0, err
	}
	syntax.Walk(file, func(node syntax.Node) bool {
		if s, is := node.(*syntax.Stmt); is {
			switch s.Cmd.(type) {
			case *syntax.Block, *syntax.BinaryCmd: // its contents count
			default:
				n++
			}
		}
		return true
	})
	return n, nil
}

// order sorts the rooms by the longest way down to a room without imports.
func order(rooms []room) []room {
	byName := map[string]room{}
	for _, r := range rooms {
		byName[r.name] = r
	}
	var depth func(name string) int
	depth = func(name string) (deepest int) {
		for _, below := range byName[name].imports {
			deepest = max(deepest, 1+depth(below))
		}
		return deepest
	}
	slices.SortFunc(rooms, func(a, b room) int {
		if by := depth(a.name) - depth(b.name); by != 0 {
			return by
		}
		return strings.Compare(a.name, b.name)
	})
	return rooms
}

func table(rooms []room) string {
	var text strings.Builder
	arrows := 0
	for _, r := range rooms {
		line := fmt.Sprintf("%-26s %5d  %s", r.name, r.statements, strings.Join(r.imports, " "))
		text.WriteString(strings.TrimRight(line, " ") + "\n")
		arrows += len(r.imports)
	}
	inGo, inShell := total(rooms)
	fmt.Fprintf(&text, "%-26s %5d\n%-26s %5d\n", "Go", inGo, "shell", inShell)
	fmt.Fprintf(&text, "%d rooms, %d imports between them\n", len(rooms), arrows)
	return text.String()
}

func total(rooms []room) (inGo, inShell int) {
	for _, r := range rooms {
		if strings.HasPrefix(r.name, "sh/") {
			inShell += r.statements
		} else {
			inGo += r.statements
		}
	}
	return inGo, inShell
}

// since compares the rooms with those of a revision.
func since(revision string, now []room) (string, error) {
	dir, err := os.MkdirTemp("", "adlock-house-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	get := exec.Command("sh", "-c", `git archive --output "$2/tar" "$1" && tar -x -f "$2/tar" -C "$2"`, "sh", revision, dir)
	get.Stderr = os.Stderr
	if err := get.Run(); err != nil {
		return "", fmt.Errorf("%s: %w", revision, err)
	}
	then, err := survey(dir)
	if err != nil {
		return "", err
	}
	more := map[string]int{}
	for _, r := range then {
		more[r.name] -= r.statements
	}
	for _, r := range now {
		more[r.name] += r.statements
	}
	var text strings.Builder
	for _, r := range append(slices.Clone(now), then...) {
		if n := more[r.name]; n != 0 {
			fmt.Fprintf(&text, "%-26s %+5d\n", r.name, n)
		}
		delete(more, r.name)
	}
	inGo, inShell := total(now)
	wasGo, wasShell := total(then)
	fmt.Fprintf(&text, "%+d statements of Go and %+d of shell since %s\n", inGo-wasGo, inShell-wasShell, revision)
	return text.String(), nil
}
