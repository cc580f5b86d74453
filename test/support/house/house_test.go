package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"adlock/test/support/must"
)

func rooms(t *testing.T) []room {
	t.Helper()
	return must.Get(survey("../../.."))(t)
}

func TestTheTableOfPackagesInTheReadmeIsUpToDate(t *testing.T) {
	page := must.Get(os.ReadFile("../../../lib/README.md"))(t)
	_, rest, _ := strings.Cut(string(page), "```\n")
	shown, _, _ := strings.Cut(rest, "```")
	was, counted := apart(shown)
	is, now := apart(table(rooms(t)))
	if was != is || !slices.EqualFunc(counted, now, alike) {
		t.Errorf("lib/README.md shows\n%s\nmake house says\n%s", shown, table(rooms(t)))
	}
}

var countOf = regexp.MustCompile(`(?m)^(\S+) +(\d+)`)

// apart splits a table into its text and the numbers of statements.
func apart(table string) (rest string, counted []int) {
	for _, row := range countOf.FindAllStringSubmatch(table, -1) {
		n, _ := strconv.Atoi(row[2])
		counted = append(counted, n)
	}
	return countOf.ReplaceAllString(table, "$1"), counted
}

// alike lets a room grow by a tenth before the page must change: otherwise each new statement would change it.
func alike(was, is int) bool { return max(was-is, is-was) <= 20+was/10 }

func TestNoPackageIsTooLargeOrImportsOneListedLater(t *testing.T) {
	above := map[string]bool{}
	for _, r := range rooms(t) {
		const most = 1300
		if r.statements > most && !strings.HasPrefix(r.name, "cmd/") {
			t.Errorf("%s has %d statements, more than %d", r.name, r.statements, most)
		}
		for _, name := range r.imports {
			if !above[name] {
				t.Errorf("%s imports %s, which stands below it", r.name, name)
			}
		}
		above[r.name] = true
	}
}

// The helper starts for each lock, so each package that it links makes each lock slower.
func TestTheHelperLinksTwoModulesAndNoReportsOrStores(t *testing.T) {
	text := must.Get(exec.Command("go", "list", "-deps", "adlock/cmd/adlock").Output())(t)
	for path := range strings.Lines(string(text)) {
		path = strings.TrimSpace(path)
		root, _, _ := strings.Cut(path, "/")
		others := strings.Contains(root, ".") && !strings.HasPrefix(path, "golang.org/x/sys/") && path != "github.com/google/renameio/v2"
		ours := slices.ContainsFunc([]string{"crontab", "doctor", "insight", "lint", "lease"}, func(room string) bool {
			return strings.HasPrefix(path+"/", "adlock/lib/"+room+"/")
		})
		if others || ours {
			t.Errorf("cmd/adlock links %s", path)
		}
	}
}

// The pages name tests, often only a part of the name: `TestExactlyOne…` and `…OfNoFile…`.
func TestThePagesNameOnlyTestsThatExist(t *testing.T) {
	pages := must.Get(filepath.Glob("../../*/README.md"))(t)
	code, files := sources(t)
	for _, path := range append(pages, "../../README.md", "../../../lib/README.md", "../../../.github/CONTRIBUTING.md") {
		page := must.Get(os.ReadFile(path))(t)
		checkNamed(t, path, string(page), code, files)
	}
}

func checkNamed(t *testing.T, path, page, code string, files []string) {
	t.Helper()
	for _, named := range regexp.MustCompile("`(?:Test|Fuzz|…)[\\w…]+`").FindAllString(page, -1) {
		pattern := strings.ReplaceAll(strings.Trim(named, "`"), "…", `\w*`)
		if !regexp.MustCompile(`(?m)^func ` + pattern + `\(`).MatchString(code) {
			t.Errorf("%s names %s, which is not there", path, named)
		}
	}
	for _, named := range regexp.MustCompile(`\w+_test\.go`).FindAllString(page, -1) {
		if !slices.Contains(files, named) {
			t.Errorf("%s names %s, which is not there", path, named)
		}
	}
}

// sources returns all test files, put together, and their names.
func sources(t *testing.T) (code string, names []string) {
	t.Helper()
	for _, folder := range []string{"../../../lib", "../../../cmd", "../../../test"} {
		err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			code, names = code+string(text), append(names, d.Name())
			return err
		})
		must.Do(t, err)
	}
	return code, names
}
