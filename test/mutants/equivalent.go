package main

import (
	_ "embed"
	"fmt"
	"strings"
)

// equivalents lists the mutants that no test can catch, each with the reason on
// indented lines below it.
//
//go:embed equivalent.txt
var equivalents string

// parseEquivalents returns the reasons by the mutants' keys.
func parseEquivalents(text string) (map[string]string, error) {
	reasons := map[string]string{}
	key := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		switch words := strings.TrimSpace(line); {
		case words == "" || strings.HasPrefix(line, "#"):
		case words != line:
			if key == "" {
				return nil, fmt.Errorf("equivalents: a reason without a mutant: %q", words)
			}
			reasons[key] = strings.TrimSpace(reasons[key] + " " + words)
		default:
			if _, there := reasons[line]; there {
				return nil, fmt.Errorf("equivalents: twice: %q", line)
			}
			key, reasons[line] = line, ""
		}
	}
	for key, reason := range reasons {
		if reason == "" {
			return nil, fmt.Errorf("equivalents: no reason for %q", key)
		}
	}
	return reasons, nil
}
