package helper

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Recipe is one block of a page, set apart as text to be typed, or copied into a file.
type Recipe struct {
	Page string // its path below the project's directory
	Text string
}

// Has reports whether the text is in the recipe.
func (r Recipe) Has(text string) bool { return strings.Contains(r.Text, text) }

// Pages are all pages that may have recipes.
func Pages(t testing.TB) []string {
	t.Helper()
	var pages []string
	for _, pattern := range []string{
		"*.md", "*/*.md", "*/*/*.md", ".github/*.md", "cmd/*/*.[1-8]", "lib/*.[1-8]", "sh/*.[1-8]",
	} {
		found, err := filepath.Glob(filepath.Join(Root(), pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range found {
			page, _ := filepath.Rel(Root(), path)
			if !strings.HasPrefix(page, "bats/node_modules/") && !strings.HasPrefix(page, "build/") {
				pages = append(pages, page)
			}
		}
	}
	slices.Sort(pages)
	return pages
}

var (
	fenced  = regexp.MustCompile("(?ms)^```\\w*\n(.*?)^```$")
	literal = regexp.MustCompile(`(?ms)^\.Bd -literal[^\n]*\n(.*?)^\.Ed$`)
	escapes = strings.NewReplacer(`\(aq`, "'", `\&`, "", `\-`, "-", `\e`, `\`)
)

// Recipes returns the recipes of a page: the text between ``` in Markdown, between .Bd -literal and
// .Ed in a manual page.
func Recipes(t testing.TB, page string) []Recipe {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(Root(), page))
	if err != nil {
		t.Fatal(err)
	}
	blocks, plain := fenced, func(text string) string { return text }
	if filepath.Ext(page) != ".md" {
		blocks, plain = literal, escapes.Replace
	}
	var recipes []Recipe
	for _, found := range blocks.FindAllStringSubmatch(string(content), -1) {
		recipes = append(recipes, Recipe{page, plain(found[1])})
	}
	return recipes
}

// TheRecipe is the one recipe of a page that has the text.
func TheRecipe(t testing.TB, page, text string) Recipe {
	t.Helper()
	var found []Recipe
	for _, r := range Recipes(t, page) {
		if r.Has(text) {
			found = append(found, r)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%s has %d recipes with %q", page, len(found), text)
	}
	return found[0]
}
