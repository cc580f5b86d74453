// Package strace reads what strace(1) writes: which programs ran, and what system calls they made.
package strace

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Calls are system calls by name, and how many.
type Calls map[string]int

func (c Calls) String() string {
	var told []string
	for _, name := range slices.Sorted(maps.Keys(c)) {
		if c[name] != 0 {
			told = append(told, fmt.Sprint(name, " ", c[name]))
		}
	}
	return strings.Join(told, ", ")
}

// Without takes other calls off, of those that c has.
func (c Calls) Without(others Calls) Calls {
	rest := maps.Clone(c)
	for name, n := range others {
		if _, counts := rest[name]; counts {
			rest[name] -= n
		}
	}
	return rest
}

// Process is one that strace saw: its last program, and the calls of all its threads since
// then.
type Process struct {
	Args  []string
	Calls Calls
}

var (
	begun      = regexp.MustCompile(`^(\d+) +(\w+)\((.*)$`)
	resumed    = regexp.MustCompile(`^(\d+) +<\.\.\. (\w+) resumed>(.*)$`)
	child      = regexp.MustCompile(`= (\d+)(<.*>)?$`)
	quotedWord = regexp.MustCompile(`"((?:[^"\\]|\\.)*)"`)

	// unlike matches what differs from one machine to the next: files that the runtime reads
	// at its start, the machine id, a limit on threads, the kind of a pidfd, names for memory,
	// and calls that the runtime's own signal or the end of the process has cut short.
	unlike = regexp.MustCompile(`/sys/|/proc/(self|\d+)/(cgroup|mountinfo)|/machine-id|/proc/loadavg|<[^<>]*pidfd|<pid:|PR_SET_VMA|= \?( ERESTART|$)|<detached \.\.\.>$`)
)

// reader reads what strace wrote.
type reader struct {
	all     []*Process
	running map[string]*Process // by thread number
	pending map[string]string   // the beginning of an unfinished call
	early   map[string][]string // calls of a thread before its process was known
}

// Parsed returns the processes of a log of strace -f, in the order of their starts.
func Parsed(log string) []*Process {
	r := reader{running: map[string]*Process{}, pending: map[string]string{}, early: map[string][]string{}}
	for line := range strings.Lines(log) {
		r.line(strings.TrimSpace(line))
	}
	return r.all
}

func (r *reader) line(line string) {
	if m := begun.FindStringSubmatch(line); m != nil {
		if cut, unfinished := strings.CutSuffix(m[3], " <unfinished ...>"); unfinished {
			r.pending[m[1]] = cut
		} else {
			r.call(m[1], m[2], m[3])
		}
	} else if m := resumed.FindStringSubmatch(line); m != nil {
		r.call(m[1], m[2], r.pending[m[1]]+m[3])
	}
}

// call handles one finished call of a thread.
func (r *reader) call(thread, name, rest string) {
	p := r.running[thread]
	switch {
	case name == "execve":
		r.start(thread, rest)
	case strings.HasPrefix(name, "clone"), strings.HasSuffix(name, "fork"):
		if m := child.FindStringSubmatch(rest); m != nil && p != nil && strings.Contains(rest, "CLONE_THREAD") {
			r.running[m[1]] = p
			for _, name := range r.early[m[1]] {
				p.Calls[name]++
			}
		}
	case unlike.MatchString(rest):
	case p == nil:
		r.early[thread] = append(r.early[thread], name)
	default:
		p.Calls[name]++
	}
}

// start handles the start of a program, if the program exists.
func (r *reader) start(thread, rest string) {
	if !strings.HasSuffix(rest, "= 0") {
		return
	}
	p := &Process{Calls: Calls{}}
	_, list, _ := strings.Cut(rest, "[")
	list, _, _ = strings.Cut(list, "]")
	for _, arg := range quotedWord.FindAllStringSubmatch(list, -1) {
		p.Args = append(p.Args, arg[1])
	}
	r.running[thread], r.all = p, append(r.all, p)
}
