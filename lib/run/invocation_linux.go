package run

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"adlock/lib/process"
)

// Invocation returns the program and the argument vector of a process. They are unknown if /proc does not show them,
// if the program's file was replaced, or for a fork (a subshell), whose command line is its parent's.
func Invocation(pid int) (file string, args []string, known bool) {
	of := procOf(pid)
	file, err := os.Readlink(of + "exe")
	if fork, _ := forked(pid); err != nil || !SameFile(file, of+"exe") || fork {
		return "", nil, false
	}
	line, err := os.ReadFile(of + "cmdline")
	line, whole := bytes.CutSuffix(line, []byte{0})
	return file, strings.Split(string(line), "\x00"), err == nil && whole
}

func procOf(pid int) string { return "/proc/" + strconv.Itoa(pid) + "/" }

// forked returns whether a process has executed no program since its fork, and its parent. If /proc does not show
// the process, fork is true and parent 0.
func forked(pid int) (fork bool, parent int) {
	e, err := process.Find(pid)
	if err != nil || e.Hidden {
		return true, 0
	}
	return e.Forked, e.Parent
}

// Reads reports whether a process, or the shell whose subshell it is, reads the file as its script.
func Reads(pid int, file string) bool {
	for pid > 0 {
		if hasOpen(pid, file) {
			return true
		}
		fork, parent := forked(pid)
		if !fork {
			return false
		}
		pid = parent
	}
	return false
}

// hasOpen reports whether a process has the file open, but not as a standard descriptor: every shell keeps
// its script open; its subshells do not.
func hasOpen(pid int, file string) bool {
	const firstOwn = 3
	of := procOf(pid) + "fd"
	open, err := os.ReadDir(of)
	if err != nil {
		return false
	}
	for _, fd := range open {
		number, err := strconv.Atoi(fd.Name())
		if err == nil && number >= firstOwn && SameFile(filepath.Join(of, fd.Name()), file) {
			return true
		}
	}
	return false
}
