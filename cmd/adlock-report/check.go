package main

import (
	"cmp"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/atom"
	"adlock/lib/config"
	"adlock/lib/crontab"
	"adlock/lib/fault"
	"adlock/lib/insight/history"
	"adlock/lib/insight/terminal"
	"adlock/lib/lint"
	"adlock/lib/locker"
	"adlock/lib/run"
	"adlock/lib/runlog"
)

var checkVerb = verb{
	options: func(q *query) []config.Option {
		return []config.Option{
			{Name: "system", Help: "check the crontabs of this machine: /etc/crontab, /etc/cron.d and, as root, those of all users", Set: config.Toggle(&q.system)},
			{Name: "user-column", Alias: "u", Help: "crontabs have a user column, as /etc/crontab has (else that is seen)", Set: config.Toggle(&q.userColumn)},
		}
	},
	args: true,
	show: showMistakes,
}

// showMistakes checks each file, and continues after one that cannot be checked.
func showMistakes(q *query) error {
	if len(q.args) == 0 && !q.system {
		return fault.New(fault.Usage, "check", "wants a FILE (-: standard input), or --system")
	}
	c, err := checker(q)
	if err != nil {
		return err
	}
	var failed error
	fail := func(err error) {
		if err != nil && failed != nil {
			fault.Report(failed)
		}
		failed = cmp.Or(err, failed)
	}
	paths := q.args
	if q.system {
		more, unread := lint.System("")
		for _, err := range unread {
			fail(err)
		}
		paths = append(paths, more...)
	}
	found := false
	for _, path := range paths {
		mistakes, err := checkFile(c, path)
		fail(err)
		for _, m := range mistakes {
			found = true
			text := path + ":" + strconv.Itoa(m.Line) + ": " + m.What + ": " + m.Reason + "; " + m.Cure
			if err := write([]byte(terminal.Clean(text) + "\n")); err != nil {
				return err
			}
		}
	}
	switch {
	case failed != nil:
		return failed
	case found:
		return errFound
	}
	return nil
}

func checkFile(c *lint.Checker, path string) ([]lint.Mistake, error) {
	text, err := readText(path)
	if err != nil {
		return nil, err
	}
	mistakes, err := c.Check(path, text)
	if err != nil {
		return mistakes, &fault.Error{Kind: fault.Usage, Object: path, Err: err}
	}
	return mistakes, nil
}

// readText reads a file, or standard input for "-". Other files than regular ones have no
// text to check, and reading a pipe might block for ever.
func readText(path string) (string, error) {
	file := os.Stdin
	if path != "-" {
		var err error
		file, err = os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
		if err != nil {
			return "", unopened(path, err)
		}
		defer file.Close()
		if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
			return "", fault.New(fault.Usage, path, "is no regular file")
		}
	}
	text, err := io.ReadAll(io.LimitReader(file, lint.Most+1))
	return string(text), fault.Wrap(path, err)
}

// unopened is why a file that was to be read could not be opened.
func unopened(path string, err error) error {
	if fault.KindOf(err) == fault.CannotCreate { // nothing was to be created
		return &fault.Error{Kind: fault.Unavailable, Object: path, Err: err}
	}
	return fault.Wrap(path, err)
}

// checker is what this machine and its runlog add to the texts.
func checker(q *query) (*lint.Checker, error) {
	host, err := config.Host()
	if err != nil {
		return nil, err
	}
	elsewhere := append([]string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/sbin", "/usr/bin", "/bin"}, filepath.SplitList(os.Getenv("PATH"))...)
	return &lint.Checker{
		Options: run.Options(), Refusal: run.Refusal, LineRefusal: run.LineRefusal, Nearest: run.NearestSetting,
		Host: host, UserColumn: q.userColumn,
		Elsewhere: elsewhere, CronPath: crontab.DefaultPath, Shell: run.InstalledShell(),
		IsUser:   isUser,
		Homeless: isHomeless,
		Longest:  longestRuns(),
	}, nil
}

// longestRuns returns for each atom how long its longest successful run took, from the
// runlog and the last locks. They are an aid: if they cannot be read, nothing is known.
func longestRuns() func(atom.Atom) time.Duration {
	longest := map[atom.Name]time.Duration{}
	if dir, entries, err := sources(); err == nil {
		teller := history.Teller{Run: func(a *history.Atom, r *history.Run) {
			if r.Outcome == history.Succeeded {
				longest[a.Name()] = max(longest[a.Name()], r.Held)
			}
		}}
		if _, err := history.Each(history.Read(dir), func(e *runlog.Event) { teller.Add(e) }); err != nil {
			fault.Report(fault.Wrap(dir, err))
		}
		addLearned(longest, entries)
	}
	return func(a atom.Atom) time.Duration { return longest[a.Name()] }
}

func addLearned(longest map[atom.Name]time.Duration, entries []locker.Entry) {
	for i := range entries {
		e := &entries[i]
		longest[e.Name] = max(longest[e.Name], e.Memory.Learned.Longest())
	}
}
