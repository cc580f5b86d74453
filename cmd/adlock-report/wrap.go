package main

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/aymanbagabas/go-udiff"
	"golang.org/x/sys/unix"

	"adlock/lib/config"
	"adlock/lib/crontab"
	"adlock/lib/fault"
	"adlock/lib/limit"
	"adlock/lib/lint"
	"adlock/lib/run"
	"adlock/lib/sysfile"
)

var wrapVerb = verb{
	options: func(q *query) []config.Option {
		return []config.Option{
			{Name: "user-column", Alias: "u", Help: "the crontab names a user before the command, as /etc/crontab does", Set: config.Toggle(&q.userColumn)},
			{Name: "expire-after", Arg: "D", Default: "none", Help: "give each job this limit: a time, auto, or from-schedule (half as long again as from one start to the next, 15m at least)", Set: q.setLimit},
			{Name: "flock", Help: "put lines under flock(1) under adlock run --flock too, so that they and what still uses their files exclude each other as before", Set: config.Toggle(&q.flock)},
			{Name: "shell", Help: "put a line SHELL= of adlock's above the jobs instead, and leave them as they are; a SHELL of the crontab becomes ADLOCK_SHELL", Set: config.Toggle(&q.guard)},
			{Name: "diff", Help: "show what would change, as a unified diff", Set: config.Toggle(&q.diff)},
			{Name: "unwrap", Help: "take out what wrap put in; what was written or edited by hand stays", Set: config.Toggle(&q.unwrap)},
		}
	},
	args:      true,
	exclusive: [][]string{{"shell", "expire-after"}, {"shell", "flock"}, {"shell", "unwrap"}},
	visits:    true,
	show:      wrap,
	passOn:    config.PassOn,
}

func (q *query) setLimit(value string) error {
	d, err := limit.Parse(value)
	if value != "auto" && value != crontab.FromSchedule && (err != nil || d == 0) {
		if err != nil && limit.LacksUnit(value) {
			return err
		}
		return errors.New(strconv.Quote(value) + ": want a time such as 90m, auto or " + crontab.FromSchedule)
	}
	q.limit = value
	return nil
}

// wrap copies its input if it fails, except with --diff, as `crontab -l | adlock wrap | crontab -` installs any output.
// With a FILE it copies nothing, unless FILE is missing and has no slash: then that word may be an option's value.
func wrap(q *query) error {
	if slices.Equal(q.args, []string{"-"}) {
		q.args = nil
	}
	text, err := source(q.args)
	if err == nil {
		var changed string
		if changed, err = rewritten(q, text); err == nil {
			return write([]byte(changed))
		}
	}
	if !q.diff && !slices.ContainsFunc(q.args, func(arg string) bool { return strings.Contains(arg, "/") || isThere(arg) }) {
		err = errors.Join(err, write([]byte(text)))
		fault.Report(err) // now, as reading standard input may take long
		config.PassOn(nil)
		err = fault.Untold{Err: err}
	}
	return err
}

func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// largest is the limit of a crontab in bytes, far above any real one.
const largest = 4 << 20

func source(args []string) (string, error) {
	in := os.Stdin
	if len(args) > 1 {
		return "", fault.New(fault.Usage, "wrap", "wants one FILE at most, got "+strconv.Quote(args[1]))
	}
	if len(args) == 1 {
		file, err := os.Open(args[0])
		if err != nil {
			return "", unopened(args[0], err)
		}
		defer file.Close()
		if info, err := file.Stat(); err == nil && info.IsDir() {
			return "", fault.New(fault.Usage, args[0], "is a directory")
		}
		in = file
	}
	text, err := io.ReadAll(io.LimitReader(in, largest))
	if err == nil && len(text) == largest {
		err = fault.New(fault.Usage, called(args), "is no crontab: it has "+strconv.Itoa(largest)+" bytes or more")
	}
	return string(text), fault.Wrap(called(args), err)
}

func called(args []string) string {
	if len(args) == 1 {
		return args[0]
	}
	return "standard input"
}

func rewritten(q *query, text string) (string, error) {
	lines := crontab.Read(text, q.userColumn)
	if err := crontab.Refuse(lines); err != nil {
		return "", &fault.Error{Kind: fault.Usage, Object: called(q.args), Err: err}
	}
	result, err := changed(q, lines)
	if err != nil {
		return "", err
	}
	tell(q, &result)
	for i := range lines {
		if why := lint.Unexpanded(&lines[i]); why != "" && !q.unwrap {
			fault.Warn(lineName(q, &lines[i]), why+"; write the full path")
		}
	}
	if q.diff {
		return udiff.Unified(called(q.args), called(q.args), text, result.Text), nil
	}
	return result.Text, nil
}

func changed(q *query, lines []crontab.Line) (crontab.Result, error) {
	if l, _ := crontab.Misread(lines, q.userColumn, isUser, run.IsCommand); l != nil {
		return crontab.Result{}, misread(q, l)
	}
	if q.unwrap {
		unguarded := crontab.Unguard(lines)
		result := crontab.Unwrap(crontab.Read(unguarded.Text, q.userColumn))
		result.Done += unguarded.Done
		return result, nil
	}
	path, err := config.FindPartner(config.Helper, "for the lines of a crontab")
	if err != nil {
		return crontab.Result{}, err
	}
	as, err := userTest()
	if err != nil {
		return crontab.Result{}, err
	}
	w := crontab.Wrapper{Adlock: path, Limit: q.limit, Flock: q.flock, Homeless: homelessTest(as), Refusal: run.LineRefusal, RunRefusal: run.Refusal,
		Filed: rememberedOfUser(func(name, variable string) bool { return isFiled(name, variable, as) })}
	if !w.CanStand() {
		return crontab.Result{}, fault.New(fault.Usage, path, "cannot stand in a crontab as it is")
	}
	if q.guard {
		return guarded(q, &w, lines)
	}
	return w.Wrap(lines), nil
}

func guarded(q *query, w *crontab.Wrapper, lines []crontab.Line) (crontab.Result, error) {
	shell := run.InstalledShell()
	if shell == "" {
		return crontab.Result{}, fault.New(fault.Unavailable, "wrap", "the shell for crontabs is not installed beside "+w.Adlock+": make install, or a package, puts it there")
	}
	result, refused := w.Guard(lines, shell)
	if refused != nil {
		return result, fault.New(fault.Usage, lineName(q, refused.Line), "the whole crontab is left as it is: "+refused.Why)
	}
	return result, nil
}

func isUser(word string) bool { return lookUp(word) != nil }

// withoutGroup returns the user in a user column. On the BSDs a group and a login class may follow.
func withoutGroup(word string) string {
	name, _, _ := strings.Cut(strings.ReplaceAll(word, "/", ":"), ":")
	return name
}

// lookUp returns the user in a user column; nil if the user is unknown.
var lookUp = remembered(func(word string) *user.User {
	known, _ := user.Lookup(withoutGroup(word)) // a user that cannot be looked up is unknown here
	return known
})

func homelessTest(as asUser) func(name, home string) bool {
	_, _, err := config.FiledLocations()
	elsewhere := err == nil && (isFiledForAll("ADLOCK_DIR") || isFiledForAll("ADLOCK_STORE"))
	return rememberedOfUser(func(name, home string) bool {
		known := lookUp(name)
		return !elsewhere && as(name, func() bool { return isHomeless(known, home) })
	})
}

func isFiledForAll(variable string) bool {
	filed := config.FromFiles("")[variable]
	return filed.Value != "" && !strings.Contains(filed.From.Word, config.OwnFile+":") // other users do not read the caller's own file
}

// isHomeless reports whether a user (www-data) has no lock directory and can make none in home ("": the user's own). It
// is false for root and for an unknown user (nil), and if the caller may not look there.
func isHomeless(known *user.User, home string) bool {
	if known == nil || known.Uid == "0" {
		return false
	}
	if uid, err := strconv.Atoi(known.Uid); err == nil && config.IsUsers(config.UserDir(uid), uid) {
		return false
	}
	info, err := firstThere(config.DirOfHome(cmp.Or(home, known.HomeDir)))
	if caller := os.Geteuid(); errors.Is(err, fs.ErrPermission) && caller != 0 && strconv.Itoa(caller) != known.Uid {
		return false // the caller may not look there, but the user may
	}
	if err != nil || !info.IsDir() {
		return true
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && (strconv.FormatUint(uint64(stat.Uid), 10) != known.Uid || info.Mode()&0o300 != 0o300)
}

// dirOf returns the lock directory of a user ("": the caller) with home as HOME ("": the user's own). It returns "" if
// a settings file may name another directory, if the user is unknown, or if the user can have none at home.
func dirOf(name, home string, as asUser) string {
	known := lookUp(name)
	if name == "" {
		known, _ = user.Current()
	}
	filed, store, err := config.FiledLocations()
	if known == nil || filed+store != "" || err != nil {
		return ""
	}
	uid, err := strconv.Atoi(known.Uid)
	switch {
	case err != nil:
		return ""
	case uid == 0, as(known.Username, func() bool { return config.IsUsers(config.UserDir(uid), uid) }):
		return config.UserDir(uid)
	case as(known.Username, func() bool { return isHomeless(known, "") }):
		return ""
	}
	return config.DirOfHome(cmp.Or(home, known.HomeDir))
}

func strangerOf(dir string) string {
	var st unix.Stat_t
	if sysfile.Retry(func() error { return unix.Stat(dir, &st) }) != nil || sysfile.IsOurs(&st) {
		return ""
	}
	return userName(int(st.Uid))
}

func firstThere(path string) (os.FileInfo, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) && path != filepath.Dir(path) {
		return firstThere(filepath.Dir(path))
	}
	return info, err
}

func misread(q *query, l *crontab.Line) error {
	if q.userColumn {
		return fault.New(fault.Usage, lineName(q, l), "the user "+strconv.Quote(l.User)+" is a command: a crontab without users is read without -u")
	}
	word := strings.Fields(l.Command)[0]
	why, otherwise := "which is a user", "leave it out"
	if !isUser(word) {
		why, otherwise = "and another command stands behind it", "write its full path"
	}
	return fault.New(fault.Usage, lineName(q, l), "the command begins with "+strconv.Quote(word)+", "+why+": a crontab with users is read with -u; in another, "+otherwise)
}

func lineName(q *query, l *crontab.Line) string {
	if len(q.args) == 1 {
		return q.args[0] + ":" + strconv.Itoa(l.Number)
	}
	return "line " + strconv.Itoa(l.Number)
}

func tell(q *query, r *crontab.Result) {
	for _, left := range r.Left {
		fault.Warn(lineName(q, left.Line), "left as it is: "+left.Why)
	}
	for _, told := range r.Told {
		fault.Warn(lineName(q, told.Line), told.Why)
	}
	what := "wrap"
	if q.unwrap {
		what = "unwrap"
	}
	text := "lines " + what + "ped: "
	if q.diff {
		text = "lines to " + what + ": "
	}
	fault.Warn(called(q.args), text+strconv.Itoa(r.Done))
}
