package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
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
	"adlock/lib/sysfile"
)

var checkVerb = verb{
	options: func(q *query) []config.Option {
		return []config.Option{
			{Name: "system", Help: "check the crontabs of this machine: /etc/crontab, /etc/cron.d and, as root, those of all users", Set: config.Toggle(&q.system)},
			{Name: "json", Help: "as JSON, one array", Set: config.Toggle(&q.json)},
			{Name: "user-column", Alias: "u", Help: "crontabs have a user column, as /etc/crontab has (else that is seen)", Set: config.Toggle(&q.userColumn)},
		}
	},
	args:   true,
	visits: true,
	show:   showMistakes,
}

func showMistakes(q *query) error {
	if len(q.args) == 0 && !q.system {
		return fault.New(fault.Usage, "check", "wants a FILE (-: standard input), or --system")
	}
	c, err := checker(q)
	if err != nil {
		return err
	}
	var failed failures
	paths := q.args
	if q.system {
		more, unread := crontab.System("")
		for _, err := range unread {
			failed.add(err)
		}
		paths = append(paths, more...)
	}
	var all []mistake
	var text []byte
	var found error
	for _, path := range paths {
		mistakes, err := checkFile(c, path)
		failed.add(err)
		for _, m := range mistakes {
			all = append(all, mistake{path, m.Line, m.What, m.Reason, m.Cure})
			text = append(text, terminal.Clean(path+":"+strconv.Itoa(m.Line)+": "+m.What+": "+m.Reason+"; "+m.Cure)+"\n"...)
			if !m.IsNote() {
				found = errFound
			}
		}
	}
	if q.json {
		text = arrayOf(all, func(m mistake) any { return m })
	}
	return cmp.Or(write(text), failed.last, found)
}

type mistake struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	What   string `json:"what"`
	Reason string `json:"reason"`
	Cure   string `json:"cure"`
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

// readText reads a regular file, or standard input ("-"), up to one byte more than lint.Most. It refuses any
// other file: a named pipe might block for ever.
func readText(path string) (string, error) {
	file := os.Stdin
	if path != lint.StandardInput {
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

func unopened(path string, err error) error {
	if fault.KindOf(err) == fault.CannotCreate { // this kind is wrong, as the file was only to be read
		return &fault.Error{Kind: fault.Unavailable, Object: path, Err: err}
	}
	return fault.Wrap(path, err)
}

func checker(q *query) (*lint.Checker, error) {
	host, err := thisHost()
	if err != nil {
		return nil, err
	}
	users, err := others()
	if err != nil {
		return nil, err
	}
	as := withRightsOf(users)
	elsewhere := append([]string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/sbin", "/usr/bin", "/bin"}, filepath.SplitList(os.Getenv("PATH"))...)
	return &lint.Checker{
		Options: run.Options(), Refusal: run.Refusal, LineRefusal: run.LineRefusal, Nearest: run.NearestSetting,
		Host: host, UserColumn: q.userColumn,
		Elsewhere: elsewhere, CronPath: crontab.DefaultPath, Shell: run.InstalledShell(),
		IsUser: remembered(isUser), Unknown: remembered(isUnknown),
		Zone: os.Getenv("TZ"), Differs: remembered(differsFromMachine),
		Homeless:  homelessTest(as),
		Dir:       rememberedOfUser(func(name, home string) string { return dirOf(name, home, as) }),
		Stranger:  remembered(strangerOf),
		IsNetwork: rememberedOfUser(func(name, path string) bool { return as(name, func() bool { return isOnNetwork(path) }) }),
		Filed:     rememberedOfUser(func(name, variable string) bool { return isFiled(name, variable, as) }),
		Missing:   rememberedOfUser(func(name, path string) bool { return as(name, func() bool { return isMissing(path) }) }),
		Longest:   longestOf(users),
	}, nil
}

func isUnknown(name string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var exit *exec.ExitError // getent(1) also asks LDAP and the like; its status 2 means no such user
	return runtime.GOOS == "linux" && errors.As(exec.CommandContext(ctx, "getent", "passwd", name).Run(), &exit) && exit.ExitCode() == 2
}

// isOnNetwork reports whether path, or else the nearest directory above it that can be opened, is on a network
// file system. It opens only directories, as another file may be a device.
func isOnNetwork(path string) bool {
	dir, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return path != filepath.Dir(path) && isOnNetwork(filepath.Dir(path))
	}
	defer dir.Close()
	return sysfile.IsNetwork(int(dir.Fd()))
}

// differsFromMachine reports whether a zone will differ from cron's (/etc/localtime, else UTC) within the next year.
func differsFromMachine(zone string) bool {
	other, err := time.LoadLocation(strings.TrimPrefix(zone, ":"))
	if err != nil {
		return false // such a zone is UTC to some programs, and an error to others
	}
	machine := time.UTC
	if text, err := os.ReadFile("/etc/localtime"); err == nil {
		if machine, err = time.LoadLocationFromTZData("", text); err != nil {
			return false
		}
	}
	for month := range 12 {
		at := time.Now().AddDate(0, month, 0)
		_, here := at.In(machine).Zone()
		if _, there := at.In(other).Zone(); here != there {
			return true
		}
	}
	return false
}

// isFiled reports whether a settings file of a user sets the variable, or cannot be read. For root or an unknown
// user (such as ""), and if root does not run this process, it looks only at the files that this process uses.
func isFiled(name, variable string, as asUser) bool {
	known := lookUp(name)
	if config.IsFiled(variable) || known == nil || known.Uid == "0" || os.Geteuid() != 0 {
		return config.IsFiled(variable)
	}
	return !as(name, func() bool { // the function returns true if the user's file is known not to set the variable
		text, err := readText(filepath.Join(known.HomeDir, config.OwnFile))
		return errors.Is(err, fs.ErrNotExist) || err == nil && !sets(text, variable)
	})
}

func sets(settings, variable string) bool {
	for line := range strings.Lines(settings) {
		if name, value, _ := strings.Cut(line, "="); strings.TrimSpace(value) != "" && strings.TrimSpace(name) == variable {
			return true
		}
	}
	return false
}

func isMissing(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// longestOf returns lint.Checker.Longest. The name "" stands for this process's user.
func longestOf(users []otherUser) func(name string, a atom.Atom) time.Duration {
	own, visited := longestRuns(), map[string]longest{}
	return func(name string, a atom.Atom) time.Duration {
		name = withoutGroup(name)
		u, known := userCalled(users, name), lookUp(name)
		switch {
		case name == "", known != nil && known.Uid == strconv.Itoa(os.Geteuid()):
			return own[a.Name()]
		case u == nil:
			return 0
		}
		if visited[name] == nil && silent[u.UID] == nil {
			visited[name] = longest{}
			found := visit(*u, func(a *account) (longest, error) { return longestIn(a.events, a.entries) })
			for _, err := range found.troubles {
				reportUnread(*u, err)
			}
			if found.value != nil {
				visited[name] = found.value
			}
		}
		return visited[name][a.Name()]
	}
}

type longest map[atom.Name]time.Duration

// longestRuns returns the longest runs of this user's atoms, as far as known: check works without them, too.
func longestRuns() longest {
	dir, entries, err := sources()
	if err != nil {
		return nil
	}
	all, err := longestIn(history.Read(dir), entries)
	if err != nil {
		fault.Report(fault.Wrap(dir, err))
	}
	return all
}

func longestIn(events iter.Seq2[runlog.Event, error], entries []locker.Entry) (longest, error) {
	all := longest{}
	tracker := history.Tracker{Run: func(a *history.Atom, r *history.Run) {
		if r.Outcome == history.Succeeded {
			all[a.Name()] = max(all[a.Name()], r.Held)
		}
	}}
	_, err := history.Each(events, func(e *runlog.Event) { tracker.Add(e) })
	addLearned(all, entries)
	return all, err
}

func addLearned(longest longest, entries []locker.Entry) {
	for i := range entries {
		e := &entries[i]
		longest[e.Name] = max(longest[e.Name], e.Memory.Learned.Longest())
	}
}
