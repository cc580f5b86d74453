package run

import (
	"cmp"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"adlock/lib/config"
	"adlock/lib/cronline"
	"adlock/lib/fault"
	"adlock/lib/supervise"
)

// The shell for crontabs. cron runs each line as $SHELL -c COMMAND, so one line of a crontab
// (SHELL=) puts all below it under `run`. The job is COMMAND, byte for byte, run by the job's own
// shell: quoting, pipes, redirections and input stay that shell's business, and cron's. If this
// shell is called in another way, as by a program that starts $SHELL, it executes the job's own
// shell without a lock. In the environment of the job SHELL names the job's own shell.

// defaultShell is the job's own shell, if config.ShellVariable names no other.
const defaultShell = "/bin/sh"

// shellMark is the beginning of sh/shell, the script that calls the verb. It must not be the job's
// own shell: it would call itself without end.
const shellMark = "#!/bin/sh\n# adlock's shell for crontabs"

// Shell is the verb shell.
func Shell() config.Verb {
	return config.Verb{
		Name: "shell", Does: "run a line of a crontab under its own lock, as its SHELL", Args: "-c COMMAND [ARG...]",
		More: moreOfShell, Run: shell,
	}
}

func moreOfShell() []config.List {
	return []config.List{
		{Title: "in a crontab", Lines: [][2]string{
			{"SHELL=" + cmp.Or(InstalledShell(), "PATH"), "the shell that is installed with adlock: each line below runs under its lock"},
			{": NAME ;", "at the beginning of a command names the lock; else the command does"},
			{": NAME ADLOCK_X=VALUE... ;", "and sets options of run, as lines ADLOCK_X=VALUE of the crontab do for all"},
		}},
		{Title: "environment", Lines: [][2]string{
			{config.ShellVariable, "the shell that runs COMMAND (default " + defaultShell + ")"},
			{"ADLOCK_...", "the options of run, with its defaults: adlock run --help"},
		}},
	}
}

// InstalledShell is the path at which the shell for crontabs was installed with this program; "":
// it was not.
func InstalledShell() string {
	self, err := os.Executable()
	path := filepath.Join(filepath.Dir(filepath.Dir(self)), "lib/adlock/shell")
	if err != nil || !isThis(path) {
		return ""
	}
	return path
}

func shell(args []string) (int, error) {
	if len(args) == 1 && (args[0] == "--help" || args[0] == "-h") {
		return 0, config.ErrHelp
	}
	if len(args) < 2 || args[0] != "-c" {
		return becomeShell(args)
	}
	l, err := cronline.Parse(args[1])
	if l.Unlocked {
		return becomeShell(args)
	}
	err = cmp.Or(err, set(l.Settings))
	own, missing := ownShell()
	r := newRun()
	r.leaveQuit, r.InScript, r.isShell, r.slotsBeside = fault.OnQuit(), true, true, isSemaphore(l)
	r.command = nameLine(os.Getenv, &l, args[2:])
	all := slices.Concat(optionsOf(os.Getenv, l), []string{"--", own}, args)
	if err = cmp.Or(err, missing); err != nil {
		return 0, refused(all, err)
	}
	status, err := r.run(all)
	return status, refused(all, config.ForScript(r.options(), err))
}

// set puts the settings of a line into the environment, in place of those that the crontab sets. It
// sets the others if one is unknown: they may say where the error is recorded.
func set(settings []string) (err error) {
	for _, s := range settings {
		name, value, _ := strings.Cut(s, "=")
		if why := unknownSetting(name); why != "" {
			err = cmp.Or(err, error(fault.New(fault.Usage, name, why+" (adlock run --help lists them)")))
			continue
		}
		err = cmp.Or(err, fault.Wrap(name, os.Setenv(name, value)))
	}
	return err
}

// unknownSetting is the reason why a line may not set a variable; "" if it may.
func unknownSetting(name string) string {
	if slices.Contains(settingsOfLine(), name) {
		return ""
	}
	bare, names := bareSettings(name)
	return config.Unknown("setting", bare, settingsBegin, names).Error()
}

// NearestSetting is the setting that was probably meant by a variable that a line cannot set. It is
// "" if the line can set the variable, or if that is probably another program's: its first letter
// differs, which people rarely mistype.
func NearestSetting(name string) string {
	bare, names := bareSettings(name)
	if meant := config.Nearest(bare, names); meant != "" && bare != "" && meant[0] == bare[0] && unknownSetting(name) != "" {
		return settingsBegin + meant
	}
	return ""
}

// bareSettings returns a name and settingsOfLine without their common prefix: with it, all of them
// would seem similar.
func bareSettings(name string) (bare string, names []string) {
	for _, known := range settingsOfLine() {
		names = append(names, strings.TrimPrefix(known, settingsBegin))
	}
	return strings.TrimPrefix(name, settingsBegin), names
}

const settingsBegin = "ADLOCK_"

// settingsOfLine are the variables that a line of a crontab may set.
func settingsOfLine() []string {
	names := []string{config.ShellVariable}
	for _, o := range config.Table {
		if o.Help != "" {
			names = append(names, o.Env)
		}
	}
	return names
}

// isSemaphore tells whether a line names its lock, and says how many runs of it there may be.
func isSemaphore(l cronline.Line) bool {
	return l.Name != "" && slices.ContainsFunc(l.Settings, func(s string) bool { return strings.HasPrefix(s, "ADLOCK_SLOTS=") })
}

// nameLine gives a line without a name one that is made from its command and its further words
// (more).
func nameLine(getenv func(string) string, l *cronline.Line, more []string) (command string) {
	if l.Name == "" && getenv("ADLOCK_NAME") == "" {
		l.Name, command = cronline.NameOf(strings.Join(append([]string{l.Text}, more...), " "))
	}
	return command
}

// optionsOf are the options of run for a line.
func optionsOf(getenv func(string) string, l cronline.Line) (options []string) {
	if l.Name != "" {
		options = append(options, "--name="+l.Name)
	}
	return options
}

// LineRefusal is the error by which the shell would refuse a line of a crontab with the variables
// of getenv; nil if it would run it.
func LineRefusal(getenv func(name string) string, l cronline.Line) error {
	said := map[string]string{}
	for _, s := range l.Settings {
		name, value, _ := strings.Cut(s, "=")
		if why := unknownSetting(name); why != "" {
			return fault.New(fault.Usage, name, why)
		}
		said[name] = value
	}
	both := func(name string) string {
		if value, is := said[name]; is {
			return value
		}
		return getenv(name)
	}
	if err := checkShell(cmp.Or(both(config.ShellVariable), defaultShell)); err != nil {
		return err
	}
	r := newRun()
	r.isShell, r.slotsBeside = true, isSemaphore(l)
	nameLine(both, &l, nil)
	return config.ForScript(r.options(), r.refusal(both, optionsOf(both, l)))
}

// becomeShell replaces this process by the job's own shell.
func becomeShell(args []string) (int, error) {
	own, err := ownShell()
	if err != nil {
		return 0, err
	}
	if _, err := supervise.Find(own); err != nil {
		return 0, err
	}
	err = syscall.Exec(own, append([]string{own}, args...), os.Environ())
	return 0, &fault.Error{Kind: fault.NotRunnable, Object: own, Err: err}
}

// ownShell returns the job's own shell, and sets the environment for it.
func ownShell() (string, error) {
	own := cmp.Or(os.Getenv(config.ShellVariable), defaultShell)
	if err := checkShell(own); err != nil {
		return "", err
	}
	return own, errors.Join(os.Setenv("SHELL", own), os.Unsetenv(config.ShellVariable))
}

func checkShell(own string) error {
	switch {
	case !filepath.IsAbs(own):
		return fault.New(fault.Usage, config.ShellVariable, strconv.Quote(own)+" is no absolute path")
	case isThis(own):
		return fault.New(fault.Usage, config.ShellVariable, strconv.Quote(own)+" is adlock's: want the shell that is to run the job, such as /bin/bash")
	}
	return nil
}

// isThis reports whether the file is this program, or the script that starts it.
func isThis(path string) bool {
	if self, err := os.Executable(); err == nil && SameFile(self, path) {
		return true
	}
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	head := make([]byte, len(shellMark))
	_, err = io.ReadFull(file, head)
	return err == nil && string(head) == shellMark
}

// SameFile reports whether two paths lead to one file.
func SameFile(one, other string) bool {
	a, err := os.Stat(one)
	if err != nil {
		return false
	}
	b, err := os.Stat(other)
	return err == nil && os.SameFile(a, b)
}
