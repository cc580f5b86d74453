// House prints the rooms of the house, that is the packages below lib, as the
// table that stands in lib/README.md: each with its lines of code without tests and
// the rooms that it imports, which all stand above it.
//
//	go run ./test/house
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// room is one package below lib.
type room struct {
	name    string // its path below lib
	lines   int    // of code for Linux, comments and blank lines included, without tests
	imports []string
}

func main() {
	rooms, err := survey()
	if err != nil {
		fmt.Fprintln(os.Stderr, "house:", err)
		os.Exit(1)
	}
	fmt.Print(table(rooms))
}

// survey asks the go command for the rooms, and puts each below all that it imports.
func survey() ([]room, error) {
	list := exec.Command("go", "list", "-json=ImportPath,Dir,GoFiles,Imports", "adlock/lib/...")
	list.Stderr = os.Stderr
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
			return order(rooms), nil
		} else if err != nil {
			return nil, err
		}
		r := room{name: strings.TrimPrefix(found.ImportPath, "adlock/lib/")}
		for _, file := range found.GoFiles {
			content, err := os.ReadFile(filepath.Join(found.Dir, file))
			if err != nil {
				return nil, err
			}
			r.lines += bytes.Count(content, []byte{'\n'})
		}
		for _, path := range found.Imports {
			if name, ours := strings.CutPrefix(path, "adlock/lib/"); ours {
				r.imports = append(r.imports, name)
			}
		}
		rooms = append(rooms, r)
	}
}

// order puts those with the longest way down to a room without imports last.
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
		line := fmt.Sprintf("%-18s %5d  %s", r.name, r.lines, strings.Join(r.imports, " "))
		text.WriteString(strings.TrimRight(line, " ") + "\n")
		arrows += len(r.imports)
	}
	fmt.Fprintf(&text, "%d rooms, %d imports between them\n", len(rooms), arrows)
	return text.String()
}
