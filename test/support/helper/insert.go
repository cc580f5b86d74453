package helper

import (
	"fmt"
	"os"
	"strings"
)

// Insert replaces the text of a page between the lines `<!-- COMMAND -->` and `<!-- made by
// COMMAND -->`. A page without these lines is an error.
func Insert(path, command, text string) error {
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	begin, end := "<!-- "+command+" -->\n", "<!-- made by "+command+" -->"
	before, rest, found := strings.Cut(string(page), begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		return fmt.Errorf("%s: has no lines %s and %s", path, strings.TrimSpace(begin), end)
	}
	return os.WriteFile(path, []byte(before+begin+text+end+after), 0o644)
}
