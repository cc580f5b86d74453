package main

import (
	"errors"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"adlock/lib/app"
	"adlock/lib/exit"
	"adlock/lib/history"
	"adlock/lib/json"
	"adlock/lib/lock"
	"adlock/lib/name"
	"adlock/lib/policy"
	"adlock/lib/runlog"
	"adlock/lib/terminal"
)

func statusVerb() *cli.Command {
	return app.Verb("status", "list every atom of the lock directory", " ",
		[]cli.Flag{
			atomFlag(),
			&cli.BoolFlag{Name: "json", Usage: "as JSON, one array a line; durations are seconds"},
			&cli.BoolFlag{Name: "watch", Usage: "show it again every 2 seconds"},
		}, status)
}

// refresh is how often --watch looks.
const refresh = 2 * time.Second

func status(c *cli.Context) error {
	if err := app.NoArguments(c); err != nil {
		return err
	}
	for {
		text, err := statusText(c)
		if err != nil {
			return err
		}
		if c.Bool("watch") && !c.Bool("json") && terminal.Is(os.Stdout) {
			text = append([]byte("\x1b[H\x1b[2J"), text...)
		}
		if err := write(text); err != nil || !c.Bool("watch") {
			return err
		}
		time.Sleep(refresh)
	}
}

func statusText(c *cli.Context) ([]byte, error) {
	entries, err := atoms()
	if err != nil {
		return nil, err
	}
	now := time.Now()
	asked := lastAsked()
	rows := []*row{} // none is an empty array in JSON
	for i := range entries {
		r := rowOf(&entries[i], asked, now)
		if text := c.String("atom"); r.Files == text || matches(text, r.atom) {
			rows = append(rows, r)
		}
	}
	if c.Bool("json") {
		return rowsJSON(rows), nil
	}
	if len(rows) == 0 {
		dir, err := lock.DefaultDir()
		return []byte("no atoms in " + terminal.Clean(dir) + "\n"), err
	}
	return []byte(table(rows, now)), nil
}

// request is what the record tells of an atom that its locks do not.
type request struct {
	atom   name.Atom
	limits policy.Limits // last asked for
}

// lastAsked reads from the record what was last asked of each atom, by NAME. It
// is as good as the record is: where that cannot be read the columns are empty.
func lastAsked() map[string]request {
	dir, err := recordDir()
	if err != nil {
		return nil
	}
	latest := map[name.Atom]policy.Limits{}
	for e, err := range history.Read(dir) {
		if err != nil {
			var damaged *runlog.DamagedLine
			if !errors.As(err, &damaged) {
				exit.Report(exit.Wrap(dir, err))
			}
			continue
		}
		if e.Operator != "" && e.IfElapsed.Set && e.ExpireAfter.Set && !e.Slot.Set {
			a := name.Atom{Program: e.Program, Host: e.Host, Operator: e.Operator, Operand: e.Operand}
			latest[a] = policy.Limits{IfElapsed: e.IfElapsed.Value, ExpireAfter: e.ExpireAfter.Value}
		}
	}
	asked := make(map[string]request, len(latest))
	for a, limits := range latest {
		asked[a.Name()] = request{a, limits}
	}
	return asked
}

// rowsJSON is the table for programs: one array.
func rowsJSON(rows []*row) []byte {
	var w json.Writer
	w.Array("", func() {
		for _, r := range rows {
			w.Object("", func() { r.writeJSON(&w) })
		}
	})
	return w.Bytes()
}

func (r *row) writeJSON(w *json.Writer) {
	w.Text("atom", r.Files)
	w.Some("program", r.atom.Program)
	w.Some("host", r.atom.Host)
	w.Some("operator", r.atom.Operator)
	w.Some("operand", r.atom.Operand)
	w.Text("state", r.State)
	w.Time("since", r.Since)
	if r.Held {
		w.Seconds("held_seconds", r.Age)
		w.Int("owner", r.Owner)
		w.Int("uid", r.UID)
		w.Some("user", userName(r.UID))
	}
	w.Time("completed", r.Completed)
	w.OptSeconds("due_in_seconds", r.DueIn)
	if r.LimitsKnown {
		w.Seconds("if_elapsed_seconds", r.Limits.IfElapsed)
		w.Seconds("expire_after_seconds", r.Limits.ExpireAfter)
	}
	if r.learned() {
		w.Object("learned", func() {
			w.Seconds("if_elapsed_seconds", r.Learned.IfElapsed())
			w.Seconds("expire_after_seconds", r.Learned.ExpireAfter(r.Limits.IfElapsed))
		})
	}
	w.Bool("takeable", r.Takeable)
	w.Text("why", r.Why)
}
