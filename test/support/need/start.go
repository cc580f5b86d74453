package need

import (
	"os"
	"os/signal"
	"regexp"
	"slices"
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
}

// ofCaller are variables that control adlock, or describe the caller's shell, terminal,
// language and make; ofSuite are those that control the suite.
var (
	ofCaller = regexp.MustCompile(`^(ADLOCK_.*|SHELL|TERM|COLUMNS|LINES|NO_COLOR|LANG|LANGUAGE|LC_.*|MAKE.*|MFLAGS|GNUMAKEFLAGS)$`)
	ofSuite  = regexp.MustCompile(`^ADLOCK_(TEST|SOAK|STORM)(_.*)?$`)
)

// Clean is the environment without what the caller or the suite has set.
func Clean() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return ofCaller.MatchString(name)
	})
}
