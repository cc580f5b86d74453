package config

import (
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"adlock/lib/fault"
	"adlock/lib/sysfile"
)

// The partner programs are executed in the helper's place. With their packages, the helper would be several times as
// large and start more slowly, for every script.
const (
	Helper    = "adlock"
	Locksmith = "adlock-locksmith" // stores beyond this machine
	Reporter  = "adlock-report"    // the verbs that show people the present state and the past
)

// Reports are the verbs that the helper hands over to the Reporter.
var Reports = []Verb{
	{Name: "status", Does: "list every atom of the lock directory or the store, or those that are called so", Args: "[NAME...]"},
	{Name: "log", Does: "show the runlog: what was taken, denied, released and ended", Args: "[NAME]"},
	{Name: "report", Does: "tell how the atoms fared over a period, and what to mend", Args: "[NAME]"},
	{Name: "timeline", Does: "draw when each atom ran, was denied and was ended", Args: "[NAME]"},
	{Name: "metrics", Does: "tell Prometheus of each atom: for node_exporter's textfile collector", Args: "[NAME]"},
	{Name: "tune", Does: "tell what atoms have learned (limits that are auto), and what that would decide", Args: "[NAME]"},
	{Name: "check", Does: "look for the usual mistakes with locks in crontabs", Args: "[FILE...]", More: moreOfCheck},
	{Name: "wrap", Does: "put the jobs of a crontab (FILE, or standard input) under adlock run", Args: "[FILE]", More: moreOfWrap},
	{Name: "init", Does: "make a lock directory for each USER who can have none at home (www-data, say): as root", Args: "USER..."},
	{Name: "pause", Does: "deny newcomers these atoms, or all as root, until then; what runs goes on", Args: "[NAME...]"},
	{Name: "resume", Does: "end a pause", Args: "[NAME...]"},
	{Name: "config", Does: "show the settings that count, for NAME or in general, and where each is from", Args: "[NAME]"},
	{Name: "doctor", Does: "tell whether this machine is fit to keep locks", More: moreOfDoctor},
}

func moreOfCheck() []List {
	return []List{
		{Title: "texts", Lines: [][2]string{
			{"-", "as FILE: standard input (crontab -l | adlock check -)"},
			{"# adlock: ignore", "as a comment in a line: nothing is said of that line"},
		}},
		{Title: "exit statuses", Lines: [][2]string{
			{"0, 1", "no mistake; some, each told as FILE:LINE: mistake: reason; cure"},
			{"64", "a FILE is no crontab, a script for instance (69, 77: it is not there, it may not be read)"},
		}},
	}
}

func moreOfWrap() []List {
	return []List{
		{Title: "texts", Lines: [][2]string{{"-", "as FILE: standard input"}}},
		{Title: "how it is used", Lines: [][2]string{
			{"crontab -l | adlock wrap --diff", "look first"},
			{"crontab -l | adlock wrap | crontab -", "your crontab; what is refused comes out as it came in"},
			{"crontab -l | adlock wrap --shell | crontab -", "one line for all jobs"},
			{"crontab -l | adlock wrap --unwrap | crontab -", "and back"},
			{"adlock wrap -u --diff FILE | patch FILE", "a file of the system"},
		}},
		{Title: "what a line gets", Lines: [][2]string{
			{"--name", "the program that it starts, and a checksum of its command"},
			{"--expire-after", "only if asked for (--expire-after)"},
			{"/bin/sh -c '...'", "where it has the syntax of a shell; another SHELL of the crontab always"},
		}},
	}
}

// PassOn copies standard input to standard output if a failed wrap with these arguments was to be a filter (without
// --diff, or a FILE at the end). Otherwise a `crontab -` after the pipe would install an empty crontab.
func PassOn(args []string) {
	if len(args) > 0 {
		if _, err := os.Stat(args[len(args)-1]); err == nil {
			return
		}
	}
	if !slices.Contains(args, "--diff") && !sysfile.IsTerminal(0) && !sysfile.IsTerminal(1) {
		_, _ = io.Copy(os.Stdout, os.Stdin) // there is already an error to report
	}
}

func moreOfDoctor() []List {
	return []List{{Title: "exit statuses", Lines: [][2]string{{"0, 1", "it is (warnings are told all the same); something failed"}}}}
}

// Become replaces this process by a partner program, with the verb and its arguments, and returns only with
// an error. need says what the program is needed for. argv[0] stays the same, for help and ps(1).
func Become(partner, need, verb string, args []string) error {
	path, err := FindPartner(partner, need)
	if err != nil {
		return err
	}
	err = syscall.Exec(path, append([]string{os.Args[0], verb}, args...), os.Environ())
	return &fault.Error{Kind: fault.Unavailable, Object: path, Err: err}
}

// FindPartner returns the path of a partner program beside this one, else on PATH. If there is none, it fails (69).
func FindPartner(partner, need string) (string, error) {
	if self, err := os.Executable(); err == nil {
		if beside := path.Join(path.Dir(self), partner); isProgram(beside) {
			return beside, nil
		}
	}
	for dir := range strings.SplitSeq(os.Getenv("PATH"), ":") {
		if program := dir + "/" + partner; path.IsAbs(dir) && isProgram(program) {
			return program, nil
		}
	}
	return "", fault.New(fault.Unavailable, partner, "is not installed: it is needed "+need)
}

func isProgram(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}
