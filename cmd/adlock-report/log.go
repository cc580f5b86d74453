package main

import (
	"bufio"
	"errors"
	"iter"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"adlock/lib/app"
	"adlock/lib/command"
	"adlock/lib/exit"
	"adlock/lib/history"
	"adlock/lib/name"
	"adlock/lib/runlog"
	"adlock/lib/terminal"
)

func logVerb() *cli.Command {
	return app.Verb("log", "show the record of transactions", " ",
		[]cli.Flag{
			sinceFlag("all that is recorded"), atomFlag(),
			&cli.StringFlag{Name: "event", Usage: "`KIND,…`: only events of these kinds: acquire, deny, release, expire, takeover, …"},
			&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "go on with what is added"},
			&cli.BoolFlag{Name: "json", Usage: "as JSON, one object a line; durations are seconds"},
		}, showLog)
}

func showLog(c *cli.Context) error {
	if err := app.NoArguments(c); err != nil {
		return err
	}
	since, err := when(c, "since", time.Now(), time.Time{})
	if err != nil {
		return err
	}
	l := logView{since: since, atom: c.String("atom"), json: c.Bool("json"), paint: terminal.Colours(os.Stdout)}
	if l.kinds, err = kindsOf(c.String("event")); err != nil {
		return err
	}
	dir, err := recordDir()
	if err != nil {
		return err
	}
	if !c.Bool("follow") {
		return l.show(history.Read(dir), dir, false)
	}
	host, err := command.Host()
	if err != nil {
		return err
	}
	return l.show(history.Follow(dir, name.Canonify(host)), dir, true)
}

// kindsOf reads a list of kinds; none is all of them.
func kindsOf(list string) ([]runlog.Kind, error) {
	if list == "" {
		return nil, nil
	}
	var kinds []runlog.Kind
	for text := range strings.SplitSeq(list, ",") {
		kind := runlog.Kind(text)
		if !slices.Contains(runlog.Kinds(), kind) {
			return nil, exit.New(exit.Usage, "--event", "unknown event "+strconv.Quote(text))
		}
		kinds = append(kinds, kind)
	}
	return kinds, nil
}

// logView is what is shown of the record, and how.
type logView struct {
	since time.Time
	atom  string
	kinds []runlog.Kind
	json  bool
	paint terminal.Paint
}

// show prints the events; at once each, where they are being waited for. A
// damaged line is shown, on standard error, and passed over.
func (l *logView) show(events iter.Seq2[runlog.Event, error], dir string, atOnce bool) error {
	out := bufio.NewWriterSize(os.Stdout, 64<<10)
	for e, err := range events {
		var damaged *runlog.DamagedLine
		switch {
		case errors.As(err, &damaged):
			if err := out.Flush(); err != nil {
				return exit.Wrap("standard output", err)
			}
			exit.Report(exit.New(exit.OK, damaged.File+":"+strconv.Itoa(damaged.Line),
				"damaged line: "+damaged.Reason+": "+terminal.Cut(damaged.Text, 200, "...")))
			continue
		case err != nil:
			return errors.Join(exit.Wrap("standard output", out.Flush()), exit.Wrap(dir, err))
		case !l.wants(&e):
			continue
		}
		_, err = out.Write(l.line(&e))
		if err == nil && atOnce {
			err = out.Flush()
		}
		if err != nil {
			return exit.Wrap("standard output", err)
		}
	}
	return exit.Wrap("standard output", out.Flush())
}

func (l *logView) wants(e *runlog.Event) bool {
	return !e.Time.Before(l.since) && (l.kinds == nil || slices.Contains(l.kinds, e.Kind)) &&
		(l.atom == "" || matches(l.atom, name.Atom{Program: e.Program, Host: e.Host, Operator: e.Operator, Operand: e.Operand}))
}

func (l *logView) line(e *runlog.Event) []byte {
	if l.json {
		return eventJSON(e)
	}
	style := terminal.Plain
	switch e.Kind {
	case runlog.Expire, runlog.Takeover, runlog.Stuck, runlog.Lost:
		style = terminal.Red
	case runlog.Acquire:
		style = terminal.Green
	case runlog.Reclaim, runlog.Starved, runlog.Warn, runlog.Clock, runlog.Clear, runlog.Empty:
		style = terminal.Yellow
	case runlog.Deny, runlog.Signal:
		style = terminal.Dim
	}
	who := strings.TrimRight(e.Program+" "+e.Operator+" "+e.Operand, " ")
	return []byte(e.Time.Local().Format("2006-01-02 15:04:05.000") + "  " + l.paint.Text(style, terminal.Pad(string(e.Kind), 8)) +
		"  " + terminal.Clean(who) + ": " + terminal.Clean(details(e)) + "\n")
}
