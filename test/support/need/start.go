package need

import (
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Importing this package gives a test the same environment however the suite is started: by
// nohup, in the background of a shell, by cron, with any umask and locale. A test binary that a
// test starts as another program (a supervisor, for example) has no flags of package testing,
// and keeps what that test gave it.
func init() {
	if !slices.ContainsFunc(os.Args[1:], func(arg string) bool { return strings.HasPrefix(arg, "-test.") }) {
		return
	}
	// nohup ignores HUP, and a shell without job control ignores INT in background commands;
	// child processes would inherit that. A signal that is caught here has its default action in
	// them, so catch both.
	for _, sig := range []os.Signal{syscall.SIGHUP, syscall.SIGINT} {
		if signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
	resetIgnored()
	syscall.Umask(0o022) // other users read and run some files of a test
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); ofCaller.MatchString(name) && !ofSuite.MatchString(name) {
			os.Unsetenv(name)
		}
	}
	hideInstalled()
}

// hideInstalled puts links to all other programs in the place of each directory of PATH in which
// adlock is installed. Else a test without a helper or a partner program finds the installed one.
func hideInstalled() {
	dirs := filepath.SplitList(os.Getenv("PATH"))
	for i, dir := range dirs {
		if installed, _ := filepath.Glob(filepath.Join(dir, "adlock*")); len(installed) > 0 {
			dirs[i] = linksTo(dir)
		}
	}
	os.Setenv("PATH", strings.Join(dirs, string(filepath.ListSeparator)))
}

// linksTo returns a directory of links, always the same one for dir: no process removes it.
func linksTo(dir string) string {
	links := filepath.Join(os.TempDir(), "adlock-test-path-"+strconv.Itoa(os.Geteuid()), dir)
	programs, err := os.ReadDir(dir)
	if err = errors.Join(err, os.MkdirAll(links, 0o755)); err != nil {
		panic(err)
	}
	for _, p := range programs {
		if !strings.HasPrefix(p.Name(), "adlock") {
			_ = os.Symlink(filepath.Join(dir, p.Name()), filepath.Join(links, p.Name())) // it may be there
		}
	}
	return links
}

// ofCaller are variables that control adlock, or describe the caller's shell, terminal,
// language and make; ofSuite are those that control the suite.
var (
	ofCaller = regexp.MustCompile(`^(ADLOCK_.*|SHELL|TERM|COLUMNS|LINES|NO_COLOR|LANG|LANGUAGE|LC_.*|MAKE.*|MFLAGS|GNUMAKEFLAGS)$`)
	ofSuite  = regexp.MustCompile(`^ADLOCK_(TEST|SOAK|STORM|CHAOS)(_.*)?$`)
)

// Clean is the environment without what the caller or the suite has set.
func Clean() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return ofCaller.MatchString(name)
	})
}
