package protocol

import (
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
	inLine     = "line.pml"
)

// A step names its function, method, field or variable, as (package.Type.name) or (package.name).
func TestModelStepsNameExistingIdentifiers(t *testing.T) {
	sources := sourcesOf(t)
	named := regexp.MustCompile(`\(([a-z]+)\.(?:([A-Za-z]+)\.)?([A-Za-z]+)\)`)
	for _, file := range []string{job, standstill, inStore, inLine} {
		_, steps, _ := strings.Cut(string(must.Get(os.ReadFile(file))(t)), "*/") // behind what explains the names
		found := named.FindAllStringSubmatch(steps, -1)
		if len(found) == 0 {
			t.Errorf("%s names no function", file)
		}
		for _, match := range found {
			kind, name := match[2], match[3]
			declared := `(?m)^func ` + name + `\(|^(?:var |const |\t)` + name + ` .*=`
			if kind != "" {
				declared = `(?m)^func \(\w+ \*?` + kind + `\) ` + name + `\(|` +
					`^type ` + kind + ` struct \{(?:\n.*[^}])*?\n\t(?:\w+, )*` + name + `\b`
			}
			if !regexp.MustCompile(declared).MatchString(sources[match[1]]) {
				t.Errorf("%s: no %s", file, match[0])
			}
		}
	}
}

// sourcesOf returns the source texts of the packages in lib, by their names.
func sourcesOf(t *testing.T) map[string]string {
	t.Helper()
	sources := map[string]string{}
	must.Do(t, filepath.WalkDir(filepath.Join(helper.Root(), "lib"), func(path string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		sources[filepath.Base(filepath.Dir(path))] += string(text)
		return err
	}))
	return sources
}
