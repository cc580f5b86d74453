package helper

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Alive reports whether a process with that pid lives. A zombie does not, unless other threads
// of it still run: then it still holds its atoms. One that is just being reaped has no thread (0).
func Alive(pid int) bool {
	fields := stat(pid)
	return len(fields) > 17 && fields[0] != "X" && (fields[0] != "Z" || fields[17] > "1")
}

// stat returns the fields of /proc/PID/stat after the command: state, ppid, pgrp, session, …
// (proc(5)); nil if there is no such process.
func stat(pid int) []string {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return nil
	}
	return strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
}

// pids returns every process.
func pids() []int {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	var list []int
	for _, dir := range dirs {
		if pid, err := strconv.Atoi(filepath.Base(dir)); err == nil {
			list = append(list, pid)
		}
	}
	return list
}

// Session returns the living members of the session.
func Session(session int) []int {
	var members []int
	for _, pid := range pids() {
		if fields := stat(pid); len(fields) > 3 && fields[3] == strconv.Itoa(session) && Alive(pid) {
			members = append(members, pid)
		}
	}
	return members
}

// KillSession kills the live processes of the session, and waits until they are dead: until
// then they hold their atoms. The leader is first, or a supervisor would see its job end, and release.
func KillSession(session int) {
	for end := time.Now().Add(Patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		left := Session(session)
		if len(left) == 0 {
			return
		}
		for _, pid := range append([]int{session}, left...) { // a member keeps the number from new processes
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended by itself
		}
	}
}

// NotReused reports whether the session or group pid may still be that of the process that had
// this start time: while a member lives, no new process gets the number.
func NotReused(pid int, began string) bool {
	now := Began(pid)
	return now == "" || now == began
}

// End kills one process, and waits until it is gone.
func End(t testing.TB, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	Eventually(t, "a process is gone", func() bool { return !Alive(pid) })
}

// EndsWith kills a process when the test ends. A pidfd makes sure that no later process with the
// pid is killed (pidfd_open(2)).
func EndsWith(t testing.TB, pid int) {
	p, err := os.FindProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Kill() }) // it may have ended by itself
}

// Began returns the start time of a process, which distinguishes it from a later one with its
// pid; "" if there is none.
func Began(pid int) string {
	if fields := stat(pid); len(fields) > 19 {
		return fields[19]
	}
	return ""
}

// Name is the name of a process, set by itself or by its exec; "" if there is none.
func Name(pid int) string {
	text, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm")
	return strings.TrimSuffix(string(text), "\n")
}

// Described returns what /proc says of each process: its stat and its command line.
func Described(pids []int) (all []string) {
	for _, pid := range pids {
		command, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
		all = append(all, fmt.Sprintf("%d %q %v", pid, command, stat(pid)))
	}
	return all
}

// With returns the living processes that were started with entry ("NAME=value") in their
// environment, except the test itself. By such an entry a test finds all that it left running.
func With(entry string) []int {
	var found []int
	for _, pid := range pids() {
		environ, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
		if err != nil || pid == os.Getpid() || !Alive(pid) {
			continue
		}
		for _, have := range strings.Split(string(environ), "\x00") {
			if have == entry {
				found = append(found, pid)
			}
		}
	}
	return found
}

// SameNamespace returns the command lines of the living processes in the pid namespace of the
// children of pid.
func SameNamespace(t testing.TB, pid int) []string {
	t.Helper()
	here := "/proc/" + strconv.Itoa(pid) + "/ns/pid_for_children"
	namespace, err := os.Readlink(here)
	if err != nil {
		t.Fatal(err)
	}
	var commands []string
	for _, other := range pids() {
		found, err := os.Readlink("/proc/" + strconv.Itoa(other) + "/ns/pid")
		if err != nil || found != namespace || !Alive(other) {
			continue
		}
		command, _ := os.ReadFile("/proc/" + strconv.Itoa(other) + "/cmdline") // gone: ""
		if len(command) > 0 {
			commands = append(commands, strings.TrimSpace(strings.ReplaceAll(string(command), "\x00", " ")))
		}
	}
	return commands
}

// Children returns the living children of a process.
func Children(pid int) []int {
	var children []int
	for _, other := range pids() {
		if fields := stat(other); len(fields) > 1 && fields[1] == strconv.Itoa(pid) && Alive(other) {
			children = append(children, other)
		}
	}
	return children
}

// Listens reports whether a process written in Go has called signal.Notify for the signal: the
// runtime then removes the signal from the mask of the one thread that blocks as many as it can.
// That thread never blocks signals that end a Go program by default (HUP, INT, TERM, QUIT): for
// them the result says only that the process listens to some signal.
func Listens(pid int, sig syscall.Signal) bool {
	bit := func(sig syscall.Signal) uint64 { return 1 << (sig - 1) }
	threads, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/status")
	for _, thread := range threads {
		text, _ := os.ReadFile(thread)
		_, mask, _ := strings.Cut(string(text), "SigBlk:\t")
		mask, _, _ = strings.Cut(mask, "\n")
		blocked, _ := strconv.ParseUint(mask, 16, 64)
		_, mask, _ = strings.Cut(string(text), "SigCgt:\t") // the runtime sets the handler after the mask
		mask, _, _ = strings.Cut(mask, "\n")
		caught, _ := strconv.ParseUint(mask, 16, 64)
		if blocked&bit(syscall.SIGWINCH) != 0 && blocked&bit(sig) == 0 && caught&bit(sig) != 0 {
			return true
		}
	}
	return false
}

// Watches reports whether a process waits for a lock: it is in the queue, or watches the directory.
func Watches(pid int) bool { return HasOpen(pid, "/line.") || HasOpen(pid, "signalfd") }

// HasOpen reports whether a process has an open file of that kind.
func HasOpen(pid int, kind string) bool {
	links, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/fd/*")
	for _, link := range links {
		if to, _ := os.Readlink(link); strings.Contains(to, kind) {
			return true
		}
	}
	return false
}

// Switches counts the voluntary context switches of the threads of a process.
func Switches(t testing.TB, pid int) (n int) {
	t.Helper()
	threads, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/status")
	if err != nil || len(threads) == 0 {
		t.Fatal("no threads: ", err)
	}
	for _, thread := range threads {
		text, _ := os.ReadFile(thread) // "" if the thread has just ended
		_, after, _ := strings.Cut(string(text), "\nvoluntary_ctxt_switches:")
		count, _, _ := strings.Cut(after, "\n")
		each, _ := strconv.Atoi(strings.TrimSpace(count))
		n += each
	}
	return n
}
