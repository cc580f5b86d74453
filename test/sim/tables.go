package main

import (
	"fmt"
	"strings"
	"time"

	"adlock/lib/insight/terminal"
)

// tables returns the tables of the comparison: a row for each load, a column for each way to lock.
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
		hung  bool // only for the loads that hang
		cell  func(*result) string
	}{
		{"Healthy runs ended by mistake, of 10,000", false, func(s *result) string { return fmt.Sprintf("%.1f", s.per10000()) }},
		{"From an idle hang to the next completed run: mean (worst)", true, func(s *result) string { return recoveryCell(s.idle) }},
		{"From a spin to the next completed run: mean (worst)", true, func(s *result) string { return recoveryCell(s.spins) }},
		{"Completed runs, of those possible without hangs and ends by force", false, func(s *result) string { return fmt.Sprintf("%.0f %%", 100*s.share()) }},
		{"Longest time without a completed run", false, func(s *result) string { return terminal.Duration(s.longest.Round(time.Minute)) }},
	} {
		table(&w, t.title, results, t.hung, t.cell)
	}
	for i, l := range loads {
		if l.step > 0 {
			fmt.Fprintf(&w, "After the step at most (of %d times) so many healthy runs were ended:", seeds)
			for j, r := range allRules {
				fmt.Fprintf(&w, " %s %d;", r.name, results[i][j].worstAfterStep)
			}
			w.WriteString("\n\n")
		}
	}
	quickTable(&w, seeds, runs)
	return w.String()
}

func table(w *strings.Builder, title string, results [][]result, hung bool, cell func(*result) string) {
	w.WriteString("| " + title + " |")
	for _, r := range allRules {
		w.WriteString(" " + r.name + " |")
	}
	w.WriteString("\n| --- |" + strings.Repeat(" ---: |", len(allRules)) + "\n")
	for i, l := range loads {
		if l.hangs == 0 && hung {
			continue
		}
		w.WriteString("| " + l.name + " |")
		for j := range allRules {
			w.WriteString(" " + cell(&results[i][j]) + " |")
		}
		w.WriteString("\n")
	}
	w.WriteString("\n")
}

func recoveryCell(r recoveries) string {
	if r.hangs == 0 {
		return "–"
	}
	return terminal.Duration(r.mean().Round(time.Minute)) + " (" + terminal.Duration(r.worst.Round(time.Minute)) + ")"
}
