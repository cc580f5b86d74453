package steps

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"adlock/test/support/helper"
)

// Injection is what strace does to the step. The zero Injection only traces.
type Injection struct {
	Call string // the system call
	What string // in strace's words: "signal=KILL", "error=EIO", "retval=2"
	When int    // to which of these calls, counted from 1
}

// scanned are the calls that are also made to read /proc: of these only calls on adlock's own files
// are counted.
var scanned = []string{"openat", "close", "read", "getdents64", "newfstatat"}

// traced is the command line that runs the program under strace. Its parts contain no space.
// OWNER stands for the actor's pid.
func (s *Stage) traced(in Injection) string {
	args := []string{"strace", "-qq", "-y", "-o", s.path("trace"), "-E", "GODEBUG=asyncpreemptoff=1"} // few signals: they would interrupt calls
	switch {
	case in.Call == "":
		args = append(args, "-e", "trace=%file,%desc")
	default:
		args = append(args, "-e", "trace=faccessat,"+in.Call, "-e", "inject="+in.Call+":"+in.What+":when="+strconv.Itoa(in.When))
		if slices.Contains(scanned, in.Call) {
			args = append(args, s.paths()...)
		}
	}
	if s.scenario.Named && in.Call != "faccessat" {
		args = append(args, "-e", "inject=faccessat:error=ENOENT") // no /proc: a temporary file needs a name
	}
	return strings.Join(append(args, helper.Pinned(s.t)), " ")
}

// paths returns the options of strace (-P) that select adlock's own files.
func (s *Stage) paths() []string {
	var args []string
	record := filepath.Join(s.LogDir, "program.h.runlog")
	for _, path := range []string{s.Dir, s.LogDir, record, record + ".1"} {
		args = append(args, "-P", path)
	}
	for _, file := range []string{"last." + Name, "lock." + Name, "lock." + slot, "read." + Name, "read." + Name + ".OWNER", "lock." + beside} {
		args = append(args, "-P", filepath.Join(s.Dir, file))
	}
	if s.scenario.Named {
		for fd := 3; fd < 10; fd++ { // -P must not filter out the faccessat that is to fail
			args = append(args, "-P", "/proc/self/fd/"+strconv.Itoa(fd))
		}
	}
	return args
}

// trace returns the lines that strace wrote.
func (s *Stage) trace() []string {
	s.t.Helper()
	text, err := os.ReadFile(s.path("trace"))
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.Split(string(text), "\n")
}

// Met returns the call into which an error was injected; "" if the step has no such call.
func (s *Stage) Met(in Injection) string {
	for _, line := range s.trace() {
		if strings.HasPrefix(line, in.Call+"(") && strings.Contains(line, "INJECTED") {
			return strings.ReplaceAll(strings.ReplaceAll(line, s.Dir, "DIR"), s.LogDir, "LOG")
		}
	}
	return ""
}

// Call is a system call by which a step touches adlock's own files.
type Call struct {
	Name   string
	Points []Point // never empty
}

// Point is one call of that name.
type Point struct {
	When int    // its number among the calls of this name, from 1, as strace counts
	Same string // what it does, without numbers: equal for calls from one place in the code
	Turn int    // where one point of each place is drawn: the number of its place among those of this name
}

// Calls plays the scenario once and returns its calls in order of their first use.
func (sc Scenario) Calls(t testing.TB) []Call {
	t.Helper()
	s := NewStage(t, sc, Injection{})
	if status := s.Play(); status != sc.Want {
		t.Fatalf("status %d untouched: %s", status, s.Trouble())
	}
	s.EndActor()
	var calls []Call
	seen, paths := map[string]int{}, strings.NewReplacer(s.Dir, "DIR", s.LogDir, "LOG", s.scratch, "")
	for _, line := range s.trace() {
		name, args, _ := strings.Cut(line, "(")
		ours := strings.Contains(args, s.Dir) || strings.Contains(args, s.LogDir)
		if slices.Contains(scanned, name) {
			ours = ours && !strings.Contains(args, "(deleted)") // a path that -P cannot name
		}
		if ours || !slices.Contains(scanned, name) {
			seen[name]++
		}
		if !ours || name == "execve" {
			continue
		}
		i := slices.IndexFunc(calls, func(c Call) bool { return c.Name == name })
		if i < 0 {
			i, calls = len(calls), append(calls, Call{Name: name})
		}
		calls[i].Points = append(calls[i].Points, Point{When: seen[name], Same: same(paths.Replace(line))})
	}
	return calls
}

// numbers matches descriptors, addresses, inodes, sizes and tokens.
var numbers = regexp.MustCompile(`0x[0-9a-f]+|[0-9a-f]{32}|[0-9]+`)

func same(line string) string {
	call, result, _ := strings.Cut(line, " = ")
	if strings.HasPrefix(call, "write(") || strings.HasPrefix(call, "pread64(") || strings.HasPrefix(call, "getdents64(") {
		call, _, _ = strings.Cut(call, ",") // the content differs
	}
	if strings.HasPrefix(result, "-1") {
		call += " fails"
	}
	return numbers.ReplaceAllString(call, "")
}

// Trouble is what the step wrote to standard error.
func (s *Stage) Trouble() string {
	text, err := os.ReadFile(s.path("trouble"))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}
