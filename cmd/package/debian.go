package main

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"
)

//go:embed copyright
var copyright string

//go:embed lintian-overrides
var overrides string

// heading begins the news of a version: ## 0.2.0 (2026-11-22).
var heading = regexp.MustCompile(`(?m)^## (\S+) \((.*)\)\n`)

// debianChangelog is CHANGELOG.md in the form that deb-changelog(5) wants. A version
// that is not released yet is of the day it was built.
func debianChangelog(path, maintainer string, built time.Time) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	found := heading.FindAllSubmatchIndex(text, -1)
	if len(found) == 0 {
		return nil, errors.New(path + ": has no version")
	}
	var out strings.Builder
	for i, at := range found {
		end := len(text)
		if i+1 < len(found) {
			end = found[i+1][0]
		}
		released, err := time.Parse(time.DateOnly, string(text[at[4]:at[5]]))
		if err != nil {
			released = built
		}
		fmt.Fprintf(&out, "adlock (%s-%s) unstable; urgency=medium\n\n%s\n\n -- %s  %s\n\n", text[at[2]:at[3]], revision,
			indented(string(text[at[1]:end])), maintainer, released.Format(time.RFC1123Z))
	}
	return []byte(strings.TrimSuffix(out.String(), "\n")), nil
}

// widest is how wide a line of a Debian changelog may be.
const widest = 80

// indented sets the items of a list in by two blanks, with a star for each dash, and
// breaks their lines anew.
func indented(text string) string {
	var out strings.Builder
	for _, block := range strings.Split("\n"+strings.TrimSpace(text), "\n- ") {
		star := "  * "
		if out.Len() == 0 {
			star = "  " // what stands above the list
		}
		column := 0
		for _, word := range strings.Fields(block) {
			switch {
			case column == 0:
				out.WriteString(star)
				column = len(star)
			case column+1+len(word) > widest:
				out.WriteString("\n    ")
				column = 4
			default:
				out.WriteString(" ")
				column++
			}
			out.WriteString(word)
			column += len(word)
		}
		out.WriteString("\n")
	}
	return strings.Trim(out.String(), "\n")
}
