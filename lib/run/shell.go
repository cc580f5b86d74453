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

// The shell for crontabs. cron runs each line as $SHELL -c COMMAND, so one line (SHELL=) puts all below it
// under `run`. The job's own shell runs COMMAND, byte for byte; in its environment SHELL names that shell. If
// a program calls this shell in another way, this shell only executes the job's own shell.

// defaultShell is the job's own shell if config.ShellVariable names none.
const defaultShell = "/bin/sh"

// shellMark is the beginning of sh/shell. As the job's own shell, that file would call itself without end.
const shellMark = "#!/bin/sh\n# adlock's shell for crontabs"

func Shell(open Opener) config.Verb {
	return config.Verb{
		Name: "shell", Does: "run a line of a crontab under its own lock, as its SHELL", Args: "-c COMMAND [ARG...]",
		More: moreOfShell, Run: func(args []string) (int, error) { return shell(open, args) },
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

// InstalledShell returns the path of the shell for crontabs that was installed with this program; "": none.
func InstalledShell() string {
	self, err := os.Executable()
	path := filepath.Join(filepath.Dir(filepath.Dir(self)), "lib/adlock/shell")
	if err != nil || !isThis(path) {
		return ""
	}
	return path
}

func shell(open Opener, args []string) (int, error) {
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
	if store, _ := config.Store(); open == nil && config.IsRemote(store) { // run reports the error
		return 0, config.Become(config.Locksmith, "for a store beyond this machine", "shell", args)
	}
	own, missing := ownShell()
	r := newRun()
	r.open = open
	supervise.LeaveSignals()
	r.InScript, r.isShell, r.slotsBeside = true, true, isSemaphore(l)
	r.command = nameLine(os.Getenv, &l, args[2:])
	all := slices.Concat(optionsOf(l), []string{"--", own}, args)
	if err = cmp.Or(err, missing); err != nil {
		return 0, refused(all, err)
	}
	status, err := r.run(all)
	return status, refused(all, config.ForScript(r.options(), err))
}

// set exports a line's settings, which win over the crontab's. It returns an error for an unknown setting, and
// still exports the others, because other settings say where the error is recorded.
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

func unknownSetting(name string) string {
	if o := config.OfVariable(name); o != nil && isOfLine(o) {
		return ""
	}
	return config.UnknownSetting(name, isOfLine).Error()
}

func isOfLine(o *config.Option) bool { return o.Help != "" || o.Env == config.ShellVariable }

// NearestSetting returns the setting that was probably meant by a variable that a line cannot set; "" if none is
// near, or if the first letter after ADLOCK_ differs: that is rarely a typo, so another program may read the variable.
func NearestSetting(name string) string { return nearest(name, isOfLine) }

// NearestVariable is NearestSetting for a variable of the environment, where every setting can be.
func NearestVariable(name string) string {
	return nearest(name, func(*config.Option) bool { return true })
}

func nearest(name string, is func(*config.Option) bool) string {
	meant, known := config.NearestSetting(name, is), config.OfVariable(name)
	if meant == "" || known != nil && is(known) || !strings.HasPrefix(name, meant[:len("ADLOCK_")+1]) {
		return ""
	}
	return meant
}

func isSemaphore(l cronline.Line) bool {
	return l.Name != "" && slices.ContainsFunc(l.Settings, func(s string) bool { return strings.HasPrefix(s, "ADLOCK_SLOTS=") })
}

// nameLine gives l a name made of its command and of the further arguments in more, and returns that command
// as an Atom keeps it. If the line or ADLOCK_NAME already gives a name, nameLine changes nothing and returns "".
func nameLine(getenv func(string) string, l *cronline.Line, more []string) (command string) {
	if l.Name == "" && getenv("ADLOCK_NAME") == "" {
		l.Name, command = cronline.NameOf(strings.Join(append([]string{l.Text}, more...), " "))
	}
	return command
}

func optionsOf(l cronline.Line) (options []string) {
	if l.Name != "" {
		options = append(options, "--name="+l.Name)
	}
	return options
}

// LineRefusal returns the error with which the shell would refuse a line, with the variables of getenv.
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
	if err := checkShell(cmp.Or(both(config.ShellVariable), defaultShell), seemsThis); err != nil {
		return err
	}
	r := newRun()
	r.isShell, r.slotsBeside = true, isSemaphore(l)
	nameLine(both, &l, nil)
	return config.ForScript(r.options(), r.refusal(both, optionsOf(l)))
}

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

func ownShell() (string, error) {
	own := cmp.Or(os.Getenv(config.ShellVariable), defaultShell)
	if err := checkShell(own, isThis); err != nil {
		return "", err
	}
	return own, errors.Join(os.Setenv("SHELL", own), os.Unsetenv(config.ShellVariable))
}

func checkShell(own string, isThis func(path string) bool) error {
	switch {
	case !filepath.IsAbs(own):
		return fault.New(fault.Usage, config.ShellVariable, strconv.Quote(own)+" is no absolute path")
	case isThis(own):
		return fault.New(fault.Usage, config.ShellVariable, strconv.Quote(own)+" is adlock's: want the shell that is to run the job, such as /bin/bash")
	}
	return nil
}

// seemsThis judges the path alone: it may lead to another user's file, or to a file system that does not answer.
func seemsThis(path string) bool {
	return strings.HasSuffix(path, "/adlock/shell") || filepath.Base(path) == "adlock"
}

func isThis(path string) bool {
	if self, err := os.Executable(); err == nil && SameFile(self, path) {
		return true
	}
	info, err := os.Stat(path) // opening a named pipe blocks, and opening a device may do more
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0) // the file may have been replaced
	if err != nil {
		return false
	}
	defer file.Close()
	head := make([]byte, len(shellMark))
	_, err = io.ReadFull(file, head)
	return err == nil && string(head) == shellMark
}

func SameFile(one, other string) bool {
	a, err := os.Stat(one)
	if err != nil {
		return false
	}
	b, err := os.Stat(other)
	return err == nil && os.SameFile(a, b)
}
