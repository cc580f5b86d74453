package helper

import (
	"os"
	"path/filepath"
	"testing"

	"adlock/test/support/must"
)

func TestInsertReplacesTheTextBetweenTheMarks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page")
	must.Do(t, os.WriteFile(path, []byte("above\n<!-- make x -->\n<!-- made by make x -->\nbelow\n"), 0o600))
	for _, text := range []string{"one\n", "two\n"} {
		must.Do(t, Insert(path, "make x", text))
		page, _ := os.ReadFile(path)
		if want := "above\n<!-- make x -->\n" + text + "<!-- made by make x -->\nbelow\n"; string(page) != want {
			t.Errorf("%q, not %q", page, want)
		}
	}
	if Insert(path, "make y", "one\n") == nil {
		t.Error("a file without the lines is no error")
	}
}
