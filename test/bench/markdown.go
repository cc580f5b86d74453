package main

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// unit formats a figure.
type unit func(value float64) string

func duration(v float64) string {
	switch {
	case v < 1000:
		return digits(v) + " µs"
	case v < 1e6:
		return digits(v/1000) + " ms"
	}
	return digits(v/1e6) + " s"
}

func rate(v float64) string      { return digits(v) + "/s" }
func megabytes(v float64) string { return digits(v) + " MB" }

// digits formats a number with two or three significant digits.
func digits(v float64) string {
	switch {
	case v >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// markdown writes the results as tables: a line for each way, a column for each shell.
func markdown(machine string, results []result) string {
	var w strings.Builder
	fmt.Fprintf(&w, "%s. The median; how many times the first line of the table, and in brackets the middle half of the rounds.\n", machine)
	var missing []string
	for _, r := range results {
		if len(r.columns) > 0 {
			r.write(&w)
		}
		missing = append(missing, r.missing...)
	}
	if len(missing) > 0 {
		fmt.Fprintf(&w, "\nLeft out: %s.\n", strings.Join(unique(missing), "; "))
	}
	return w.String()
}

func unique(texts []string) (kept []string) {
	seen := map[string]bool{}
	for _, text := range texts {
		if !seen[text] {
			kept = append(kept, text)
		}
		seen[text] = true
	}
	return kept
}

func (r result) write(w *strings.Builder) {
	fmt.Fprintf(w, "\n| %s: %s |", r.letter, r.title)
	for _, c := range r.columns {
		fmt.Fprintf(w, " %s |", cmp.Or(c.shell, "time"))
	}
	fmt.Fprintf(w, " to reach |\n| --- |%s --- |\n", strings.Repeat(" ---: |", len(r.columns)))
	for _, v := range r.ways {
		if !r.measured(v) {
			continue
		}
		fmt.Fprintf(w, "| %s |", code(v.name))
		for _, c := range r.columns {
			fmt.Fprintf(w, " %s |", r.cell(c, v))
		}
		fmt.Fprintf(w, " %s |\n", r.reached(v))
	}
}

// code quotes a name that can be typed; a bar would end the cell.
func code(name string) string { return "`" + strings.ReplaceAll(name, "|", "\\|") + "`" }

func (r result) measured(v way) bool {
	for _, c := range r.columns {
		if c.figures[v.name] != nil {
			return true
		}
	}
	return false
}

func (r result) cell(c column, v way) string {
	f := c.figures[v.name]
	if f == nil {
		return ""
	}
	var told []string
	if value, found := c.spread(v.name); found {
		told = append(told, r.unit(value.median))
	}
	if ratio, found := c.beside(v.name, r.ways[0].name); found && v.name != r.ways[0].name {
		told = append(told, fmt.Sprintf("%s (%s–%s)", digits(ratio.median), digits(ratio.low), digits(ratio.high)))
	}
	if f.note != "" {
		told = append(told, f.note)
	}
	return strings.Join(told, "; ")
}

// reached lists each goal of a way, and the shells that reach it.
func (r result) reached(v way) string {
	var told []string
	for _, g := range v.goals {
		var yes, no []string
		for _, c := range r.columns {
			switch reached, known := c.reached(v.name, g); {
			case known && reached:
				yes = append(yes, cmp.Or(c.shell, "yes"))
			case known:
				no = append(no, cmp.Or(c.shell, "no"))
			}
		}
		told = append(told, g.text(r.unit)+verdict(yes, no))
	}
	return strings.Join(told, "; ")
}

func (g goal) text(u unit) string {
	most := digits(g.most) + " × " + code(g.beside)
	if g.beside == "" {
		most = u(g.most)
	}
	if g.bash != 0 {
		most += " (bash " + digits(g.bash) + ")"
	}
	if g.elsewhere > 0 {
		most += " (elsewhere " + digits(g.elsewhere) + ")"
	}
	return "≤ " + most
}

func verdict(yes, no []string) string {
	switch {
	case len(no) == 0 && len(yes) == 0:
		return ""
	case len(no) == 0:
		return ": **met**"
	case len(yes) == 0:
		return ": not met"
	}
	return ": met, but not in " + strings.Join(no, ", ")
}
