package main

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"adlock/lib/app"
	"adlock/lib/atom"
	"adlock/lib/exit"
	"adlock/lib/history"
	"adlock/lib/json"
	"adlock/lib/learn"
	"adlock/lib/limit"
	"adlock/lib/lock"
	"adlock/lib/name"
	"adlock/lib/terminal"
)

func tuneVerb() *cli.Command {
	return app.Verb("tune", "tell what atoms have learned (limits that are auto), and what that would decide", " ",
		[]cli.Flag{
			atomFlag(),
			&cli.BoolFlag{Name: "explain", Usage: "with the arithmetic"},
			&cli.BoolFlag{Name: "json", Usage: "as JSON, one array; durations are seconds"},
			&cli.StringFlag{Name: "reset", Usage: "`ATOM`: forget what this one has learned; by its NAME or by a text as --atom takes it"},
		}, tune)
}

// tuned is one atom that has learned.
type tuned struct {
	files     string
	atom      name.Atom // zero where only NAME is known
	learned   learn.State
	ifElapsed time.Duration // that ExpireAfter is not to be below: as last asked for, or the learned one
}

func tune(c *cli.Context) error {
	if err := errors.Join(app.NoArguments(c), app.OneOf(c, "reset", "json"), app.OneOf(c, "reset", "explain"), app.OneOf(c, "reset", "atom")); err != nil {
		return err
	}
	entries, err := atoms()
	if err != nil {
		return err
	}
	if c.IsSet("reset") {
		return reset(entries, c.String("reset"))
	}
	all := learners(entries, c.String("atom"))
	if c.Bool("json") {
		return write(tunedJSON(all))
	}
	return write([]byte(tunedText(all, c.Bool("explain"))))
}

// learners are the entries that have learned something.
func learners(entries []atom.Entry, text string) []*tuned {
	asked := lastAsked()
	var all []*tuned
	for i := range entries {
		e := &entries[i]
		a, _ := nameOf(e)
		if e.Memory.Learned == (learn.State{}) || e.Files != text && !matches(text, a) {
			continue
		}
		t := &tuned{files: e.Files, atom: a, learned: e.Memory.Learned, ifElapsed: e.Memory.Learned.IfElapsed()}
		if last, known := asked[e.Files]; known {
			t.ifElapsed = last.limits.IfElapsed
		}
		all = append(all, t)
	}
	return all
}

// reset makes one atom forget. Which one is meant must be beyond doubt.
func reset(entries []atom.Entry, text string) error {
	var found []string
	for i := range entries {
		a, _ := nameOf(&entries[i])
		if entries[i].Files == text {
			found = []string{text}
			break
		}
		if text != "" && matches(text, a) {
			found = append(found, entries[i].Files)
		}
	}
	switch len(found) {
	case 0:
		return exit.New(exit.Usage, strconv.Quote(text), "no such atom")
	case 1:
		return forget(found[0])
	}
	return exit.New(exit.Usage, strconv.Quote(text), "may be any of "+strings.Join(found, ", "))
}

func forget(files string) error {
	path, err := lock.DefaultDir()
	if err != nil {
		return err
	}
	dir, err := lock.Open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	return exit.Wrap(dir.Path(lock.LastPrefix+files), (&atom.Keeper{Dir: dir}).Forget(files))
}

// tunedText is the table for people; what the limits are made of stands below
// each line.
func tunedText(all []*tuned, explain bool) string {
	if len(all) == 0 {
		return "no atom has learned anything: it takes --expire-after auto or --if-elapsed auto\n"
	}
	lines := [][]string{{"ATOM", "RUNS", "TYPICAL", "LONGEST", "IFELAPSED", "EXPIREAFTER"}}
	for _, t := range all {
		lines = append(lines, t.cells())
	}
	widths := widthsOf(lines)
	var w strings.Builder
	for i, line := range lines {
		for n, text := range line {
			line[n] = terminal.Pad(text, widths[n])
		}
		w.WriteString(strings.TrimRight(strings.Join(line, "  "), " ") + "\n")
		if explain && i > 0 {
			w.WriteString(all[i-1].explanation())
		}
	}
	return w.String()
}

func (t *tuned) cells() []string {
	text := t.files
	if t.atom != (name.Atom{}) {
		text = terminal.Clean(history.Text(t.atom))
	}
	ifElapsed := limit.Format(t.learned.IfElapsed())
	if t.learned.Spammed() {
		ifElapsed += " (asked for too often)"
	}
	return []string{
		text, strconv.Itoa(t.learned.Runs),
		terminal.Duration(t.learned.Typical()), terminal.Duration(t.learned.Longest()),
		ifElapsed, limit.Format(t.learned.ExpireAfter(t.ifElapsed)),
	}
}

func (t *tuned) explanation() string {
	return "  IfElapsed: " + t.learned.ExplainIfElapsed() + "\n  ExpireAfter: " + t.learned.ExplainExpireAfter(t.ifElapsed) + "\n"
}

func tunedJSON(all []*tuned) []byte {
	var w json.Writer
	w.Array("", func() {
		for _, t := range all {
			w.Object("", func() { t.writeJSON(&w) })
		}
	})
	return w.Bytes()
}

func (t *tuned) writeJSON(w *json.Writer) {
	w.Text("atom", t.files)
	w.Some("program", t.atom.Program)
	w.Some("host", t.atom.Host)
	w.Some("operator", t.atom.Operator)
	w.Some("operand", t.atom.Operand)
	w.Int("runs", t.learned.Runs)
	w.Seconds("typical_seconds", t.learned.Typical())
	w.Seconds("longest_seconds", t.learned.Longest())
	w.Bool("spammed", t.learned.Spammed())
	w.Seconds("if_elapsed_seconds", t.learned.IfElapsed())
	w.Seconds("expire_after_seconds", t.learned.ExpireAfter(t.ifElapsed))
	w.Text("if_elapsed_why", t.learned.ExplainIfElapsed())
	w.Text("expire_after_why", t.learned.ExplainExpireAfter(t.ifElapsed))
}
