package main

import (
	"fmt"
	"strings"
	"time"

	"adlock/lib/insight/terminal"
)

// tables are the comparison: a row for each load, a column for each way to lock.
func tables(seeds, runs int) string {
	results := make([][]result, len(loads))
	for i, l := range loads {
		for _, r := range allRules {
			results[i] = append(results[i], compare(l, r, seeds, runs))
		}
	}
	var w strings.Builder
	for _, t := range []struct {
		title string
		cell  func(*result) string
	}{
		{"Healthy runs ended by mistake, of 10,000", func(s *result) string { return fmt.Sprintf("%.1f", s.per10000()) }},
		{"From a hang to the next completed run: mean (worst)", recoveryCell},
		{"Completed runs, of those possible without hangs and ends by force", func(s *result) string { return fmt.Sprintf("%.0f %%", 100*s.share()) }},
		{"Longest time without a completed run", func(s *result) string { return terminal.Duration(s.longest.Round(time.Minute)) }},
	} {
		table(&w, t.title, results, t.cell)
	}
	for i, l := range loads {
		if l.step > 0 {
			fmt.Fprintf(&w, "After the step at most (of %d times) so many healthy runs were ended:", seeds)
			for j, r := range allRules {
				fmt.Fprintf(&w, " %s %d;", r.name, results[i][j].worstAfterStep)
			}
			w.WriteString("\n")
		}
	}
	return w.String()
}

func table(w *strings.Builder, title string, results [][]result, cell func(*result) string) {
	w.WriteString("| " + title + " |")
	for _, r := range allRules {
		w.WriteString(" " + r.name + " |")
	}
	w.WriteString("\n| --- |" + strings.Repeat(" ---: |", len(allRules)) + "\n")
	for i, l := range loads {
		w.WriteString("| " + l.name + " |")
		for j := range allRules {
			w.WriteString(" " + cell(&results[i][j]) + " |")
		}
		w.WriteString("\n")
	}
	w.WriteString("\n")
}

func recoveryCell(s *result) string {
	if s.hangs == 0 && s.share() < 0.5 {
		return "never"
	}
	if s.hangs == 0 {
		return "–"
	}
	return terminal.Duration(s.meanRecovery().Round(time.Minute)) + " (" + terminal.Duration(s.worst.Round(time.Minute)) + ")"
}
